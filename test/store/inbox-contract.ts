import { describe, expect, it } from 'vitest'
import { MESSAGE_KINDS } from '../../src/channels/types.js'
import type { TestEngine } from '../kit/engines.js'
import { CHANNEL, createStage, LEASE_MS, newMessage, TEXTS } from './stage.js'

// The names count up but do not sort that way: one < three < two.

export function describeInboxContract(engine: TestEngine): void {
  describe('messages', () => {
    it('are new only once per channel and platform id, whatever else differs', async () => {
      const { store } = await createStage(engine)
      await store.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 0)
      await store.conversations.enter({ channel: CHANNEL, address: 'b' }, 'b', 0)
      const first = { ...newMessage({ id: 'one', conversationId: 'a', seq: 1 }), platformId: 'p' }
      const added = [
        await store.inbox.add(first, 'open', null, 5),
        await store.inbox.add({ ...first, id: 'two', text: 'Changed' }, 'open', null, 6),
        await store.inbox.add({ ...first, id: 'three', conversationId: 'b' }, 'refused', 'Full', 7),
        await store.inbox.add({ ...first, id: 'four', channel: 'mail' }, 'open', null, 8),
      ]
      expect([added, await store.inbox.findByPlatformId(CHANNEL, 'p')]).toEqual([
        [true, false, false, true],
        { ...first, state: 'open', receivedAt: 5 },
      ])
    })

    it('that are refused are finished, with the reason', async () => {
      const { store } = await createStage(engine)
      await store.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 0)
      const message = newMessage({ id: 'one', conversationId: 'a', seq: 1 })
      await store.inbox.add(message, 'refused', 'Too long', 7)
      const refused = { state: 'refused', problem: 'Too long', receivedAt: 7, finishedAt: 7 }
      expect(await store.inbox.get('one')).toEqual({ ...message, ...refused })
    })

    it('keep their text, whatever it is', async () => {
      const { store } = await createStage(engine)
      await store.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 0)
      const changed: string[] = []
      for (const [id, text] of Object.entries(TEXTS)) {
        await store.inbox.add(
          { ...newMessage({ id, conversationId: 'a', seq: 1 }), author: text, text },
          'open',
          null,
          0,
        )
        const kept = await store.inbox.get(id)
        if (kept?.text !== text || kept.author !== text) changed.push(id)
      }
      expect(changed).toEqual([])
    })

    it('can be of every kind', async () => {
      const { store } = await createStage(engine)
      await store.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 0)
      for (const [seq, kind] of MESSAGE_KINDS.entries()) {
        await store.inbox.add({ ...newMessage({ id: kind, conversationId: 'a', seq: seq + 1 }), kind }, 'open', null, 0)
      }
      expect((await store.inbox.history('a', 10)).map(({ kind }) => kind)).toEqual(MESSAGE_KINDS)
    })

    it('are listed per conversation: the latest ones, oldest first', async () => {
      const { store, add } = await createStage(engine)
      for (const id of ['one', 'two', 'three']) await add('a', id)
      await add('b', 'other')
      expect((await store.inbox.history('a', 2)).map(({ id }) => id)).toEqual(['two', 'three'])
    })

    it('know the latest one of a person: not merged into another, and not refused', async () => {
      const { store } = await createStage(engine)
      await store.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 0)
      const about = (id: string, seq: number) => newMessage({ id, conversationId: 'a', seq })
      const none = await store.inbox.latest('a')
      for (const [index, id] of ['one', 'two', 'three'].entries()) {
        await store.inbox.add(about(id, index + 1), 'open', null, 0)
        await store.jobs.enqueue(about(id, index + 1), index, 0)
      }
      await store.jobs.merge(['three'], 'two')
      await store.inbox.add({ ...about('beat', 4), kind: 'heartbeat' }, 'open', null, 0)
      await store.inbox.add(about('refused', 5), 'refused', 'Too long', 0)
      expect([none, (await store.inbox.latest('a'))?.id]).toEqual([undefined, 'two'])
    })

    it('that do not exist are undefined', async () => {
      const { store } = await createStage(engine)
      const { inbox, jobs } = store
      const missing = [await inbox.get('x'), await inbox.findByPlatformId(CHANNEL, 'x'), await jobs.get('x')]
      expect([...missing, await jobs.first('x')]).toEqual([undefined, undefined, undefined, undefined])
    })
  })

  describe('a claim', () => {
    it('holds a message for the duration of the lease', async () => {
      const { store, add, claim } = await createStage(engine)
      await add('a', 'one', 3)
      const taken = await claim(10)
      expect([taken, await store.jobs.first('a'), await store.jobs.get('one')]).toEqual([
        { messageId: 'one', conversationId: 'a', fence: 1, failures: 0, interruptions: 0, isCancelled: false },
        { messageId: 'one', state: 'active', dueAt: 10 + LEASE_MS },
        { state: 'active', fence: 1 },
      ])
    })

    it('takes the first of each conversation, the one due longest before the others', async () => {
      const { add, claimId } = await createStage(engine)
      await add('b', 'one', 1)
      await add('b', 'two', 2)
      await add('a', 'late', 4)
      await add('c', 'early', 3)
      expect([await claimId(5), await claimId(5), await claimId(5), await claimId(5)]).toEqual([
        'one',
        'early',
        'late',
        undefined,
      ])
    })

    it('alternates between conversations, however many messages one of them has', async () => {
      const { add, claim, finish } = await createStage(engine)
      for (const id of ['one', 'two', 'three']) await add('busy', id, 0)
      await add('quiet', 'short', 1)
      const order: string[] = []
      for (let now = 10; now < 14; now++) {
        const taken = await claim(now)
        order.push(taken.messageId)
        await finish(taken, now)
      }
      expect(order).toEqual(['one', 'short', 'two', 'three'])
    })

    it('takes nothing before it is due', async () => {
      const { add, claimId } = await createStage(engine)
      await add('a', 'one', 10)
      expect([await claimId(9), await claimId(10)]).toEqual([undefined, 'one'])
    })

    it('takes only messages of channels that are served', async () => {
      const { store, add } = await createStage(engine)
      await add('a', 'one')
      const claims = [await store.jobs.claim('g', ['mail'], 1, LEASE_MS), await store.jobs.claim('g', [], 1, LEASE_MS)]
      const served = await store.jobs.claim('g', ['mail', CHANNEL], 1, LEASE_MS)
      expect([...claims, served?.messageId]).toEqual([undefined, undefined, 'one'])
    })

    it('holds until the lease has ended; then the message can be claimed again and counts as interrupted', async () => {
      const { add, claim, claimId } = await createStage(engine)
      await add('a', 'one')
      await claim(0)
      const early = await claimId(LEASE_MS - 1)
      expect([early, await claim(LEASE_MS, 'two')]).toEqual([
        undefined,
        { messageId: 'one', conversationId: 'a', fence: 2, failures: 0, interruptions: 1, isCancelled: false },
      ])
    })

    it('is extended by renewing', async () => {
      const { store, add, claim, claimId } = await createStage(engine)
      await add('a', 'one')
      const state = await store.jobs.renew(await claim(0), 600, LEASE_MS)
      expect([state, await claimId(600 + LEASE_MS - 1), await claimId(600 + LEASE_MS)]).toEqual([
        'held',
        undefined,
        'one',
      ])
    })

    it('can be renewed after its lease has ended, unless someone else has claimed the message', async () => {
      const { store, add, claim, claimId } = await createStage(engine)
      await add('a', 'one')
      const state = await store.jobs.renew(await claim(0), 5 * LEASE_MS, LEASE_MS)
      expect([state, await claimId(5 * LEASE_MS)]).toEqual(['held', undefined])
    })

    it('learns of a cancellation when it is renewed', async () => {
      const { store, add, claim } = await createStage(engine)
      await add('a', 'one')
      const taken = await claim(0)
      await store.jobs.requestCancel('one')
      expect(await store.jobs.renew(taken, 1, LEASE_MS)).toBe('cancelled')
    })

    it('that someone else holds now changes nothing', async () => {
      const { store, add, claim, finish } = await createStage(engine)
      await add('a', 'one')
      await add('a', 'two')
      const stale = await claim(0)
      await claim(LEASE_MS, 'two')
      const attempts = [
        await store.jobs.renew(stale, LEASE_MS + 1, LEASE_MS),
        await store.jobs.release(stale, 0, true),
        await finish(stale, LEASE_MS + 1),
      ]
      const { inbox, jobs } = store
      expect([attempts, await jobs.first('a'), await jobs.get('one'), (await inbox.get('one'))?.state]).toEqual([
        ['lost', false, false],
        { messageId: 'one', state: 'active', dueAt: 2 * LEASE_MS },
        { state: 'active', fence: 2 },
        'open',
      ])
    })

    it('that was released changes nothing', async () => {
      const { store, add, claim, finish } = await createStage(engine)
      await add('a', 'one')
      const stale = await claim(0)
      await store.jobs.release(stale, 5, false)
      const attempts = [
        await store.jobs.renew(stale, 6, LEASE_MS),
        await store.jobs.release(stale, 0, true),
        await finish(stale, 6),
      ]
      expect([attempts, await store.jobs.first('a')]).toEqual([
        ['lost', false, false],
        { messageId: 'one', state: 'ready', dueAt: 5 },
      ])
    })

    it('whose message is finished changes nothing', async () => {
      const { store, add, claim, finish } = await createStage(engine)
      await add('a', 'one')
      const stale = await claim(0)
      await finish(stale, 5)
      const attempts = [
        await store.jobs.renew(stale, 6, LEASE_MS),
        await store.jobs.release(stale, 0, true),
        await finish(stale, 6),
      ]
      expect([attempts, (await store.inbox.get('one'))?.finishedAt]).toEqual([['lost', false, false], 5])
    })
  })

  describe('a released message', () => {
    it('waits until it is due and stays ahead of the rest of its conversation', async () => {
      const { store, add, claim, claimId } = await createStage(engine)
      await add('a', 'one')
      await add('a', 'two')
      const isOurs = await store.jobs.release(await claim(0), 50, false)
      expect([isOurs, await claimId(49), await claimId(50), await claimId(50)]).toEqual([
        true,
        undefined,
        'one',
        undefined,
      ])
    })

    it('counts a failure if there was one, and no interruption', async () => {
      const { store, add, claim } = await createStage(engine)
      await add('a', 'one')
      const failures = []
      for (const hasFailed of [true, false, true]) {
        const taken = await claim(0)
        failures.push([taken.failures, taken.interruptions])
        await store.jobs.release(taken, 0, hasFailed)
      }
      const { failures: last, interruptions } = await claim(0)
      expect([...failures, [last, interruptions]]).toEqual([
        [0, 0],
        [1, 0],
        [1, 0],
        [2, 0],
      ])
    })
  })

  describe('a finished message', () => {
    it('records how it ended and makes the next of its conversation ready', async () => {
      const { store, add, claim } = await createStage(engine)
      await add('a', 'one')
      await add('a', 'two')
      await add('a', 'three')
      const isOurs = await store.jobs.finish(await claim(10), 'failed', 'It broke', 20)
      const { inbox, jobs } = store
      expect([isOurs, await inbox.get('one'), await jobs.get('one'), await jobs.first('a')]).toEqual([
        true,
        {
          ...newMessage({ id: 'one', conversationId: 'a', seq: 1 }),
          state: 'failed',
          problem: 'It broke',
          receivedAt: 0,
          finishedAt: 20,
        },
        undefined,
        { messageId: 'two', state: 'ready', dueAt: 20 },
      ])
    })

    it('makes none ready if it was not the first of its conversation', async () => {
      const { store, add } = await createStage(engine)
      for (const id of ['one', 'two', 'three']) await add('a', id)
      await store.jobs.finish({ messageId: 'two', conversationId: 'a', fence: 0 }, 'dropped', null, 1)
      const states = await Promise.all(['one', 'two', 'three'].map((id) => store.jobs.get(id)))
      expect(states).toEqual([{ state: 'ready', fence: 0 }, undefined, { state: 'queued', fence: 0 }])
    })

    it('leaves other conversations alone', async () => {
      const { store, add, claim } = await createStage(engine)
      await add('a', 'one', 0)
      await add('b', 'other', 1)
      await add('b', 'next', 1)
      await store.jobs.finish(await claim(5), 'answered', null, 6)
      expect([await store.jobs.first('a'), await store.jobs.first('b'), await store.jobs.countOpen('b')]).toEqual([
        undefined,
        { messageId: 'other', state: 'ready', dueAt: 1 },
        2,
      ])
    })
  })

  it('ends the leases of one gateway, and returns how many there were', async () => {
    const { store, add, claim, claimId } = await createStage(engine)
    for (const [index, id] of ['one', 'two', 'three', 'four'].entries()) await add(id, id, index)
    await claim(5, 'dead')
    await claim(5, 'alive')
    await store.jobs.release(await claim(5, 'dead'), 500, false)
    await claim(5, 'dead')
    const count = await store.jobs.expireLeases('dead', 6)
    const taken = [await claimId(6), await claimId(6)]
    expect([count, new Set(taken), await claimId(6)]).toEqual([2, new Set(['one', 'four']), undefined])
  })

  it('reopens a dead letter behind what is waiting', async () => {
    const { store, add, claim } = await createStage(engine)
    await add('a', 'one')
    await add('a', 'two')
    await store.jobs.finish(await claim(1), 'failed', 'It broke', 2)
    await store.transaction(async (tables) => {
      const message = await tables.inbox.get('one')
      if (message) await tables.jobs.reopen(message, await tables.conversations.nextSeq('a', 3), 7, 3)
    })
    const open = await store.inbox.listOpen(10)
    expect([open.map(({ id, position, state }) => ({ id, position, state })), await store.inbox.get('one')]).toEqual([
      [
        { id: 'one', position: 1, state: 'queued' },
        { id: 'two', position: 0, state: 'ready' },
      ],
      { ...newMessage({ id: 'one', conversationId: 'a', seq: 3 }), state: 'open', retriedAfter: 7, receivedAt: 0 },
    ])
  })

  it('lists dead letters, newest first, until they are discarded', async () => {
    const { store, add, claim } = await createStage(engine)
    for (const id of ['one', 'two', 'three']) await add(id, id)
    for (const now of [1, 2, 3]) await store.jobs.finish(await claim(now), 'failed', `At ${now}`, now)
    await store.jobs.discard((await store.inbox.listFailed(1))[0]?.id ?? '', 9)
    const problems = (await store.inbox.listFailed(10)).map(({ problem }) => problem)
    expect([problems, (await store.inbox.listFailed(1)).length]).toEqual([['At 2', 'At 1'], 1])
  })

  it('discards nothing but dead letters', async () => {
    const { store, add } = await createStage(engine)
    await add('a', 'one')
    await store.jobs.discard('one', 5)
    expect((await store.inbox.get('one'))?.state).toBe('open')
  })

  it('lists open messages with their positions', async () => {
    const { store, add, claim } = await createStage(engine)
    await add('a', 'one', 1)
    await add('b', 'other', 2)
    await add('a', 'two', 3)
    await store.jobs.release(await claim(1), 70, true)
    const shown = { channel: CHANNEL, author: 'ann', text: 'Hello' }
    const a = { ...shown, conversationId: 'a', address: 'a' }
    const b = { ...shown, conversationId: 'b', address: 'b' }
    expect([await store.inbox.listOpen(10), (await store.inbox.listOpen(2)).length]).toEqual([
      [
        { ...a, id: 'one', receivedAt: 1, state: 'ready', dueAt: 70, failures: 1, position: 0 },
        { ...b, id: 'other', receivedAt: 2, state: 'ready', dueAt: 2, failures: 0, position: 0 },
        { ...a, id: 'two', receivedAt: 3, state: 'queued', dueAt: 3, failures: 0, position: 1 },
      ],
      2,
    ])
  })
}
