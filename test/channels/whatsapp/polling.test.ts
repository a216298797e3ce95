// Polling Twilio for messages: always without a public URL; with one, for what the webhook missed.

import { setTimeout as sleep } from 'node:timers/promises'
import { describe, it } from 'vitest'
import type { Incoming } from '../../../src/channels/whatsapp/incoming.js'
import { Poller } from '../../../src/channels/whatsapp/poller.js'
import type { TwilioMessage } from '../../../src/channels/whatsapp/twilio-api.js'
import { createLog } from '../../../src/log.js'
import { steps } from '../../kit/steps-agent.js'
import { ADA, BEN, STRANGER, WhatsAppStage } from './stage.js'
import { until } from '../../kit/waiting.js'

const ASKING = { isListening: false }
const PICTURE = { type: 'image/jpeg', content: Buffer.from('a picture') }

describe('A gateway without a public URL', { concurrent: true }, () => {
  it('answers messages that come while it runs, oldest first', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    await stage.start({}, ASKING)

    for (const text of ['one', 'two', 'three']) twilio.write(ADA, text)
    twilio.write(BEN, 'other')

    await expect
      .poll(() => [twilio.textsTo(ADA), twilio.textsTo(BEN)])
      .toEqual([['You said: one', 'You said: two', 'You said: three'], ['You said: other']])
  })

  it('ignores messages from before its first start', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    const old = twilio.write(ADA, 'long ago')
    old.createdAt -= 60_000
    old.sentAt = old.createdAt
    await stage.start({}, ASKING)

    twilio.write(ADA, 'now')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: now'])
    expect(stage.journal().length).toEqual(1)
  })

  it('answers after a restart what came in the meantime, and nothing twice', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    const first = await stage.start({}, ASKING)
    twilio.write(ADA, 'before')
    twilio.write(ADA, '/help')
    await until(() => twilio.sentTo(ADA).length === 2, 'the first answers')
    await stage.stop(first)
    twilio.write(ADA, 'meanwhile one')
    twilio.write(ADA, 'meanwhile two')

    await stage.start({}, ASKING)
    await until(() => twilio.sentTo(ADA).length === 4, 'the further answers')
    twilio.write(ADA, 'after')

    await expect
      .poll(() => twilio.textsTo(ADA).filter((text) => text.startsWith('You said')))
      .toEqual(['You said: before', 'You said: meanwhile one', 'You said: meanwhile two', 'You said: after'])
    expect(twilio.sentTo(ADA).length).toEqual(5)
  })

  it('finds everything when Twilio gives it in pages', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    twilio.pageSize = 2
    const gateway = await stage.start({}, ASKING)
    await stage.stop(gateway)
    const texts = ['a', 'b', 'c', 'd', 'e']
    for (const text of texts) twilio.write(ADA, text)

    await stage.start({}, ASKING)

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(texts.map((text) => `You said: ${text}`))
  })

  it('continues after Twilio was unavailable', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    twilio.fail('list', { kind: 'status', status: 503 }, 2)
    twilio.fail('list', { kind: 'drop' }, 2)
    await stage.start({}, ASKING)

    twilio.write(ADA, 'hello')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: hello'])
    expect(stage.logsOf('whatsapp.reached-again').length).toBeGreaterThan(0)
  })

  it('does not start with credentials that Twilio refuses', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const config = { ...stage.config({}, {}, false), twilioAuthToken: 'wrong' }

    await expect(stage.startWith(config)).rejects.toThrow(/Twilio rejected the credentials.*20003/)
  })

  it('keeps nothing of strangers', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const gateway = await stage.start({}, ASKING)
    const { twilio } = stage
    twilio.write(STRANGER, 'hello')

    twilio.write(ADA, 'hello')
    await until(() => twilio.sentTo(ADA).length === 1, 'the answer')

    const addresses = await gateway.store.conversations.addresses('whatsapp', 0)
    expect([addresses, stage.logsOf('whatsapp.refused').length]).toEqual([[ADA], 1])
  })

  it('starts even if Twilio no longer has a file that was sent in the meantime, and tells the person', async (context) => {
    const { expect, onTestFinished } = context
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    const first = await stage.start({}, ASKING)
    await stage.stop(first)
    twilio.write(ADA, 'look', [PICTURE])
    twilio.fail('media-list', { kind: 'status', status: 404, code: 20404, message: 'gone' }, 100)

    await stage.start({}, ASKING)

    const problem = 'it could not be fetched (Twilio no longer has it). Send it again.'
    await expect
      .poll(() => twilio.textsTo(ADA).toSorted())
      .toEqual([`The file "file" was not saved: ${problem}`, 'You said: look'])
  })

  it('starts even if a file that was sent in the meantime does not arrive', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    const first = await stage.start({}, ASKING)
    await stage.stop(first)
    twilio.write(ADA, 'look', [PICTURE])
    twilio.fail('media', { kind: 'hang' })

    const outcome = await Promise.race([stage.start({}, ASKING).then(() => 'started'), sleep(15_000, 'waits')])

    expect(outcome).toEqual('started')
  })

  it('answers others while a file does not come', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({}, ASKING)
    const { twilio } = stage
    twilio.fail('media', { kind: 'hang' })
    twilio.write(ADA, 'look', [PICTURE])
    await until(() => twilio.faultCount === 1, 'the file')

    twilio.write(BEN, 'hello')

    await expect.poll(() => twilio.textsTo(BEN)).toEqual(['You said: hello'])
  })

  it('continues with the rest if a message cannot be stored, and stores it later', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({}, ASKING)
    const { twilio } = stage
    twilio.nextStatus = undefined
    twilio.fail('media-list', { kind: 'status', status: 503 }, 6)
    twilio.write(ADA, 'look', [PICTURE])
    await until(() => twilio.faultCount > 0, 'the failure')

    twilio.write(BEN, 'hello')

    await until(() => twilio.asked.includes('fetch'), 'the question what became of the answer')
    await expect
      .poll(() => [twilio.textsTo(BEN), twilio.textsTo(ADA)])
      .toEqual([['You said: hello'], [expect.stringMatching(/look$/)]])
    expect(stage.logsOf('whatsapp.not-asked')).toEqual([])
  })

  it('stops the run of the person who asks for it', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    await stage.start({}, ASKING)
    const { twilio } = stage
    twilio.write(ADA, steps({ hold: 'never' }))
    await until(() => stage.journal().length === 1, 'the run')

    twilio.write(ADA, 'stop')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual([expect.stringContaining('Stopped')])
  })
})

describe('A gateway with a public URL', { concurrent: true }, () => {
  it('finds at its start what the webhook could not deliver', async ({ expect, onTestFinished }) => {
    const stage = await WhatsAppStage.open(onTestFinished)
    const { twilio } = stage
    const first = await stage.start()
    await stage.stop(first)
    twilio.write(ADA, 'missed')

    await stage.start()
    await until(() => twilio.sentTo(ADA).length === 1, 'the answer')
    await twilio.say(ADA, 'new')

    await expect.poll(() => twilio.textsTo(ADA)).toEqual(['You said: missed', 'You said: new'])
  })
})

describe('The poller', () => {
  const HOUR_MS = 3_600_000

  it('gives up a message that fails for an hour while others do not, and its cursor advances', async ({ expect }) => {
    const poller = open({ fails: new Set(['SM0']) })
    await poller.load()

    for (let count = 0; count < 12; count += 1) {
      poller.hear(`SM${count}`)
      await poller.pollAfter(HOUR_MS / 10)
    }
    await poller.pollAfter(0)

    expect([poller.failures('SM0'), poller.logged(), poller.cursor()]).toEqual([
      12,
      ['whatsapp.message-not-taken', 'whatsapp.message-given-up'],
      poller.now(),
    ])
  })

  it('gives nothing up while nothing can be taken, and its cursor waits', async ({ expect }) => {
    const fails = new Set(['SM0', 'SM1'])
    const poller = open({ fails })
    await poller.load()
    poller.hear('SM0')
    poller.hear('SM1')
    const heardAt = poller.now()

    for (let count = 0; count < 20; count += 1) await poller.pollAfter(HOUR_MS)
    const cursor = poller.cursor()
    fails.clear()
    await poller.pollAfter(HOUR_MS)

    expect([cursor, poller.taken()]).toEqual([heardAt, ['SM0', 'SM1']])
  })

  it('forgets a failed message that Twilio no longer has', async ({ expect }) => {
    const poller = open({ fails: new Set(['SM0']) })
    await poller.load()
    poller.hear('SM0')
    await poller.pollAfter(HOUR_MS)

    poller.remove('SM0')
    await poller.pollAfter(HOUR_MS)

    expect(poller.cursor()).toEqual(poller.now())
  })

  /** With its own clock, and a list in place of Twilio. */
  function open({ fails }: { fails: Set<string> }) {
    let now = 1_000_000_000
    let messages: TwilioMessage[] = []
    const values = new Map<string, string>()
    const tried: string[] = []
    const taken: string[] = []
    const lines: string[] = []
    const poller = new Poller({
      api: {
        // oxlint-disable-next-line typescript/require-await -- as the real one is
        async *pages() {
          yield messages.toReversed()
        },
        media: async () => [],
      },
      host: {
        recall: async (name) => values.get(name),
        remember: async (name, value) => void values.set(name, value),
      },
      ownNumber: '+14155238886',
      intervalMs: 5_000,
      take: async ({ sid }: Incoming) => {
        tried.push(sid)
        if (fails.has(sid)) throw new Error('It cannot be stored')
        taken.push(sid)
      },
      alsoPoll: async () => {},
      signal: new AbortController().signal,
      log: createLog({ level: 'info', destination: { write: (line) => lines.push(String(line)) > 0 } }),
      now: () => now,
    })
    return {
      load: () => poller.load(),
      hear: (sid: string) => {
        const about = { status: 'received', from: ADA, body: sid, mediaCount: 0, isInbound: true }
        messages.push({ sid, ...about, createdAt: now, sentAt: now })
      },
      remove: (sid: string) => {
        messages = messages.filter((message) => message.sid !== sid)
      },
      pollAfter: async (ms: number) => {
        now += ms
        await poller.poll()
      },
      now: () => now,
      cursor: () => Number(values.get('cursor')),
      taken: () => taken,
      failures: (sid: string) => tried.filter((one) => one === sid).length,
      logged: () => lines.map((line) => (JSON.parse(line) as { msg: string }).msg),
    }
  }
})
