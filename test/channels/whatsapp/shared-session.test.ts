import { describe, it } from 'vitest'
import { steps } from '../../kit/steps-agent.js'
import { ADA, BEN, WhatsAppStage } from './stage.js'
import { until } from '../../kit/waiting.js'

describe('A session that all share', () => {
  it('is stopped by one person, and the one waiting for the answer is told', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({ session: { scope: 'global' } })
    const { twilio } = stage
    await twilio.say(ADA, steps({ hold: 'never' }))
    await until(() => stage.journal().length === 1, 'the run')

    await twilio.say(BEN, 'stop')

    await expect
      .poll(() => [twilio.textsTo(ADA), twilio.textsTo(BEN)])
      .toEqual([
        ['Someone else stopped your message. Changes already made are kept. Send it again to have it finished.'],
        [expect.stringContaining('Stopped claude')],
      ])
  })
})
