import { describe, expect, it, onTestFinished } from 'vitest'
import type { Channel, OutgoingReply } from '../../src/channels/types.js'
import { Sender, type SenderOptions } from '../../src/turns/deliver.js'
import type { Delivery, Outbox } from '../../src/store/outbox.js'
import { openTestStore } from '../kit/engines.js'
import { SILENT_LOG } from '../kit/log.js'
import { queueOn } from '../kit/queue.js'

const EXPIRY_MS = 900_000
const START = 1_000_000

interface Attempt {
  text: string
  key: string
  at: number
}

/** `send` is what the platform does with a reply; by default it accepts every one. */
async function setup(send: Channel['send'] = async () => {}, options: Partial<SenderOptions> = {}) {
  const store = await openTestStore({ file: ':memory:' })
  const clock = { now: START }
  const attempts: Attempt[] = []
  const sent: OutgoingReply[] = []
  const told: Array<[string, string, string | undefined]> = []
  const steps: string[] = []
  /** How often a postponed reply was recorded. */
  const put = { off: 0 }
  let looks = 0
  const channel: Channel = {
    name: 'test',
    start: async () => {},
    send: async (reply, signal) => {
      attempts.push({ text: reply.text, key: reply.idempotencyKey, at: clock.now - START })
      await send(reply, signal)
      sent.push(reply)
    },
    stop: async () => {},
    close: async () => {},
  }
  const claim: Outbox['claim'] = async (...given) => {
    const delivery = await store.outbox.claim(...given)
    if (!delivery) looks += 1
    return delivery
  }
  const retry: Outbox['retry'] = async (...given) => {
    await store.outbox.retry(...given)
    put.off += 1
  }
  const outbox = Object.assign(Object.create(store.outbox) as Outbox, { claim, retry })
  const sender = new Sender({
    gatewayId: 'g1',
    channels: [channel],
    store: { outbox, inbox: store.inbox, runs: store.runs, events: store.events },
    onSent: ({ id, problem }) => told.push(['sent', id, problem]),
    onUndelivered: ({ id, problem }) => told.push(['undelivered', id, problem]),
    onStep: (step) => steps.push(step),
    scrub: (text) => text.replaceAll('sk-0123456789', '[secret]'),
    log: SILENT_LOG,
    now: () => clock.now,
    ...options,
  })
  onTestFinished(() => sender.stop(0))

  return {
    store,
    outbox,
    clock,
    sender,
    attempts,
    sent,
    told,
    steps,
    putOff: () => put.off,
    add: async (id: string, address = 'a', more: Partial<Delivery> = {}) => {
      const channelName = more.channel ?? 'test'
      const { id: conversationId, seq } = await store.conversations.enter(
        { channel: channelName, address },
        `c-${address}`,
        START,
      )
      const reply = { text: `text of ${id}`, notes: ['A note.'], isError: false }
      const about = { id, conversationId, channel: channelName, address, seq, messageId: `m-${id}` }
      await store.outbox.add({ ...about, reply, expiresAt: START + EXPIRY_MS, ...more }, clock.now)
    },
    /** Settles when the sender has looked and found nothing more to do. */
    look: async () => {
      const before = looks
      sender.wake()
      await expect.poll(() => looks, { interval: 1 }).toBeGreaterThan(before)
    },
    stateOf: async (id: string) => (await store.outbox.get(id))?.state,
  }
}

const fail = async () => Promise.reject(new Error('The platform is down'))

describe('a reply', () => {
  it('goes to its channel completely, under its key, and is delivered', async () => {
    const { add, look, sent, told, steps, stateOf } = await setup()
    await add('r1')
    await look()
    await expect.poll(() => stateOf('r1')).toEqual('delivered')
    expect([sent, told, steps]).toEqual([
      [
        {
          text: 'text of r1',
          notes: ['A note.'],
          isError: false,
          idempotencyKey: 'r1',
          address: 'a',
          messageId: 'm-r1',
          createdAt: START,
          attempt: 1,
        },
      ],
      [['sent', 'r1', undefined]],
      ['sent'],
    ])
  })

  it('that is not taken is tried again under the same key, after a time that doubles up to a minute', async () => {
    const { clock, add, look, attempts, putOff } = await setup(fail)
    await add('r1')
    const delays = [1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => seconds * 1_000)
    await look()
    for (const [index, delayMs] of delays.entries()) {
      await expect.poll(putOff).toEqual(index + 1)
      clock.now += delayMs - 1
      await look()
      expect(attempts.length).toEqual(index + 1)
      clock.now += 1
      await look()
    }
    await expect.poll(() => attempts.length).toEqual(9)
    const times = delays.reduce<number[]>((sums, delayMs) => [...sums, (sums.at(-1) ?? 0) + delayMs], [0])
    expect(attempts).toEqual(times.map((at) => ({ text: 'text of r1', key: 'r1', at })))
  })

  it("says when it was created, which attempt it is, and the platform's id of the message it answers", async () => {
    const seen: Partial<OutgoingReply>[] = []
    const { store, clock, add, look, putOff } = await setup(async (reply) => {
      const { idempotencyKey, messageId, platformId, createdAt, attempt } = reply
      seen.push({
        idempotencyKey,
        attempt,
        createdAt,
        ...(messageId && { messageId }),
        ...(platformId && { platformId }),
      })
      if (attempt < 3) throw new Error('The platform is down')
    })
    await add('r1')
    const message = {
      conversationId: 'c-a',
      channel: 'test',
      platformId: 'p-1',
      kind: 'message',
      author: 'ann',
    } as const
    await store.inbox.add({ ...message, id: 'm-r1', seq: 1, text: 'hello' }, 'open', null, START)
    for (const delayMs of [1_000, 2_000]) {
      const before = putOff()
      await look()
      await expect.poll(putOff).toEqual(before + 1)
      clock.now += delayMs
    }
    await look()
    const about = { idempotencyKey: 'r1', messageId: 'm-r1', platformId: 'p-1', createdAt: START }
    await expect.poll(() => seen).toEqual([1, 2, 3].map((attempt) => ({ ...about, attempt })))
  })

  it('goes with all that was put into it', async () => {
    const { add, look, sent } = await setup()
    const reply = {
      text: 'Here it is.',
      notes: [],
      isError: true,
      files: [{ path: 'plot.png', directory: '/work' }],
      canRetry: true,
      waitsUntil: START + 5,
    } as const
    await add('r1', 'a', { reply: { ...reply, notes: [], files: [...reply.files] } })
    await look()
    await expect.poll(() => sent).toMatchObject([reply])
  })

  it('that a channel does not take leaves no secret behind', async () => {
    const { add, look, told } = await setup(async () => {
      throw new Error('It was refused: sk-0123456789')
    })
    await add('r1', 'a', { expiresAt: START + 500 })
    await look()
    await expect.poll(() => told).toEqual([['undelivered', 'r1', 'It was refused: [secret]']])
  })

  it('that expires is kept as undelivered, with the last problem, and reported', async () => {
    const { clock, add, look, attempts, told, putOff, stateOf } = await setup(fail)
    await add('r1', 'a', { expiresAt: START + 2_500 })
    await look()
    await expect.poll(putOff).toEqual(1)
    clock.now += 1_000
    await look()
    await expect.poll(() => told).toEqual([['undelivered', 'r1', 'The platform is down']])
    await look()
    clock.now += 3_600_000
    await look()
    expect([attempts.length, told.length, await stateOf('r1')]).toEqual([2, 1, 'undelivered'])
  })

  it('that is sent again by hand after it was given up comes as a later attempt, under its key', async () => {
    const seen: [string, number][] = []
    const { store, clock, add, look, told, stateOf } = await setup(async ({ idempotencyKey, attempt }) => {
      seen.push([idempotencyKey, attempt])
      if (attempt === 1) throw new Error('The platform is down')
    })
    const queue = queueOn(store, { replyExpiryMs: EXPIRY_MS, now: () => clock.now })
    await add('r1', 'a', { expiresAt: START + 500 })
    await look()
    await expect.poll(() => told).toEqual([['undelivered', 'r1', 'The platform is down']])
    await queue.retry('r1')
    await look()
    await expect.poll(() => stateOf('r1')).toEqual('delivered')
    expect(seen).toEqual([
      ['r1', 1],
      ['r1', 2],
    ])
  })

  it('for a channel that is not there any more expires as well, and is reported', async () => {
    const { clock, add, look, attempts, told, stateOf } = await setup()
    await add('r1', 'a', { channel: 'gone' })
    await look()
    clock.now += EXPIRY_MS
    await look()
    await expect.poll(() => stateOf('r1')).toEqual('undelivered')
    expect([attempts, told]).toEqual([[], [['undelivered', 'r1', 'The reply was not sent in time.']]])
  })

  it('waits for the earlier ones of its conversation, and for nobody else', async () => {
    let isDown = true
    const { clock, add, look, sent, putOff, stateOf } = await setup(async ({ address }) => {
      if (address === 'a' && isDown) throw new Error('The platform is down')
    })
    await add('a1', 'a')
    await add('a2', 'a')
    await add('b1', 'b')
    await look()
    await expect.poll(() => stateOf('b1')).toEqual('delivered')
    await expect.poll(putOff).toEqual(1)
    isDown = false
    clock.now += 1_000
    await look()
    await expect.poll(() => sent.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['b1', 'a1', 'a2'])
  })

  it('comes right after the one it waited for, even if that was claimed long before it was sent', async () => {
    const { store, sender, add, look, sent } = await setup(async () => {}, { pollMs: 1_000_000 })
    await add('a1')
    const first = await sender.claim(store)
    await add('a2')
    await look()
    if (first) sender.send(first)
    await expect.poll(() => sent.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['a1', 'a2'])
  })

  it('comes after an earlier one was given up', async () => {
    const { add, look, sent } = await setup(async ({ idempotencyKey }) => {
      if (idempotencyKey === 'a1') throw new Error('Too long for this platform')
    })
    await add('a1', 'a', { expiresAt: START + 500 })
    await add('a2', 'a')
    await look()
    await expect.poll(() => sent.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['a2'])
  })

  it('that a channel never accepts is given up for now, and the channel is told to stop', async () => {
    const signals: AbortSignal[] = []
    const hang: Channel['send'] = (_reply, signal) => {
      signals.push(signal)
      return new Promise(() => {})
    }
    const { outbox, clock, add, look, attempts } = await setup(hang, { sendTimeoutMs: 50 })
    await add('r1')
    await look()
    await expect.poll(() => signals[0]?.aborted).toEqual(true)
    await expect
      .poll(async () => (await outbox.get('r1'))?.problem)
      .toEqual('The channel did not accept it within 0.05 s')
    clock.now += 1_000
    await look()
    await expect.poll(() => attempts.length).toEqual(2)
  })

  it('that was taken but could not be noted is sent again under its key when its lease has ended', async () => {
    const { outbox, clock, add, look, attempts, stateOf } = await setup()
    const settle = outbox.settle.bind(outbox)
    outbox.settle = async () => {
      outbox.settle = settle
      throw new Error('The disk is full')
    }
    await add('r1')
    await look()
    await expect.poll(() => attempts.length).toEqual(1)
    await look()
    const before = await stateOf('r1')
    clock.now += 45_000
    await look()
    await expect.poll(() => stateOf('r1')).toEqual('delivered')
    expect([before, attempts.map(({ key }) => key)]).toEqual(['pending', ['r1', 'r1']])
  })

  it('is not taken by two at once', async () => {
    const { sender, add, look, attempts, stateOf } = await setup()
    await add('r1')
    for (let round = 0; round < 20; round += 1) sender.wake()
    await look()
    await expect.poll(() => stateOf('r1')).toEqual('delivered')
    expect(attempts.length).toEqual(1)
  })
})

describe('stopping', () => {
  it('sends what can be sent, of however many conversations, and no more after it', async () => {
    const { sender, add, sent } = await setup()
    for (let index = 0; index < 25; index += 1) await add(`r${index}`, `address ${index}`)
    await sender.stop(10_000)
    const count = sent.length
    await add('late', 'late')
    sender.wake()
    await sender.stop(0)
    expect([count, sent.length]).toEqual([25, 25])
  })

  it('waits for replies in flight', async () => {
    let take = (): void => {}
    const taken = new Promise<void>((resolve) => {
      take = resolve
    })
    const { sender, add, look, attempts, stateOf } = await setup(() => taken)
    await add('r1')
    await look()
    await expect.poll(() => attempts.length).toEqual(1)
    const stopped = sender.stop(0)
    take()
    await stopped
    expect(await stateOf('r1')).toEqual('delivered')
  })
  it('does not wait longer than it may for a channel that hangs, and keeps the reply for the next start', async () => {
    const { sender, outbox, add, look, attempts, told } = await setup(() => new Promise(() => {}))
    await add('r1')
    await look()
    await expect.poll(() => attempts.length).toEqual(1)
    await sender.stop(0)
    const { state, problem } = (await outbox.get('r1')) ?? {}
    expect([state, problem, told]).toEqual(['pending', 'The gateway is stopping', []])
  })
})

describe('a channel that hangs', () => {
  it('does not keep the replies of another waiting', async () => {
    const never = new Promise<void>(() => {})
    const channelOf = (name: string, send: Channel['send']): Channel => ({
      name,
      start: async () => {},
      send,
      stop: async () => {},
      close: async () => {},
    })
    const seen: string[] = []
    const channels = [channelOf('hanging', () => never), channelOf('healthy', async ({ text }) => void seen.push(text))]
    const { sender, add } = await setup(undefined, { channels })
    for (let number = 1; number <= 30; number += 1) await add(`h${number}`, `h${number}`, { channel: 'hanging' })
    await add('one', 'a', { channel: 'healthy' })
    sender.wake()
    await expect.poll(() => seen).toEqual(['text of one'])
  })

  it('is not sent the same reply again when the whole gateway slept past the lease', async () => {
    const { clock, sender, attempts, add } = await setup(() => new Promise<void>(() => {}))
    await add('one')
    sender.wake()
    await expect.poll(() => attempts.length).toEqual(1)
    clock.now += 60_000
    await add('two', 'b')
    sender.wake()
    await expect.poll(() => attempts.map(({ text }) => text)).toEqual(['text of one', 'text of two'])
  })
})
