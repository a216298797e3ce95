// The gateway, in its own process, is killed on the way from a message to its answer; or two of them run at once.
// People get every part of the answer once, in order.

import { describe, it, type TestContext } from 'vitest'
import type { Step } from '../../../src/turns/types.js'
import { createDatabase, postgresUrl } from '../../kit/postgres.js'
import { steps } from '../../kit/steps-agent.js'
import { freePort } from '../../kit/loopback.js'
import { ADA, BEN, PUBLIC_URL, WhatsAppStage } from './stage.js'
import { until } from '../../kit/waiting.js'
import { GatewayStarter, type KillableGateway } from '../../kit/killable-gateway.js'

const STEPS: Step[] = ['accepted', 'claimed', 'streaming', 'finished', 'committed', 'sent']
const PARTS = ['one', 'two', 'three'].map((word) => `${word} `.repeat(250).trim())
const THREE_PARTS = PARTS.join('\n\n')

describe('A gateway that is killed', { concurrent: true }, () => {
  it.for(STEPS)('when a message is %s answers it once after the restart', async (step, { onTestFinished, expect }) => {
    const { stage, start } = await open(onTestFinished)
    const { twilio } = stage
    const killed = await start({ fatalStep: step })
    const message = twilio.write(ADA, steps({ text: THREE_PARTS }))
    // It may die before it has answered.
    await twilio.deliver(message).catch(() => undefined)
    const end = await killed.ended

    await start()
    await until(() => twilio.textsTo(ADA).includes(PARTS[2] ?? ''), 'the answer')
    await twilio.say(ADA, 'last')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual([...PARTS, 'You said: last'])
    expect(end).toEqual('SIGKILL')
  })

  it('when Twilio accepted a part but could not say so continues after it', async ({ onTestFinished, expect }) => {
    const { stage, start } = await open(onTestFinished)
    const { twilio } = stage
    const killed = await start()
    await twilio.say(ADA, steps({ hold: 'a' }, { text: THREE_PARTS }))
    await until(() => stage.journal().length === 1, 'the run')
    twilio.fail('create', { kind: 'hang', hasEffect: true })
    stage.release('a')
    await until(() => twilio.faultCount === 1, 'the first part')
    await killed.kill()

    await start()
    await until(() => twilio.textsTo(ADA).includes(PARTS[2] ?? ''), 'the answer')
    await twilio.say(ADA, 'last')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual([...PARTS, 'You said: last'])
  })

  it('before it could take a message finds it after the restart', async ({ onTestFinished, expect }) => {
    const { stage, start } = await open(onTestFinished)
    const { twilio } = stage
    const killed = await start()
    await killed.kill()
    const message = twilio.write(ADA, 'hello')
    const failed = await twilio.deliver(message).then(
      () => false,
      () => true,
    )

    await start()

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: hello'])
    expect(failed).toEqual(true)
  })
})

describe.skipIf(postgresUrl() === undefined)('Two gateways on one database', () => {
  it('answer each message once, even if both find it', async ({ onTestFinished, expect }) => {
    const database = await createDatabase()
    onTestFinished(() => database.drop())
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    for (let count = 0; count < 2; count += 1) {
      // Each of them polls Twilio for everything.
      await stage.startWith({ ...stage.config({}, {}, false), databaseUrl: database.url })
    }

    for (let count = 0; count < 5; count += 1) {
      twilio.write(ADA, `to Ada ${count}`)
      twilio.write(BEN, '/help')
    }
    await until(() => twilio.sentTo(ADA).length >= 5 && twilio.sentTo(BEN).length >= 5, 'the answers')
    twilio.write(ADA, 'last')

    await expect
      .poll(() => twilio.textsTo(ADA))
      .toEqual([...[0, 1, 2, 3, 4].map((count) => `You said: to Ada ${count}`), 'You said: last'])
    expect([twilio.sentTo(BEN).length, stage.journal().length]).toEqual([5, 6])
  })
})

async function open(onTestFinished: TestContext['onTestFinished']): Promise<{
  stage: WhatsAppStage
  start(options?: { fatalStep?: Step }): Promise<KillableGateway>
}> {
  const stage = await WhatsAppStage.open(onTestFinished)
  const { twilio, directory } = stage
  const httpPort = await freePort()
  twilio.webhook = { target: `http://127.0.0.1:${httpPort}`, publicUrl: PUBLIC_URL }
  const { configFile = '', home } = stage.config({}, { httpPort })
  const gateways = new GatewayStarter(directory, 'channels/whatsapp', { AETHEEL_HOME: home }, onTestFinished)
  const start = async ({ fatalStep }: { fatalStep?: Step } = {}): Promise<KillableGateway> => {
    const seen = gateways.log().length
    const gateway = gateways.start([configFile, ...(fatalStep ? [fatalStep] : [])])
    await until(() => gateways.log().slice(seen).includes('http.started'), 'the gateway')
    return gateway
  }
  return { stage, start }
}
