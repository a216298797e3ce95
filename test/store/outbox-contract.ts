import { describe, expect, it } from 'vitest'
import type { TestEngine } from '../kit/engines.js'
import { CHANNEL, createStage, LEASE_MS, type Stage, TEXTS } from './stage.js'

export function describeOutboxContract(engine: TestEngine): void {
  describe('a reply', () => {
    it('is claimed with its key, its number and its first attempt', async () => {
      const { store, reply } = await createStage(engine)
      const delivery = await reply('a', 'one', 3)
      const whole = { ...delivery, messageId: 'm', runId: 'r', id: 'two', seq: 2 }
      await store.outbox.add(whole, 4)
      const taken = await send(store, 5)
      const pending = { state: 'pending', attempts: 0, fence: 0 }
      expect([taken, await store.outbox.get('two')]).toEqual([
        { ...delivery, ...pending, attempts: 1, fence: 1, createdAt: 3 },
        { ...whole, ...pending, createdAt: 4 },
      ])
    })

    it('waits for earlier ones of its conversation, not for those of others', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one', 1)
      await reply('a', 'two', 2)
      await reply('b', 'other', 3)
      const taken = [await send(store, 5), await send(store, 5), await send(store, 5)]
      expect(taken.map((delivery) => delivery?.id)).toEqual(['one', 'other', undefined])
    })

    it('is sent when the one before it has been delivered or given up', async () => {
      const { store, reply } = await createStage(engine)
      for (const id of ['one', 'two', 'three']) await reply('a', id)
      const order = []
      for (const state of ['delivered', 'undelivered', 'delivered'] as const) {
        const delivery = await send(store, 5)
        order.push(delivery?.id)
        if (delivery) await store.outbox.settle(delivery, state, null, 6)
      }
      expect(order).toEqual(['one', 'two', 'three'])
    })

    it('holds back those behind it while it waits for a retry', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one')
      await reply('a', 'two')
      const first = await send(store, 5)
      if (first) await store.outbox.retry(first, 'No connection', 50)
      const taken = [await send(store, 49), await send(store, 50)]
      expect(taken.map((delivery) => delivery && [delivery.id, delivery.attempts, delivery.problem])).toEqual([
        undefined,
        ['one', 2, 'No connection'],
      ])
    })

    it('can be claimed again when the lease has ended', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one')
      await send(store, 0)
      const taken = [await send(store, LEASE_MS - 1), await send(store, LEASE_MS)]
      expect(taken.map((delivery) => delivery && [delivery.id, delivery.attempts, delivery.fence])).toEqual([
        undefined,
        ['one', 2, 2],
      ])
    })

    it('is settled once', async () => {
      const { store, reply } = await createStage(engine)
      const { id } = await reply('a', 'one')
      const delivery = { id, fence: (await send(store, 0))?.fence ?? 0 }
      const settled = [
        await store.outbox.settle(delivery, 'delivered', null, 7),
        await store.outbox.settle(delivery, 'undelivered', 'Late', 8),
      ]
      const { state, settledAt, problem } = (await store.outbox.get('one')) ?? {}
      expect([settled, state, settledAt, problem]).toEqual([[true, false], 'delivered', 7, undefined])
    })

    it('is not changed by whoever lost the claim', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one')
      const stale = await send(store, 0)
      await send(store, LEASE_MS)
      const before = await store.outbox.get('one')
      if (!stale) throw new Error('Nothing was taken')
      const isSettled = await store.outbox.settle(stale, 'delivered', null, LEASE_MS + 1)
      await store.outbox.retry(stale, 'Stale', 0)
      expect([isSettled, await store.outbox.get('one'), await send(store, LEASE_MS + 1)]).toEqual([
        false,
        before,
        undefined,
      ])
    })

    it('is claimed only by whoever serves its channel', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one')
      const taken = [await send(store, 1, ['mail']), await send(store, 1, [])]
      expect([...taken, (await send(store, 1, ['mail', CHANNEL]))?.id]).toEqual([undefined, undefined, 'one'])
    })

    it('is free again when its gateway is known to be dead, unless it waits for a retry', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'taken', 0)
      await reply('b', 'waiting', 1)
      await reply('c', 'other', 2)
      await send(store, 2, [CHANNEL], 'dead')
      const waiting = await send(store, 2, [CHANNEL], 'dead')
      if (waiting) await store.outbox.retry(waiting, 'No connection', 500)
      await send(store, 2, [CHANNEL], 'alive')
      await store.outbox.expireLeases('dead', 3)
      const taken = [await send(store, 3), await send(store, 3)]
      expect(taken.map((delivery) => delivery && [delivery.id, delivery.fence])).toEqual([['taken', 2], undefined])
    })

    it('expires when it was not sent in time, and says why', async () => {
      const { store, reply } = await createStage(engine)
      const never = await reply('a', 'never', 0, 10)
      const failed = await reply('b', 'failed', 0, 10)
      await reply('c', 'fresh', 0, 11)
      const tried = await send(store, 0)
      if (tried) await store.outbox.retry(tried, 'No connection', 9)
      const expired = await store.outbox.expire(10)
      const end = { state: 'undelivered', settledAt: 10, createdAt: 0 }
      const [first, second] = tried?.id === 'never' ? [never, failed] : [failed, never]
      expect([
        expired.toSorted((a, b) => b.attempts - a.attempts),
        await store.outbox.expire(10),
        await store.outbox.list('undelivered', 10),
      ]).toEqual([
        [
          { ...first, ...end, attempts: 1, fence: 1, problem: 'No connection' },
          { ...second, ...end, attempts: 0, fence: 0, problem: 'The reply was not sent in time.' },
        ],
        [],
        expect.arrayContaining(expired),
      ])
    })

    it('does not expire while it is being sent', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one', 0, 10)
      await send(store, 9)
      const expired = [await store.outbox.expire(10), await store.outbox.expire(9 + LEASE_MS)]
      expect(expired.map((deliveries) => deliveries.map(({ id }) => id))).toEqual([[], ['one']])
    })

    it.each<[string, string | undefined, boolean]>([
      ['at its first attempt', undefined, false],
      ['after one that failed', 'No connection', false],
      ['and whose gateway is known to be dead', undefined, true],
      ['after one that failed and whose gateway is known to be dead', 'No connection', true],
    ])('that was cut off %s may have arrived, and says so when it expires', async (_, problem, isKnown) => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one', 0, 10)
      const first = problem === undefined ? undefined : await send(store, 0)
      if (first && problem !== undefined) await store.outbox.retry(first, problem, 5)
      await send(store, 5)
      if (isKnown) await store.outbox.expireLeases('one', 6)
      const expired = await store.outbox.expire(5 + LEASE_MS)
      expect(expired.map((delivery) => delivery.problem)).toEqual([
        'The gateway ended while sending this reply. It may have been delivered.',
      ])
    })

    it('that was reopened and not sent says only that', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one', 0, 10)
      const taken = await send(store, 0)
      if (taken) await store.outbox.settle(taken, 'undelivered', 'Nobody is there', 1)
      await store.outbox.reopen('one', 2, 20)
      const expired = await store.outbox.expire(20)
      expect(expired.map((delivery) => delivery.problem)).toEqual(['The reply was not sent in time.'])
    })

    it('that expired no longer holds back the next one', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one', 0, 10)
      await reply('a', 'two', 0, 100)
      await store.outbox.expire(20)
      expect((await send(store, 20))?.id).toBe('two')
    })

    it('that could not be delivered is sent again before later ones, under its key', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one', 0, 10)
      await reply('a', 'two', 0, 100)
      await store.outbox.expire(20)
      await store.outbox.reopen('one', 30, 200)
      const { id, state, expiresAt, problem, settledAt } = (await send(store, 30)) ?? {}
      expect([id, state, expiresAt, problem, settledAt]).toEqual(['one', 'pending', 200, undefined, undefined])
    })

    it('that is sent again after it was given up keeps counting its attempts', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one')
      for (const state of ['pending', 'undelivered'] as const) {
        const delivery = await send(store, 5)
        if (!delivery) throw new Error('Nothing was taken')
        if (state === 'pending') await store.outbox.retry(delivery, 'No connection', 5)
        else await store.outbox.settle(delivery, state, 'No connection', 6)
      }
      await store.outbox.reopen('one', 7, 200)
      const { id, attempts, fence } = (await send(store, 7)) ?? {}
      expect([id, attempts, fence]).toEqual(['one', 3, 3])
    })

    it('that was delivered is not sent again', async () => {
      const { store, reply } = await createStage(engine)
      await reply('a', 'one')
      const delivery = await send(store, 0)
      if (delivery) await store.outbox.settle(delivery, 'delivered', null, 1)
      await store.outbox.reopen('one', 2, 200)
      expect((await store.outbox.get('one'))?.state).toBe('delivered')
    })

    it('keeps its text, whatever it is', async () => {
      const { store, reply } = await createStage(engine)
      const delivery = await reply('a', 'one')
      const changed: string[] = []
      for (const [id, text] of Object.entries(TEXTS)) {
        await store.outbox.add({ ...delivery, id, reply: { text, notes: [text], isError: true } }, 0)
        const kept = (await store.outbox.get(id))?.reply
        if (kept?.text !== text || kept.notes[0] !== text) changed.push(id)
      }
      expect(changed).toEqual([])
    })

    it('keeps characters that a database cannot store', async () => {
      const { store, reply } = await createStage(engine)
      const delivery = await reply('a', 'one')
      const told = { text: 'nul \0 half \uD83D end', notes: ['\0'], isError: false }
      await store.outbox.add({ ...delivery, id: 'two', seq: 2, reply: told }, 0)
      expect((await store.outbox.get('two'))?.reply).toEqual(told)
    })
  })

  it('lists replies by state, oldest first', async () => {
    const { store, reply } = await createStage(engine)
    await reply('a', 'one', 1)
    await reply('b', 'two', 2, 10)
    await reply('a', 'three', 3)
    await store.outbox.expire(10)
    const ids = async (state: 'pending' | 'undelivered', limit: number) =>
      (await store.outbox.list(state, limit)).map(({ id }) => id)
    expect([await ids('pending', 9), await ids('pending', 1), await ids('undelivered', 9)]).toEqual([
      ['one', 'three'],
      ['one'],
      ['two'],
    ])
  })

  it('lists the latest replies of a conversation, oldest first', async () => {
    const { store, reply } = await createStage(engine)
    for (const id of ['one', 'two', 'three']) await reply('a', id)
    await reply('b', 'other')
    expect((await store.outbox.history('a', 2)).map(({ id }) => id)).toEqual(['two', 'three'])
  })
}

const send = (store: Stage['store'], now: number, channels = [CHANNEL], gatewayId = 'one') =>
  store.outbox.claim(gatewayId, channels, now, LEASE_MS)
