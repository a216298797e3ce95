// Requests to our public URL: from Twilio, once, twice or late, or from someone else.

import { setTimeout as sleep } from 'node:timers/promises'
import { describe, it, type TestContext } from 'vitest'
import { steps } from '../../kit/steps-agent.js'
import { ADA, PUBLIC_URL, WhatsAppStage } from './stage.js'
import { until } from '../../kit/waiting.js'

describe('A webhook', { concurrent: true }, () => {
  it('is answered at once, whatever the agent takes', async ({ expect, onTestFinished }) => {
    const { stage, twilio } = await open(onTestFinished)

    const response = await twilio.deliver(twilio.write(ADA, steps({ hold: 'never' })))

    expect([response.status, response.body, stage.twilio.sentTo(ADA)]).toEqual([
      200,
      '<?xml version="1.0" encoding="UTF-8"?><Response></Response>',
      [],
    ])
  })

  it('that comes again is answered once', async ({ expect, onTestFinished }) => {
    const { stage, twilio } = await open(onTestFinished)
    const message = twilio.write(ADA, 'hello')
    const command = twilio.write(ADA, '/help')

    const all = [message, message, command, message, command]
    const statuses = (await Promise.all(all.map((one) => twilio.deliver(one)))).map(({ status }) => status)
    await until(() => twilio.sentTo(ADA).length >= 2, 'two answers')
    statuses.push((await twilio.deliver(message)).status, (await twilio.deliver(command)).status)
    await twilio.say(ADA, 'last')
    await until(() => twilio.textsTo(ADA).includes('You said: last'), 'the last answer')

    expect({ statuses, sent: twilio.sentTo(ADA).length, asked: stage.journal().length }).toEqual({
      statuses: [200, 200, 200, 200, 200, 200, 200],
      sent: 3,
      asked: 2,
    })
  })

  it('that comes again to the next gateway is answered once', async ({ expect, onTestFinished }) => {
    const { stage, twilio, gateway } = await open(onTestFinished)
    const message = await twilio.say(ADA, 'hello')
    const command = await twilio.say(ADA, '/help')
    await until(() => twilio.sentTo(ADA).length === 2, 'the answers')
    await stage.stop(gateway)
    await stage.start()

    await twilio.deliver(message)
    await twilio.deliver(command)
    await twilio.say(ADA, 'last')

    await until(() => twilio.textsTo(ADA).includes('You said: last'), 'the last answer')
    expect(twilio.sentTo(ADA).length).toEqual(3)
  })

  it('that comes out of order is answered all the same, each once', async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)
    const messages = ['one', 'two', 'three'].map((text) => twilio.write(ADA, text))

    for (const message of messages.toReversed()) await twilio.deliver(message)

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: three', 'You said: two', 'You said: one'])
  })

  it('that comes after the poll has found its message changes nothing', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    const first = await stage.start()
    await stage.stop(first)
    const message = twilio.write(ADA, 'missed')
    await stage.start()
    await until(() => twilio.sentTo(ADA).length === 1, 'the answer to what was missed')

    await twilio.deliver(message)
    await twilio.say(ADA, 'last')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: missed', 'You said: last'])
  })

  it('cannot be stored: Twilio is told, and the message is found by the poll of the next start', async (context) => {
    const { expect, onTestFinished } = context
    const { stage, twilio, gateway } = await open(onTestFinished)
    const { inbox } = gateway.store
    const message = twilio.write(ADA, 'hello')
    inbox.findByPlatformId = () => Promise.reject(new Error('The disk is full'))

    const { status } = await twilio.deliver(message)
    await stage.stop(gateway)
    await stage.start()

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: hello'])
    expect(status).toEqual(500)
  })

  it.for<[string, Parameters<WhatsAppStage['twilio']['deliver']>[1], number]>([
    ['is not signed', { signature: '' }, 403],
    ['is signed by somebody else', { signature: 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=' }, 403],
    ['was changed on the way', { tamper: (form) => form.set('Body', 'rm -rf /') }, 403],
    ['was given another sender', { tamper: (form) => form.set('From', 'whatsapp:+4915100000000') }, 403],
    ['was given more', { tamper: (form) => form.append('Body', 'and more') }, 403],
    ['is too large', { body: `Body=${'x'.repeat(200_000)}` }, 413],
    ['is for another host', { headers: { host: 'evil.example' } }, 200],
  ])('that %s', async ([, change, status], { expect, onTestFinished }) => {
    const { gateway, twilio } = await open(onTestFinished)

    const response = await twilio.deliver(twilio.write(ADA, 'hello'), change)

    const addresses = await gateway.store.conversations.addresses('whatsapp', 0)
    expect([response.status, addresses]).toEqual([status, status === 200 ? [ADA] : []])
    if (status === 413) expect(response.body).toContain('The body is larger than 128 KB. Send less.')
  })

  it('says how large it is only by coming: it is cut off', async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)
    const body = `Body=${'x'.repeat(200_000)}`

    const response = await twilio.deliver(twilio.write(ADA, 'hello'), {
      body,
      headers: { 'transfer-encoding': 'chunked' },
    })

    expect(response.status).toEqual(413)
  })

  it('for another number of the account is ignored', async ({ expect, onTestFinished }) => {
    const { gateway, twilio } = await open(onTestFinished)
    const message = twilio.write(ADA, 'hello')
    message.to = 'whatsapp:+14150000000'

    const { status } = await twilio.deliver(message)

    expect([status, await gateway.store.conversations.addresses('whatsapp', 0)]).toEqual([200, []])
  })

  it('is found below the path of the public URL, too', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    await stage.startWith({ ...stage.config(), publicUrl: `${PUBLIC_URL}/aetheel` })
    const target = twilio.webhook?.target ?? ''

    // Behind a proxy that keeps the path, and behind one that strips it.
    twilio.webhook = { target: `${target}/aetheel`, publicUrl: `${PUBLIC_URL}/aetheel` }
    await twilio.say(ADA, 'one')
    twilio.webhook = { target, publicUrl: `${PUBLIC_URL}/aetheel` }
    await twilio.say(ADA, 'two')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: one', 'You said: two'])
  })
})

describe('The public name', { concurrent: true }, () => {
  it('opens only what Twilio needs', async ({ expect, onTestFinished }) => {
    const { twilio } = await open(onTestFinished)
    const paths = ['/health', '/docs', '/openapi.json', '/projects', '/whatsapp', '/whatsapp/webhook']

    const answers = await Promise.all(paths.map((path) => twilio.fetchFile(`${PUBLIC_URL}${path}`)))

    expect(answers.map(({ status }) => status)).toEqual([421, 421, 421, 421, 421, 405])
  })
})

describe('A status', { concurrent: true }, () => {
  it('that is not signed changes nothing', async ({ expect, onTestFinished }) => {
    const { gateway, twilio } = await open(onTestFinished)
    await twilio.say(ADA, 'hello')
    const [sent] = await until(() => twilio.sentTo(ADA).length === 1 && twilio.sentTo(ADA), 'the answer')
    const path = sent?.statusCallback?.slice(PUBLIC_URL.length) ?? ''
    const form = new URLSearchParams({ MessageSid: sent?.sid ?? '', MessageStatus: 'failed', ErrorCode: '63016' })
    await until(() => sent?.status === 'delivered', 'its delivery')

    const { status } = await twilio.post(path, form, { signature: 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=' })
    await sleep(100)

    expect([status, await gateway.store.outbox.list('undelivered', 10)]).toEqual([403, []])
  })

  it('with an empty error code is reported without one', async ({ expect, onTestFinished }) => {
    const { gateway, twilio } = await open(onTestFinished)
    await twilio.say(ADA, 'hello')
    const [sent] = await until(() => twilio.sentTo(ADA).length === 1 && twilio.sentTo(ADA), 'the answer')
    const path = sent?.statusCallback?.slice(PUBLIC_URL.length) ?? ''
    const form = new URLSearchParams({ MessageSid: sent?.sid ?? '', MessageStatus: 'failed', ErrorCode: '' })

    await twilio.post(path, form)

    const undelivered = async () => (await gateway.store.outbox.list('undelivered', 1))[0]?.problem
    await expect.poll(undelivered).toEqual('Twilio says it was not delivered: failed.')
  })
})

async function open(onTestFinished: TestContext['onTestFinished']) {
  const stage = await WhatsAppStage.open(onTestFinished)
  const gateway = await stage.start()
  return { stage, twilio: stage.twilio, gateway }
}
