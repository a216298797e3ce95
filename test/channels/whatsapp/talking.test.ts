// People write, and are answered: from the webhook to what Twilio is asked to send.

import { describe, it } from 'vitest'
import { STEPS_AGENT, steps } from '../../kit/steps-agent.js'
import { ADA, BEN, STRANGER, WhatsAppStage } from './stage.js'
import { until } from '../../kit/waiting.js'

describe('A person who may write', { concurrent: true }, () => {
  it('is answered, and continues in the same session', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()

    await stage.twilio.say(ADA, 'hello')
    await until(() => stage.twilio.textsTo(ADA).length === 1, 'the first answer')
    await stage.twilio.say(ADA, 'again')

    await expect.poll(() => stage.twilio.textsTo(ADA)).toEqual(['You said: hello', 'You said: again'])
    expect(stage.journal().map(({ isResumed }) => isResumed)).toEqual([false, true])
  })

  it('gets a long answer in parts that Twilio takes', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()
    const paragraphs = ['one', 'two', 'three'].map((word) => `${word} `.repeat(260).trim())

    await stage.twilio.say(ADA, steps({ text: paragraphs.join('\n\n') }))

    await expect.poll(() => stage.twilio.textsTo(ADA)).toEqual(paragraphs)
  })

  it('begins a new session with a reset word, alone or before a message', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({ session: { resetTriggers: ['/new', 'Fresh'] } })
    const { twilio } = stage

    await twilio.say(ADA, 'one')
    await until(() => twilio.textsTo(ADA).length === 1, 'the first answer')
    await twilio.say(ADA, 'Fresh two')
    await until(() => twilio.textsTo(ADA).length === 2, 'the second answer')
    await twilio.say(ADA, '/new')
    await until(() => twilio.textsTo(ADA).length === 3, 'the word about the session')
    await twilio.say(ADA, 'fresh three')

    await expect
      .poll(() => twilio.textsTo(ADA))
      .toEqual(['You said: one', 'You said: two', 'The next message starts a fresh session.', 'You said: fresh three'])
    expect(stage.journal().map(({ isResumed }) => isResumed)).toEqual([false, false, false])
  })

  it.for<[string, object]>([
    ['without settings for sessions', {}],
    ['with other words for it', { session: { resetTriggers: ['Fresh'] } }],
  ])('begins a new session with /new before a message, %s', async ([, reply], { expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start(reply)
    const { twilio } = stage

    await twilio.say(ADA, 'one')
    await until(() => twilio.textsTo(ADA).length === 1, 'the first answer')
    await twilio.say(ADA, '/new two')
    await until(() => twilio.textsTo(ADA).length === 2, 'the second answer')
    await twilio.say(ADA, '/New\nthree')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: one', 'You said: two', 'You said: three'])
    expect(stage.journal().map(({ isResumed }) => isResumed)).toEqual([false, false, false])
  })

  it('begins a new session after the messages that wait before it, not with them', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()
    const { twilio } = stage
    await twilio.say(ADA, steps({ hold: 'one' }, { text: 'one' }))
    await until(() => stage.journal().length === 1, 'the run')

    await twilio.say(ADA, 'two')
    await twilio.say(ADA, '/new three')
    await twilio.say(ADA, 'four')
    stage.release('one')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['one', 'You said: two', 'You said: three', 'You said: four'])
    expect(stage.journal().map(({ isResumed }) => isResumed)).toEqual([false, true, false, true])
  })

  it('sends a picture with a stop word under it to the agent', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()

    await stage.twilio.say(ADA, 'Wait', [{ type: 'image/png', content: Buffer.from('picture') }])
    await until(() => stage.journal().length === 1, 'the run')

    expect(stage.journal()[0]?.prompt).toMatch(/^Attached file: \S+ \(image\/png, 7 bytes\)\n.*\nWait$/s)
  })

  it.for(['stop', ' STOP ', 'Esc', 'abort', 'wait', 'exit'])('ends the run with %j', async (word, context) => {
    const { expect, onTestFinished } = context
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()
    const { twilio } = stage
    await twilio.say(ADA, steps({ hold: 'never' }))
    await until(() => stage.journal().length === 1, 'the run')

    await twilio.say(ADA, word)

    await expect.poll(() => twilio.textsTo(ADA)).toEqual([expect.stringContaining('Stopped')])
    expect(stage.alive()).toEqual([])
  })

  it('may use the commands of the gateway', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()

    await stage.twilio.say(ADA, '/status')

    await expect.poll(() => stage.twilio.textsTo(ADA)).toEqual([expect.stringContaining('agent: claude')])
  })

  it('sees that an answer comes, from the message on and as long as it takes', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({ typingIntervalSeconds: 1 })
    const { twilio } = stage

    const { sid } = await twilio.say(ADA, steps({ hold: 'a' }))
    await until(() => twilio.typing.length >= 4, 'four signs')
    stage.release('a')
    await until(() => twilio.sentTo(ADA).length === 1, 'the answer')
    const shown = twilio.typing.length
    await twilio.say(BEN, steps({ hold: 'b' }))
    await until(() => twilio.typing.length >= shown + 3, 'signs for another')

    expect(new Set(twilio.typing.slice(0, shown))).toEqual(new Set([sid]))
    expect(twilio.typing.slice(shown)).not.toContain(sid)
  })

  it('has a shared location passed to the agent', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()
    const { twilio } = stage
    const message = twilio.write(ADA, '')
    const form = new URLSearchParams({
      MessageSid: message.sid,
      From: message.from,
      To: message.to,
      Body: '',
      Latitude: '52.5',
      Longitude: '13.4',
      Label: 'Home',
    })

    await twilio.post('/whatsapp/webhook', form)

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: Location: 52.5, 13.4, Home'])
  })
})

describe('A conversation', { concurrent: true }, () => {
  it('is one for each person', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start()
    const { twilio } = stage

    await twilio.say(ADA, steps({ hold: 'a' }, { text: 'late' }))
    await until(() => stage.journal().length === 1, 'the first run')
    await twilio.say(BEN, 'hello')
    await until(() => twilio.textsTo(BEN).length === 1, 'the answer to the other')
    stage.release('a')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['late'])
    const sessions = stage.journal().map(({ sessionId }) => sessionId)
    expect(new Set(sessions).size).toEqual(2)
  })

  it('is shared by all with the scope global, and each is answered at their own number', async (context) => {
    const { expect, onTestFinished } = context
    const stage = await WhatsAppStage.open(onTestFinished)
    const gateway = await stage.start({ session: { scope: 'global' } })
    const { twilio } = stage

    await twilio.say(ADA, 'from Ada')
    await until(() => twilio.textsTo(ADA).length === 1, 'the first answer')
    await twilio.say(BEN, 'from Ben')
    await until(() => twilio.textsTo(BEN).length === 1, 'the second answer')
    await twilio.say(BEN, '/new')
    await until(() => twilio.textsTo(BEN).length === 2, 'the answer to the command')

    const [first, second] = stage.journal()
    expect({
      ada: twilio.textsTo(ADA),
      ben: twilio.textsTo(BEN),
      isOneSession: first?.sessionId === second?.sessionId && second?.isResumed,
      addresses: await gateway.store.conversations.addresses('whatsapp', 0),
    }).toEqual({
      ada: ['You said: from Ada'],
      ben: ['You said: from Ben', 'The next message starts a fresh session.'],
      isOneSession: true,
      addresses: ['global'],
    })
  })
})

describe('A stranger', { concurrent: true }, () => {
  it.for<[string, object]>([
    ['is not in the list', {}],
    ['there is no list', { allowFrom: undefined }],
    ['the list is empty', { allowFrom: [] }],
  ])('who writes when %s leaves nothing and hears nothing', async ([, reply], { expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const gateway = await stage.start(reply)
    const { twilio } = stage
    const picture = { type: 'image/png', content: Buffer.from('picture') }

    await twilio.say(STRANGER, 'hello')
    await twilio.say(STRANGER, '/status')
    await twilio.say(STRANGER, 'stop')
    await twilio.say(STRANGER, 'look', [picture])

    expect({
      addresses: await gateway.store.conversations.addresses('whatsapp', 0),
      sent: twilio.sentTo(STRANGER),
      typing: twilio.typing,
      fetched: twilio.asked.filter((route) => route === 'media'),
      refused: stage.logsOf('whatsapp.refused').map(({ from }) => from),
      isNumberLogged: stage.logged.some((line) => line.includes(STRANGER)),
    }).toEqual({
      addresses: [],
      sent: [],
      typing: [],
      fetched: [],
      refused: ['…9999', '…9999', '…9999', '…9999'],
      isNumberLogged: false,
    })
  })

  it('is answered when everybody may write', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({ allowFrom: ['*'] })

    await stage.twilio.say(STRANGER, 'hello')

    await expect.poll(() => stage.twilio.textsTo(STRANGER)).toEqual(['You said: hello'])
  })

  it('is answered from the moment on in which the operator lets them in', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const config = stage.config()
    await stage.startWith(config)
    const { twilio } = stage
    await twilio.say(STRANGER, 'too early')

    config.inbound?.reply.allowFrom?.push(STRANGER)
    await twilio.say(STRANGER, 'hello')

    await expect.poll(() => twilio.textsTo(STRANGER)).toEqual(['You said: hello'])
  })

  it('is not answered without inbound.reply, even if somebody has let them in', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const config = stage.config({ allowFrom: [ADA] })
    await stage.startWith(config)
    const { twilio } = stage
    await twilio.say(ADA, `/allow ${STRANGER}`)
    await until(() => twilio.textsTo(ADA).length === 1, 'the answer')
    delete config.inbound
    await twilio.say(STRANGER, 'hello')
    await twilio.say(ADA, 'hello')
    await until(() => stage.logsOf('whatsapp.refused').length === 2, 'two refusals')
    expect([twilio.textsTo(STRANGER), stage.journal()]).toEqual([[], []])
  })

  it('cannot leave the command line of the operator by a command of the agent', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({ allowFrom: [ADA], command: [STEPS_AGENT, '-p', '{{Body}}', '--model', 'operators'] })
    const { twilio } = stage
    await twilio.say(ADA, 'hello')
    await until(() => twilio.textsTo(ADA).length === 1, 'the first answer')
    await twilio.say(ADA, '//review')
    await until(() => twilio.textsTo(ADA).length === 2, 'the refusal')
    await twilio.say(ADA, '/compact')
    await until(() => twilio.textsTo(ADA).length === 3, 'the answer')
    expect([twilio.textsTo(ADA).slice(1), stage.journal().slice(1)]).toEqual([
      [expect.stringContaining('/review was not passed on'), expect.stringContaining('/compact')],
      [expect.objectContaining({ prompt: '/compact', model: 'operators' })],
    ])
  })

  it('is answered once one whose number is configured has let them in, and lets nobody in', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const gateway = await stage.start({ allowFrom: [ADA] })
    const { twilio } = stage
    await twilio.say(STRANGER, 'too early')
    await twilio.say(ADA, '/allow +49 151 0000-9999')
    await until(() => twilio.textsTo(ADA).length === 1, 'the answer')
    await twilio.say(STRANGER, 'hello')
    await until(() => twilio.textsTo(STRANGER).length === 1, 'an answer to the stranger')
    await twilio.say(STRANGER, `/allow ${BEN}`)
    await until(() => twilio.textsTo(STRANGER).length === 2, 'the refusal')
    await twilio.say(ADA, '/allow ada')
    await twilio.say(ADA, `/disallow ${STRANGER}`)
    await until(() => twilio.textsTo(ADA).length === 3, 'that it was taken back')
    await twilio.say(STRANGER, 'too late')

    expect([twilio.textsTo(ADA), twilio.textsTo(STRANGER), await gateway.store.admissions.list()]).toEqual([
      [
        `${STRANGER} now has access. /disallow revokes it.`,
        'Write the number like +4915112345678.',
        `${STRANGER} no longer has access.`,
      ],
      ['You said: hello', 'Only people listed in inbound.reply.allowFrom may let people in.'],
      [],
    ])
  })
})
