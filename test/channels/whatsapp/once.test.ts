// Messages are handled once and in order, whatever happens to the gateway and its settings in between.

import { describe, it } from 'vitest'
import { steps } from '../../kit/steps-agent.js'
import { ADA, BEN, WhatsAppStage } from './stage.js'
import { until } from '../../kit/waiting.js'

const ASKING = { isListening: false }
const PICTURE = { type: 'image/jpeg', content: Buffer.from('a picture') }

describe('A message that was taken', { concurrent: true }, () => {
  const plain = {}
  const withTrigger = { session: { resetTriggers: ['Fresh'] } }

  it.for([
    ['a word for a new session was', withTrigger, plain, ['There is no session yet; the next message starts one.'], []],
    ['a word became one for a new session', plain, withTrigger, ['You said: Fresh'], ['Fresh']],
  ] as const)('stays as it was taken when %s', async ([, before, after, answers, asked], context) => {
    const { expect, onTestFinished } = context
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    const first = await stage.start(before, ASKING)
    twilio.write(ADA, 'Fresh')
    await until(() => twilio.sentTo(ADA).length === 1, 'the first answer')
    await stage.stop(first)

    await stage.start(after, ASKING)
    twilio.write(ADA, 'last')
    await until(() => twilio.textsTo(ADA).includes('You said: last'), 'the last answer')

    expect([twilio.textsTo(ADA), stage.journal().map(({ prompt }) => prompt)]).toEqual([
      [...answers, 'You said: last'],
      [...asked, 'last'],
    ])
  })

  it('as a command by a gateway that was killed before it answered is done by another', async (context) => {
    const { expect, onTestFinished } = context
    const stage = await WhatsAppStage.open(onTestFinished)
    const gateway = await stage.start()
    const { twilio } = stage
    const command = twilio.write(ADA, '/status')
    // All that the killed gateway left behind.
    await gateway.hostOf('whatsapp').claim(`command:${command.sid}`)

    await twilio.deliver(command)

    await expect.poll(() => twilio.textsTo(ADA)).toEqual([expect.stringContaining('agent: claude')])
  })
})

describe('A message that was refused', { concurrent: true }, () => {
  it('is not answered when its writer is let in later', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    const first = await stage.start({ allowFrom: [ADA] }, ASKING)
    twilio.write(BEN, 'too early')
    await until(() => stage.logsOf('whatsapp.refused').length === 1, 'the refusal')
    await stage.stop(first)

    await stage.start({ allowFrom: [ADA, BEN] }, ASKING)
    twilio.write(BEN, 'now')

    await expect.poll(() => twilio.textsTo(BEN)).toEqual(['You said: now'])
    expect(stage.journal().map(({ prompt }) => prompt)).toEqual(['now'])
  })
})

describe('A file that does not come', { concurrent: true }, () => {
  it('holds up no command', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()
    const { twilio } = stage
    await twilio.say(ADA, steps({ hold: 'never' }))
    await until(() => stage.journal().length === 1, 'the run')
    twilio.fail('media', { kind: 'hang' })
    void twilio.deliver(twilio.write(ADA, 'look', [PICTURE])).catch(() => {})
    await until(() => twilio.faultCount === 1, 'the file')

    await twilio.say(ADA, 'stop')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual([expect.stringContaining('Stopped')])
  })
})
