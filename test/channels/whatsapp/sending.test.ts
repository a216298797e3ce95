// Our messages get lost, or only Twilio's responses to them; or Twilio accepts one and cannot deliver it.

import { describe, it, type TestContext, vi } from 'vitest'
import { queueList } from '../../../src/cli/commands/queue.js'
import type { Gateway } from '../../../src/gateway.js'
import type { Fault, FakeTwilio } from './fake-twilio.js'
import { steps } from '../../kit/steps-agent.js'
import { ADA, WhatsAppStage } from './stage.js'
import { until } from '../../kit/waiting.js'

const PARTS = ['one', 'two', 'three'].map((word) => `${word} `.repeat(250).trim())
const THREE_PARTS = steps({ text: PARTS.join('\n\n') })
const WINDOW = /^Outside the 24-hour window of WhatsApp: .*63016/

describe('An answer', { concurrent: true }, () => {
  it.for<[string, Fault, number]>([
    // This takes longest: a client waits 15 s.
    ['is not answered when it was taken', { kind: 'hang', hasEffect: true }, 1],
    ['is lost', { kind: 'drop' }, 2],
    ['is lost when it was taken', { kind: 'drop', hasEffect: true }, 2],
    ['fails at Twilio', { kind: 'status', status: 500 }, 2],
    ['fails at Twilio that has taken it', { kind: 'status', status: 502, hasEffect: true }, 2],
    ['is limited', { kind: 'status', status: 429, code: 20429, retryAfterSeconds: 1 }, 2],
    ['is limited for long', { kind: 'status', status: 429, code: 20429, retryAfterSeconds: 60 }, 1],
    ['is refused in passing', { kind: 'status', status: 401, code: 20003 }, 1],
  ])('whose way %s comes once, and all its parts in order', async ([, fault, times], context) => {
    const { expect, onTestFinished } = context
    const { twilio } = await open(onTestFinished)

    twilio.fail('create', fault, times)
    await twilio.say(ADA, THREE_PARTS)
    await twilio.say(ADA, 'last')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual([...PARTS, 'You said: last'])
    expect(twilio.faultCount).toEqual(times)
  })

  it('that fits into one message comes as it is, even with an unclosed fence', async (context) => {
    const { expect, onTestFinished } = context
    const { twilio } = await open(onTestFinished)
    const texts = ['see ```\n```\n- x', '```sh\nls', ' ~~~\n\n\n  a  b']

    for (const text of texts) await twilio.say(ADA, steps({ text }))

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(texts)
  })

  it('that is the same as the one before is not taken for it', async ({ expect, onTestFinished }) => {
    const { stage, twilio } = await open(onTestFinished)
    await twilio.say(ADA, steps({ text: 'Done.' }))
    await until(() => twilio.sentTo(ADA).length === 1, 'the first')

    twilio.fail('create', { kind: 'drop' })
    await twilio.say(ADA, steps({ text: 'Done.' }))

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['Done.', 'Done.'])
    expect(stage.twilio.faultCount).toEqual(1)
  })

  it('is not resent while it is unknown what was sent', async ({ expect, onTestFinished }) => {
    const { gateway, twilio } = await open(onTestFinished)
    twilio.fail('create', { kind: 'drop' })
    twilio.fail('list', { kind: 'status', status: 500 }, 3)

    await twilio.say(ADA, 'hello')
    const problem = await until(async () => {
      const [pending] = await gateway.store.outbox.list('pending', 1)
      return pending?.problem?.includes('did not say') && pending.problem
    }, 'the second attempt')

    expect([problem, twilio.sentTo(ADA)]).toEqual([
      expect.stringMatching(/it is not known whether it was delivered: Something went wrong/),
      [],
    ])
    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: hello'])
  })

  it.for<[string, Fault, RegExp]>([
    ['there is no such number', { kind: 'status', status: 400, code: 21211 }, /not a valid phone number.*21211/],
    ['the sender is none', { kind: 'status', status: 400, code: 63007 }, /not a WhatsApp sender.*63007/],
    ['the person has opted out', { kind: 'status', status: 400, code: 21610 }, /opted out.*21610/],
    [
      'Twilio says something new',
      { kind: 'status', status: 400, code: 99999, message: 'No more.' },
      /^No more \(Twilio error 99999, https:/,
    ],
  ])('is given up at once when %s', async ([, fault, problem], { expect, onTestFinished }) => {
    const { gateway, twilio } = await open(onTestFinished)
    twilio.fail('create', fault)

    await twilio.say(ADA, 'hello')

    expect([await undelivered(gateway), twilio.sentTo(ADA)]).toEqual([expect.stringMatching(problem), []])
  })

  it('that Twilio accepted and WhatsApp did not is reported as undelivered, with the reason', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, gateway, twilio } = await open(onTestFinished)
    twilio.nextStatus = { status: 'failed', errorCode: 63016 }

    await twilio.say(ADA, 'hello')

    expect(await undelivered(gateway)).toMatch(WINDOW)
    const options = { limit: 10, isJson: false, width: 200, now: Date.now() }
    expect(await queueList(gateway.store, options)).toMatch(/Outside the 24-hour window of WhatsApp: .*63016/)
    await expect.poll(() => stage.logsOf('reply.undelivered').length).toEqual(1)
  })

  it('that WhatsApp did not accept is found by polling if there is no callback', async (context) => {
    const { expect, onTestFinished } = context
    const stage = await WhatsAppStage.open(onTestFinished)
    const gateway = await stage.start({}, { isListening: false })
    stage.twilio.nextStatus = { status: 'undelivered', errorCode: 63015 }

    stage.twilio.write(ADA, 'hello')

    expect(await undelivered(gateway)).toMatch(/has not joined the sandbox.*63015/)
  })

  it('stops at the first part that failed', async ({ expect, onTestFinished }) => {
    const { gateway, twilio } = await open(onTestFinished)
    twilio.nextStatus = { status: 'failed', errorCode: 63016 }
    twilio.tellsFirst = true

    await twilio.say(ADA, THREE_PARTS)

    expect([await undelivered(gateway), twilio.textsTo(ADA)]).toEqual([expect.stringMatching(WINDOW), [PARTS[0]]])
  })

  it('is sent again when the operator says so, and only what did not arrive', async ({ expect, onTestFinished }) => {
    const { gateway, twilio } = await open(onTestFinished)
    await twilio.say(ADA, THREE_PARTS)
    const sent = await until(() => twilio.sentTo(ADA).length === 3 && twilio.sentTo(ADA), 'all parts')
    await until(() => sent.every(({ status }) => status === 'delivered'), 'their delivery')
    const [, , third] = sent
    if (third) await twilio.tell(third, 'failed', 63018)
    await undelivered(gateway)

    const [{ id } = { id: '' }] = await gateway.store.outbox.list('undelivered', 1)
    await gateway.queue.retry(id)
    gateway.wake()

    await expect.poll(() => twilio.textsTo(ADA)).toEqual([...PARTS, PARTS[2]])
    expect(await gateway.store.outbox.list('undelivered', 1)).toEqual([])
  })

  it("continues after a part that was removed from Twilio's records", async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)
    twilio.fail('create', { kind: 'status', status: 500 }, 1, 1)

    await twilio.say(ADA, THREE_PARTS)
    await until(() => twilio.faultCount === 1, 'the fault')
    const [first] = twilio.sentTo(ADA)
    if (first) twilio.messages.splice(twilio.messages.indexOf(first), 1)

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(PARTS.slice(1))
    expect(first?.body).toEqual(PARTS[0])
  })

  it('that WhatsApp did not take while no gateway ran is found out by the next', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const before = await stage.start({}, { isListening: false })
    stage.twilio.nextStatus = undefined
    stage.twilio.write(ADA, 'hello')
    const [sent] = await until(() => stage.twilio.sentTo(ADA).length === 1 && stage.twilio.sentTo(ADA), 'the answer')
    await until(async () => (await before.store.outbox.list('pending', 1)).length === 0, 'its end')
    await stage.stop(before)

    if (sent) await stage.twilio.tell(sent, 'undelivered', 63016)
    const after = await stage.start({}, { isListening: false })

    expect(await undelivered(after)).toMatch(WINDOW)
  })

  it('that was sent again is not judged by what failed before', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const before = await stage.start({}, { isListening: false })
    stage.twilio.nextStatus = { status: 'undelivered', errorCode: 63015 }
    stage.twilio.write(ADA, 'hello')
    await undelivered(before)
    stage.twilio.nextStatus = { status: 'delivered' }
    const [{ id } = { id: '' }] = await before.store.outbox.list('undelivered', 1)
    await before.queue.retry(id)
    before.wake()
    await until(async () => (await before.store.outbox.get(id))?.state === 'delivered', 'its delivery')
    await stage.stop(before)

    stage.twilio.asked.splice(0)
    const after = await stage.start({}, { isListening: false })
    await until(() => stage.twilio.asked.includes('fetch'), 'a look')
    await until(() => stage.twilio.asked.filter((route) => route === 'list').length > 3, 'more looks')

    expect((await after.store.outbox.get(id))?.state).toEqual('delivered')
  })

  // Alone, since it changes the clock of the whole process.
  it.sequential('that is resent at once stays delivered, whatever was reported before', async (context) => {
    const { expect, onTestFinished } = context
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
    onTestFinished(() => void vi.useRealTimers())
    const { gateway, twilio } = await open(onTestFinished)
    twilio.nextStatus = { status: 'failed', errorCode: 63018 }
    await twilio.say(ADA, 'hello')
    await undelivered(gateway)
    const [{ id } = { id: '' }] = await gateway.store.outbox.list('undelivered', 1)

    twilio.nextStatus = { status: 'delivered' }
    await gateway.queue.retry(id)
    gateway.wake()
    await until(async () => (await gateway.store.outbox.get(id))?.state === 'delivered', 'its delivery')

    // The failure is reported twice, some seconds apart.
    await vi.advanceTimersByTimeAsync(6_000)
    expect((await gateway.store.outbox.get(id))?.state).toEqual('delivered')
  })

  it('needs no sign of typing before it', async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)
    twilio.fail('typing', { kind: 'status', status: 400, code: 20001 }, 100)

    await twilio.say(ADA, 'hello')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: hello'])
  })

  it('to nobody is given up with a sentence', async ({ expect, onTestFinished }) => {
    const { gateway } = await open(onTestFinished)

    await gateway.queue.say({ channel: 'whatsapp', address: 'global' }, 'hello')
    gateway.wake()

    expect(await undelivered(gateway)).toMatch(/There is no recipient/)
  })
})

async function open(onTestFinished: TestContext['onTestFinished']): Promise<{
  stage: WhatsAppStage
  gateway: Gateway
  twilio: FakeTwilio
}> {
  const stage = await WhatsAppStage.open(onTestFinished)
  const gateway = await stage.start()
  return { stage, gateway, twilio: stage.twilio }
}

/** Why the undelivered reply was not delivered. */
async function undelivered(gateway: Gateway): Promise<string> {
  return until(async () => (await gateway.store.outbox.list('undelivered', 1))[0]?.problem, 'an undelivered reply')
}
