// Messages that share a turn: docs/queue-states.md.

import { describe, expect, it } from 'vitest'
import type { QueueMode } from '../../src/channels/types.js'
import { MAX_MESSAGE_CHARACTERS } from '../../src/turns/limits.js'
import { Queue } from '../../src/turns/queue.js'
import type { IncomingMessage, Settlement, Work } from '../../src/turns/types.js'
import { describeEngines, type TestEngine } from '../kit/engines.js'
import { queueOn } from '../kit/queue.js'

const CHANNEL = 'chat'
const LEASE_MS = 1_000
const RUN = { id: 'none', result: { isError: false, durationMs: 1 } }
const REPLY = { text: 'Done', notes: [], isError: false }
const ANSWERED: Settlement = { kind: 'answered', run: RUN, reply: REPLY }
const FAILED: Settlement = { kind: 'failed', problem: 'It broke', run: RUN, reply: REPLY }

describeEngines('messages that share a turn', (engine) => {
  describe('collect', () => {
    it('merges waiting messages in order, and all are answered with the first', async () => {
      const { say, take, queue, stateOf, store, waitingIn } = await setup(engine, 'collect')
      const ids = [await say('one'), await say('two'), await say('three')]
      const work = await take()
      const late = await say('late')
      const waiting = await waitingIn(work)
      await queue.settle(work, ANSWERED)
      const replies = await store.outbox.history(work.claim.conversationId, 9)
      expect([textsOf(work), waiting, await stateOf(...ids, late), replies.map(({ messageId }) => messageId)]).toEqual([
        ['one', 'two', 'three'],
        ['one active', 'late queued'],
        ['answered', 'answered', 'answered', 'open'],
        [ids[0]],
      ])
      expect(textsOf(await take())).toEqual(['late'])
    })

    it('leaves each its own turn in another mode', async () => {
      const { say, take } = await setup(engine, 'followup')
      await say('one')
      await say('two')
      expect(textsOf(await take())).toEqual(['one'])
    })

    it.each([
      ['a job', { kind: 'cron' }],
      ['one with a model of its own', { options: { model: 'large' } }],
      ["a command of the agent's own", { text: '//other' }],
      ['a command of HTTP', { options: { projectInstance: 'site' } }],
    ] as const)('goes no further than %s, which keeps its place', async (_, other) => {
      const { say, take, queue } = await setup(engine, 'collect')
      await say('one')
      await say('two')
      await say('other', other)
      await say('three')
      const first = await take()
      await queue.settle(first, ANSWERED)
      const second = await take()
      expect([textsOf(first), textsOf(second)]).toEqual([['one', 'two'], ['text' in other ? other.text : 'other']])
    })

    it('merges those of others only if one answer reaches them all', async () => {
      const { say, take } = await setup(engine, 'collect')
      await say('one', { author: 'ann' })
      await say('two', { author: 'bob' })
      expect(textsOf(await take())).toEqual(['one', 'two'])
      const { say: tell, take: takeTold } = await setup(engine, 'collect')
      await tell('one', { author: '+1', options: { variables: { From: '+1' } } })
      await tell('two', { author: '+1', options: { variables: { From: '+1' } } })
      await tell('three', { author: '+2', options: { variables: { From: '+2' } } })
      expect(textsOf(await takeTold())).toEqual(['one', 'two'])
    })

    it('takes no more together than one message may hold', async () => {
      const { say, take } = await setup(engine, 'collect')
      const half = 'x'.repeat(MAX_MESSAGE_CHARACTERS / 2)
      await say('one', { text: half })
      await say('two', { text: half })
      await say('three')
      expect((await take()).merged.length).toBe(1)
    })

    it('keeps them when the turn is retried, and merges what came since', async () => {
      const { say, take, queue, clock } = await setup(engine, 'collect')
      await say('one')
      await say('two')
      await queue.settle(await take(), { kind: 'retry', at: clock.now, isAttempt: true, run: RUN })
      await say('three')
      expect(textsOf(await take())).toEqual(['one', 'two', 'three'])
    })

    it('carries them along when the gateway is gone', async () => {
      const { say, take, clock } = await setup(engine, 'collect')
      await say('one')
      await say('two')
      const lost = await take()
      clock.now += LEASE_MS
      const again = await take('other')
      expect([textsOf(lost), textsOf(again), again.claim.interruptions]).toEqual([['one', 'two'], ['one', 'two'], 1])
    })

    it('makes one dead letter of them, which a retry by any of their ids retries completely', async () => {
      const { say, take, queue, store, stateOf } = await setup(engine, 'collect')
      const ids = [await say('one'), await say('two')]
      await queue.settle(await take(), FAILED)
      const listed = (await store.inbox.listFailed(9)).map(({ id }) => id)
      const states = await stateOf(...ids)
      await say('between')
      await queue.retry(ids[1] ?? '')
      const between = await take()
      await queue.settle(between, ANSWERED)
      const again = await take()
      await queue.settle(again, ANSWERED)
      expect([listed, states, textsOf(between), textsOf(again), await stateOf(...ids)]).toEqual([
        [ids[0]],
        ['failed', 'failed'],
        ['between'],
        ['one', 'two'],
        ['answered', 'answered'],
      ])
    })

    it('drops a dead letter completely', async () => {
      const { say, take, queue, stateOf } = await setup(engine, 'collect')
      const ids = [await say('one'), await say('two')]
      await queue.settle(await take(), FAILED)
      expect([await queue.drop(ids[0] ?? ''), await stateOf(...ids)]).toEqual(['dropped', ['dropped', 'dropped']])
    })

    it('cancels them together', async () => {
      const { say, take, queue, stateOf } = await setup(engine, 'collect')
      const ids = [await say('one'), await say('two')]
      await queue.settle(await take(), { kind: 'cancelled', run: RUN })
      expect(await stateOf(...ids)).toEqual(['cancelled', 'cancelled'])
    })

    it('loses none of them when the first is dropped, nor the first when one of them is', async () => {
      const { say, take, queue, clock, stateOf } = await setup(engine, 'collect')
      const ids = [await say('one'), await say('two'), await say('three')]
      const active = await take()
      const during = await queue.drop(ids[1] ?? '')
      await queue.settle(active, { kind: 'retry', at: clock.now, isAttempt: true, run: RUN })
      const waiting = [await queue.drop(ids[1] ?? ''), await queue.drop(ids[0] ?? '')]
      expect([during, waiting, await stateOf(...ids), textsOf(await take())]).toEqual([
        'active',
        ['dropped', 'dropped'],
        ['dropped', 'dropped', 'open'],
        ['three'],
      ])
    })

    it('can be edited while the turn waits to be tried again, and not while it runs', async () => {
      const { say, take, queue, clock } = await setup(engine, 'collect')
      await say('one')
      await say('two')
      const active = await take()
      const during = await queue.edit(CHANNEL, 'two', 'changed')
      await queue.settle(active, { kind: 'retry', at: clock.now, isAttempt: true, run: RUN })
      const after = await queue.edit(CHANNEL, 'two', 'changed')
      expect([during, after, textsOf(await take())]).toEqual(['late', 'changed', ['one', 'changed']])
    })
  })

  describe('interrupt', () => {
    it('asks for the end of what runs, whichever gateway runs it, and says so', async () => {
      const { queue, other, sayFully, take } = await setup(engine, 'interrupt')
      const first = await sayFully('one')
      const running = await take('other')
      const second = await sayFully('two')
      const state = await other.renew(running)
      await other.settle(running, { kind: 'cancelled', run: RUN })
      expect([first, second, state, textsOf(await take()), await queue.claim([CHANNEL])]).toEqual([
        expect.objectContaining({ notes: [] }),
        expect.objectContaining({ interrupts: first.messageId, notes: [expect.stringContaining('is being stopped')] }),
        'cancelled',
        ['two'],
        undefined,
      ])
    })

    it('merges what came while the turn was ending', async () => {
      const { queue, say, take } = await setup(engine, 'interrupt')
      await say('one')
      const running = await take()
      await say('two')
      await say('three')
      await queue.settle(running, { kind: 'cancelled', run: RUN })
      expect(textsOf(await take())).toEqual(['two', 'three'])
    })

    it('loses nothing when the gateway ends before it has stopped what runs', async () => {
      const { say, take, other, clock, stateOf } = await setup(engine, 'interrupt')
      const ids = [await say('one')]
      await take()
      ids.push(await say('two'))
      clock.now += LEASE_MS
      const again = await take('other')
      await other.settle(again, { kind: 'cancelled' })
      expect([textsOf(again), again.claim.isCancelled, await stateOf(...ids), textsOf(await take())]).toEqual([
        ['one'],
        true,
        ['cancelled', 'open'],
        ['two'],
      ])
    })

    it('does not wait for the next attempt of the stopped message', async () => {
      const { queue, say, take, clock } = await setup(engine, 'interrupt')
      await say('one')
      const running = await take()
      await say('two')
      await queue.settle(running, { kind: 'retry', at: clock.now + 50_000, isAttempt: false, run: RUN })
      await queue.settle(await take(), { kind: 'cancelled' })
      expect(textsOf(await take())).toEqual(['two'])
    })

    it('does not end what no person has asked for', async () => {
      const { queue, say, sayFully, take } = await setup(engine, 'interrupt')
      await say('job', { kind: 'cron' })
      const running = await take()
      expect([await sayFully('one'), await queue.renew(running)]).toEqual([
        expect.objectContaining({ notes: [], position: 1 }),
        'held',
      ])
    })
  })

  describe('steer', () => {
    it('takes the next message into the turn under way, one at a time', async () => {
      const { queue, say, take, stateOf } = await setup(engine, 'steer')
      await say('one')
      const work = await take()
      const ids = [await say('two'), await say('three')]
      const merged = await queue.mergeIntoRunning(work)
      if (merged) work.merged.push(merged)
      await queue.settle(work, ANSWERED)
      expect([merged?.text, await stateOf(...ids), textsOf(await take())]).toEqual([
        'two',
        ['answered', 'open'],
        ['three'],
      ])
    })

    it('lets a message wait in its old place that the agent did not take', async () => {
      const { queue, say, take, waitingIn } = await setup(engine, 'steer')
      await say('one')
      const work = await take()
      await say('two')
      const merged = await queue.mergeIntoRunning(work)
      await say('three')
      if (merged) await queue.unmerge(work, merged)
      expect(await waitingIn(work)).toEqual(['one active', 'two queued', 'three queued'])
    })

    it('lets it wait even if the refusal could not be stored', async () => {
      const { queue, say, take, stateOf } = await setup(engine, 'steer')
      await say('one')
      const work = await take()
      const id = await say('two')
      await queue.mergeIntoRunning(work)
      await queue.settle(work, ANSWERED)
      expect([await stateOf(id), textsOf(await take())]).toEqual([['open'], ['two']])
    })

    it('is carried along when the gateway ends before anybody knows whether the agent took it', async () => {
      const { queue, say, take, clock } = await setup(engine, 'steer')
      await say('one')
      const work = await take()
      await say('two')
      const merged = await queue.mergeIntoRunning(work)
      clock.now += LEASE_MS
      const again = await take('other')
      if (merged) await queue.unmerge(work, merged)
      expect([textsOf(again), await queue.settle(work, ANSWERED)]).toEqual([['one', 'two'], 'lost'])
    })

    it.each(['followup', 'collect', 'interrupt'] as const)('does nothing in the mode %s', async (mode) => {
      const { queue, say, take } = await setup(engine, mode)
      await say('one')
      const work = await take()
      await say('two')
      expect(await queue.mergeIntoRunning(work)).toBeUndefined()
    })

    it('does nothing for a claim that is lost or cancelled', async () => {
      const { queue, say, take, clock, store } = await setup(engine, 'steer')
      const id = await say('one')
      const lost = await take()
      await say('two')
      clock.now += LEASE_MS
      const held = await take('other')
      await store.jobs.requestCancel(id)
      expect([await queue.mergeIntoRunning(lost), await queue.mergeIntoRunning(held)]).toEqual([undefined, undefined])
    })
  })

  it('has the mode of the conversation, else that of its parent, else the configured one', async () => {
    const { queue, store, sayFully, take } = await setup(engine, 'collect')
    const thread = { address: 'thread', parent: 'a' }
    const { conversationId: parent } = await sayFully('above')
    await queue.settle(await take(), ANSWERED)
    const { conversationId } = await sayFully('one', thread)
    await sayFully('two', thread)
    const first = await take()
    await queue.settle(first, ANSWERED)
    await store.conversations.configure(parent, { queueMode: 'followup' })
    await sayFully('three', thread)
    await sayFully('four', thread)
    const second = await take()
    await queue.settle(second, ANSWERED)
    await store.conversations.configure(conversationId, { queueMode: 'interrupt' })
    await sayFully('five', thread)
    const third = await take()
    expect([first, second, third].map(textsOf)).toEqual([['one', 'two'], ['three'], ['four', 'five']])
  })
})

async function setup(engine: TestEngine, mode: QueueMode) {
  const store = await engine.createStore()
  const clock = { now: 1_000 }
  const queueOf = (gatewayId: string): Queue =>
    queueOn(store, {
      gatewayId,
      maxQueueDepth: 9,
      leaseMs: LEASE_MS,
      config: { queueMode: mode },
      now: () => clock.now,
    })
  const queue = queueOf('one')
  const other = queueOf('two')
  const sayFully = (text: string, message: Partial<IncomingMessage> = {}) =>
    queue.accept({ channel: CHANNEL, address: 'a', platformId: text, author: 'ann', text, ...message })
  return {
    store,
    clock,
    queue,
    /** The queue of another gateway on the same database. */
    other,
    sayFully,
    say: async (text: string, message?: Partial<IncomingMessage>) => (await sayFully(text, message)).messageId,
    take: async (by: 'own' | 'other' = 'own'): Promise<Work> => {
      const work = await (by === 'own' ? queue : other).claim([CHANNEL])
      if (!work) throw new Error('There is nothing to claim')
      return work
    },
    waitingIn: async ({ claim }: Work) =>
      (await store.inbox.waiting(claim.conversationId, 9)).map(({ text, state }) => `${text} ${state}`),
    stateOf: (...ids: string[]) => Promise.all(ids.map(async (id) => (await store.inbox.get(id))?.state)),
  }
}

function textsOf({ message, merged }: Work): string[] {
  return [message, ...merged].map(({ text }) => text)
}
