import { describe, expect, it } from 'vitest'
import type { AgentResult } from '../../src/backends/types.js'
import type { Acceptance, Reply } from '../../src/channels/types.js'
import { MAX_MESSAGE_CHARACTERS } from '../../src/turns/limits.js'
import { Queue } from '../../src/turns/queue.js'
import type { IncomingMessage, Settlement, Work } from '../../src/turns/types.js'
import type { Store, Tables } from '../../src/store/store.js'
import { describeEngines, openTestStore, type TestEngine } from '../kit/engines.js'
import { queueOn } from '../kit/queue.js'

const CHANNEL = 'chat'
const LEASE_MS = 1_000
const REPLY_EXPIRY_MS = 50_000
const MAX_QUEUE_DEPTH = 3
const RESULT: AgentResult = { isError: false, finalOutput: 'Done', sessionId: 's', durationMs: 5 }
const REPLY: Reply = { text: 'Done', notes: ['A note'], isError: false }

describeEngines('the queue', (engine) => {
  describe('accept', () => {
    it('accepts a message and returns its position in the conversation', async () => {
      const { say, store } = await setup(engine)
      const acceptances = [await say('one'), await say('two'), await say('other', { address: 'b' })]
      const [first, second, other] = acceptances
      const taken = { status: 'accepted', notes: [] }
      expect([acceptances, await store.inbox.get(first?.messageId ?? '')]).toEqual([
        [
          { ...taken, messageId: expect.any(String), conversationId: first?.conversationId, position: 0 },
          { ...taken, messageId: second?.messageId, conversationId: first?.conversationId, position: 1 },
          { ...taken, messageId: other?.messageId, conversationId: other?.conversationId, position: 0 },
        ],
        {
          id: first?.messageId,
          conversationId: first?.conversationId,
          channel: CHANNEL,
          platformId: 'one',
          seq: 1,
          kind: 'message',
          author: 'ann',
          text: 'Hello one',
          state: 'open',
          receivedAt: 1_000,
        },
      ])
    })

    it('claims a message at once with what its admission has chosen for it', async () => {
      const { queue } = await setup(engine)
      const { work } = await queue.take(
        { channel: CHANNEL, address: 'a', platformId: 'one', author: 'ann', text: 'Hello' },
        {
          admit: ({ conversations }, { conversationId }) => conversations.configure(conversationId, { backend: 'pi' }),
        },
        () => undefined,
      )
      expect(work?.conversation.backend).toBe('pi')
    })

    it('keeps the kind of a message', async () => {
      const { say, store } = await setup(engine)
      const { messageId } = await say('one', { kind: 'cron' })
      expect((await store.inbox.get(messageId))?.kind).toBe('cron')
    })

    it('takes a message that is delivered again for the one it is, whatever became of it', async () => {
      const { say, take, queue, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const whileOpen = await say('one', { text: 'Changed' })
      await queue.settle(await take(), answered())
      const afterwards = await say('one', { address: 'elsewhere' })
      const duplicate = { status: 'duplicate', messageId, conversationId }
      expect([whileOpen, afterwards, await store.inbox.listOpen(9), (await store.inbox.get(messageId))?.text]).toEqual([
        duplicate,
        duplicate,
        [],
        'Hello one',
      ])
    })

    it('takes a message once that comes many times at once', async () => {
      const { say, store } = await setup(engine)
      const acceptances = await Promise.all(
        Array.from({ length: 8 }, (_, index) => say('one', { address: `${index % 2}` })),
      )
      const statuses = acceptances.map(({ status }) => status).toSorted()
      const ids = new Set(acceptances.map(({ messageId }) => messageId))
      expect([statuses, ids.size, (await store.inbox.listOpen(9)).length]).toEqual([
        ['accepted', ...Array<string>(7).fill('duplicate')],
        1,
        1,
      ])
    })

    it('gives simultaneous messages successive positions', async () => {
      const { say, store } = await setup(engine, { maxQueueDepth: 100 })
      const acceptances = await Promise.all(Array.from({ length: 20 }, (_, index) => say(`${index}`)))
      const positions = new Set(
        acceptances.map((acceptance) => acceptance.status === 'accepted' && acceptance.position),
      )
      const open = await store.inbox.listOpen(100)
      expect([positions, open.filter(({ state }) => state === 'ready').length]).toEqual([
        new Set(Array.from({ length: 20 }, (_, index) => index)),
        1,
      ])
    })

    it.each([
      ['an empty message', '', /is empty/],
      ['one of only spaces', ' \n\t\u00A0 ', /is empty/],
      ['one of only NUL', '\0\0', /is empty/],
      [
        'one of 5 MB',
        'x'.repeat(5_000_000),
        /too long: 5000000 characters, at most 1000000 are allowed\. Put it in a file/,
      ],
    ])('refuses %s, and the person is told why', async (_, text, reason) => {
      const { say, store } = await setup(engine)
      const refused = await say('one', { text })
      const [told, ...more] = await store.outbox.history(refused.conversationId, 9)
      const message = await store.inbox.get(refused.messageId)
      expect([refused, told?.reply, told?.messageId, more, message, await store.inbox.listOpen(1)]).toEqual([
        { ...refused, status: 'refused', reason: expect.stringMatching(reason) },
        { text: reasonOf(refused), notes: [], isError: true },
        refused.messageId,
        [],
        expect.objectContaining({ state: 'refused', problem: reasonOf(refused), finishedAt: 1_000 }),
        [],
      ])
    })

    it('keeps enough of a refused message to recognise it', async () => {
      const { say, store } = await setup(engine)
      const { messageId } = await say('one', { text: 'x'.repeat(MAX_MESSAGE_CHARACTERS + 1) })
      expect((await store.inbox.get(messageId))?.text).toBe('x'.repeat(1_000))
    })

    it('takes the longest message there may be', async () => {
      const { say, take } = await setup(engine)
      const text = '🙂'.repeat(MAX_MESSAGE_CHARACTERS / 2)
      await say('one', { text })
      expect((await take()).message.text === text).toBe(true)
    })

    it('refuses more messages than a conversation may hold, and only there', async () => {
      const { say, store } = await setup(engine)
      for (let count = 0; count < MAX_QUEUE_DEPTH; count++) await say(`${count}`)
      const refused = await say('one more')
      const other = await say('other', { address: 'b' })
      const [told] = await store.outbox.history(refused.conversationId, 9)
      expect([refused.status, reasonOf(refused), told?.reply.text, other.status]).toEqual([
        'refused',
        '3 messages are already waiting in this conversation, so this one was not accepted. Send it again later.',
        reasonOf(refused),
        'accepted',
      ])
    })

    it('has room again when a message is finished', async () => {
      const { say, take, queue } = await setup(engine)
      for (let count = 0; count < MAX_QUEUE_DEPTH; count++) await say(`${count}`)
      await queue.settle(await take(), answered())
      expect(await say('one more')).toEqual(expect.objectContaining({ status: 'accepted', position: 2 }))
    })

    it('refuses a message once, even if it is delivered again', async () => {
      const { say, store } = await setup(engine)
      const { messageId, conversationId } = await say('one', { text: ' ' })
      expect([await say('one', { text: ' ' }), (await store.outbox.history(conversationId, 9)).length]).toEqual([
        { status: 'duplicate', messageId, conversationId },
        1,
      ])
    })

    it('leaves NUL out and keeps the rest', async () => {
      const { say, take } = await setup(engine)
      const accepted = await say('o\0ne', { address: 'a\0', author: 'a\0nn', text: 'Hel\0lo 🙂\0' })
      const { message, conversation } = await take()
      const again = await say('o\0ne')
      expect([message.text, message.author, conversation.address, again.status, again.messageId]).toEqual([
        'Hello 🙂',
        'ann',
        'a',
        'duplicate',
        accepted.messageId,
      ])
    })
  })

  describe('claim', () => {
    it('gives a message with all that its turn needs', async () => {
      const { say, take, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const project = { id: 'site', directory: '/srv/site', model: 'large' }
      await store.projects.put(project, 'file', 1)
      await store.conversations.configure(conversationId, { projectId: 'site', backend: 'pi' })
      const { claim, message, ...rest } = await take()
      expect([claim, message.text, rest]).toEqual([
        { messageId, conversationId, fence: 1, failures: 0, interruptions: 0, isCancelled: false },
        'Hello one',
        {
          claimedAt: 1_000,
          conversation: { id: conversationId, channel: CHANNEL, address: 'a', projectId: 'site', backend: 'pi' },
          merged: [],
          mayHaveMerged: false,
          project: { ...project, source: 'file', instance: expect.any(String), createdAt: 1, updatedAt: 1 },
          wasInterrupted: false,
          cutOff: [],
        },
      ])
    })

    it('gives a message without its project when that is gone', async () => {
      const { say, take, store } = await setup(engine)
      const { conversationId } = await say('one')
      await store.conversations.configure(conversationId, { projectId: 'gone' })
      const { conversation, project } = await take()
      expect([conversation.projectId, project]).toEqual(['gone', undefined])
    })

    it('gives nothing while the first of every conversation is in hand', async () => {
      const { say, take, queue } = await setup(engine)
      await say('one')
      await say('two')
      await take()
      expect(await queue.claim([CHANNEL])).toBeUndefined()
    })

    it('takes over what a dead worker had, and marks it as interrupted', async () => {
      const { say, take, begin, clock, other, store } = await setup(engine)
      await say('one')
      const first = await take()
      await begin(first, 'run-1')
      clock.now += LEASE_MS
      const second = await take(other)
      expect([second.claim, second.wasInterrupted, (await store.runs.get('run-1'))?.state]).toEqual([
        { ...first.claim, fence: 2, interruptions: 1 },
        true,
        'interrupted',
      ])
    })

    it('does not call it cut off when no run had begun', async () => {
      const { say, take, clock, other } = await setup(engine)
      await say('one')
      await take()
      clock.now += LEASE_MS
      expect((await take(other)).wasInterrupted).toBe(false)
    })

    it('lets go of the session for a message that begins one, and not again when it was cut off', async () => {
      const { say, take, queue, clock, other, store } = await setup(engine)
      const { conversationId } = await say('one')
      const session = (sessionId: string) => ({ conversationId, backend: 'pi', sessionId, directory: '/srv' })
      await queue.settle(await take(), { ...answered(), session: session('old') })
      await say('two', { options: { beginsSession: true } })
      const waiting = await store.sessions.get(conversationId)
      const work = await take()
      const begun = await store.sessions.get(conversationId)
      await queue.keepSession(work, session('new'))
      clock.now += LEASE_MS
      await take(other)
      const after = await store.sessions.get(conversationId)
      expect([waiting?.sessionId, begun, after?.sessionId]).toEqual(['old', undefined, 'new'])
    })
  })

  describe('say', () => {
    it('sends a text with a key once, whichever gateway is asked and how often', async () => {
      const { queue, other, store } = await setup(engine)
      const place = { channel: CHANNEL, address: 'a' }
      const ids = await Promise.all([queue, other, queue].map((one) => one.say(place, 'Stopped', 'ann', 'command:1')))
      const said = [await queue.say(place, 'Other', 'ann', 'command:2'), await queue.say(place, 'Plain')]
      expect([
        ids.filter((id) => id !== undefined).length,
        said.every((id) => id !== undefined),
        (await store.outbox.list('pending', 9)).map(({ reply }) => reply.text).toSorted(),
      ]).toEqual([1, true, ['Other', 'Plain', 'Stopped']])
    })
  })

  describe('a run', () => {
    it('is recorded with the claim', async () => {
      const { say, queue, store } = await setup(engine)
      await say('one')
      const run = { id: 'run-1', backend: 'pi', model: 'large' }
      const asked: unknown[] = []
      const work = await queue.claim([CHANNEL], {}, (claimed) => {
        asked.push(claimed)
        return run
      })
      const { messageId, conversationId } = work?.claim ?? {}
      expect([asked, await store.runs.get('run-1')]).toEqual([
        [work],
        { ...run, messageId, conversationId, gatewayId: 'one', firstSeq: 0, state: 'running', startedAt: 1_000 },
      ])
    })

    it('keeps no session for a claim that is lost', async () => {
      const { say, take, queue, clock, other, store } = await setup(engine)
      const { conversationId } = await say('one')
      const stale = await take()
      clock.now += LEASE_MS
      await take(other)
      await queue.keepSession(stale, { conversationId, backend: 'pi', sessionId: 's', directory: '/srv' })
      expect(await store.sessions.get(conversationId)).toBeUndefined()
    })

    it('does not begin for a message that is to be cancelled', async () => {
      const { say, queue, store } = await setup(engine)
      const { messageId } = await say('one')
      await store.jobs.requestCancel(messageId)
      const work = await queue.claim([CHANNEL], {}, () => ({ id: 'run-1', backend: 'pi' }))
      expect([work?.claim.isCancelled, await store.runs.get('run-1')]).toEqual([true, undefined])
    })

    it('that cannot be planned leaves the message to whoever comes next', async () => {
      const { say, take, queue } = await setup(engine)
      const { messageId } = await say('one')
      const claiming = queue.claim([CHANNEL], {}, () => {
        throw new Error('It broke')
      })
      await expect(claiming).rejects.toThrow('It broke')
      expect((await take()).claim).toMatchObject({ messageId, fence: 1, interruptions: 0 })
    })

    it('keeps its session while it runs', async () => {
      const { say, take, queue, store } = await setup(engine)
      const { conversationId } = await say('one')
      const session = { conversationId, backend: 'pi', sessionId: 's', directory: '/srv' }
      await queue.keepSession(await take(), session)
      expect(await store.sessions.get(conversationId)).toEqual({ ...session, usedAt: 1_000 })
    })
  })

  describe('settle', () => {
    const session = (conversationId: string) => ({ conversationId, backend: 'pi', sessionId: 's', directory: '/srv' })

    it('lets the reply be taken in the same step, of which nothing is left when the claim is lost', async () => {
      const { say, take, queue, other, clock, store } = await setup(engine)
      await say('one')
      const stale = await take()
      clock.now += LEASE_MS
      const work = await take(other)
      const taken: unknown[] = []
      const claimReply = async ({ outbox }: Pick<Tables, 'outbox'>): Promise<void> => {
        taken.push((await outbox.claim('two', [CHANNEL], clock.now, 1_000))?.reply)
      }
      const lost = await queue.settle(stale, answered(), [], claimReply)
      const settled = await other.settle(work, answered(), [], claimReply)
      const left = await store.outbox.claim('one', [CHANNEL], clock.now, 1_000)
      expect([lost, settled, taken, left]).toEqual(['lost', 'settled', [REPLY], undefined])
    })

    it('has the last events of the run on record, unless the claim is lost', async () => {
      const { say, take, begin, queue, other, clock, store } = await setup(engine)
      const events = [{ seq: 1, event: { type: 'notice' as const, content: 'n', timestamp: 1 } }]
      await say('one', { address: 'a' })
      const work = await take()
      await begin(work, 'run-1')
      await say('two', { address: 'b' })
      const stale = await take()
      await begin(stale, 'run-2')
      const settled = await queue.settle(work, answered('run-1'), events)
      clock.now += LEASE_MS
      await take(other)
      const lost = await queue.settle(stale, answered('run-2'), events)
      expect([settled, await store.events.list('run-1'), lost, await store.events.list('run-2')]).toEqual([
        'settled',
        events,
        'lost',
        [],
      ])
    })

    it('answered: the reply goes out, run and session are kept, the next message may run', async () => {
      const { say, take, begin, queue, clock, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const next = await say('two')
      const work = await take()
      await begin(work, 'run-1')
      clock.now = 2_000
      const outcome = await queue.settle(work, { ...answered('run-1'), session: session(conversationId) })
      const [told, ...more] = await store.outbox.history(conversationId, 9)
      expect([
        outcome,
        await statesOf(store, [messageId, next.messageId]),
        await store.jobs.first(conversationId),
        more,
      ]).toEqual(['settled', ['answered', 'open'], { messageId: next.messageId, state: 'ready', dueAt: 2_000 }, []])
      expect([told, await store.runs.get('run-1'), await store.sessions.get(conversationId)]).toEqual([
        {
          id: told?.id,
          conversationId,
          channel: CHANNEL,
          address: 'a',
          seq: told?.seq,
          messageId,
          runId: 'run-1',
          reply: REPLY,
          state: 'pending',
          attempts: 0,
          fence: 0,
          createdAt: 2_000,
          expiresAt: 2_000 + REPLY_EXPIRY_MS,
        },
        expect.objectContaining({ state: 'answered', endedAt: 2_000, sessionId: 's', result: RESULT }),
        { ...session(conversationId), usedAt: 2_000 },
      ])
    })

    it('failed: the message becomes a dead letter, the person is told, the next may run', async () => {
      const { say, take, queue, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const next = await say('two')
      const reply = { text: 'It broke \0', notes: [], isError: true }
      const outcome = await queue.settle(await take(), { kind: 'failed', problem: 'exit: It broke \0', reply })
      const [told] = await store.outbox.history(conversationId, 9)
      const failed = (await store.inbox.listFailed(9)).map(({ id, problem }) => ({ id, problem }))
      expect([outcome, failed, told?.reply, (await take()).message.id]).toEqual([
        'settled',
        [{ id: messageId, problem: 'exit: It broke ' }],
        reply,
        next.messageId,
      ])
    })

    it('cancelled: nobody is told, the run is kept, the next may run', async () => {
      const { say, take, begin, queue, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const next = await say('two')
      const work = await take()
      await begin(work, 'run-1')
      const outcome = await queue.settle(work, { kind: 'cancelled', run: { id: 'run-1', result: RESULT } })
      expect([
        outcome,
        await statesOf(store, [messageId]),
        await store.outbox.history(conversationId, 9),
        (await store.runs.get('run-1'))?.state,
        (await take()).message.id,
      ]).toEqual(['settled', ['cancelled'], [], 'cancelled', next.messageId])
    })

    it('retry: the message waits before the others of its conversation and counts the attempt', async () => {
      const { say, take, begin, queue, clock, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      await say('two')
      const work = await take()
      await begin(work, 'run-1')
      const run = { id: 'run-1', result: RESULT }
      const outcome = await queue.settle(work, { kind: 'retry', at: 6_000, isAttempt: true, run })
      clock.now = 5_999
      const early = await queue.claim([CHANNEL])
      clock.now = 6_000
      const again = await take()
      expect([
        outcome,
        early,
        [again.message.id, again.claim.failures, again.claim.interruptions, again.wasInterrupted],
        (await store.runs.get('run-1'))?.state,
        await store.outbox.history(conversationId, 9),
      ]).toEqual(['settled', undefined, [messageId, 1, 0, false], 'failed', []])
    })

    it('retry with a note: the person is told why they wait, and it counts as no attempt', async () => {
      const { say, take, begin, queue, clock, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const work = await take()
      await begin(work, 'run-1')
      const run = { id: 'run-1', result: RESULT }
      await queue.settle(work, { kind: 'retry', at: 6_000, isAttempt: false, run, note: REPLY })
      clock.now = 6_000
      const [told] = await store.outbox.history(conversationId, 9)
      expect([told?.reply, told?.messageId, (await take()).claim.failures]).toEqual([REPLY, messageId, 0])
    })

    it('handed-back: another may claim the message at once, marked as interrupted', async () => {
      const { say, take, begin, queue, other, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const work = await take()
      await begin(work, 'run-1')
      const outcome = await queue.settle(work, { kind: 'handed-back', runId: 'run-1' })
      const again = await take(other)
      expect([
        outcome,
        [again.message.id, again.wasInterrupted, again.claim.failures, again.claim.interruptions],
        (await store.runs.get('run-1'))?.state,
        await store.outbox.history(conversationId, 9),
      ]).toEqual(['settled', [messageId, true, 0, 0], 'interrupted', []])
    })

    it('numbers replies in the order of the messages', async () => {
      const { say, take, queue, store } = await setup(engine)
      const { conversationId } = await say('one')
      await say('two')
      await say('three')
      const order: string[] = []
      for (let count = 0; count < 3; count++) {
        const work = await take()
        order.push(work.message.id)
        await queue.settle(work, answered())
      }
      const replies = await store.outbox.history(conversationId, 9)
      expect(replies.map(({ messageId }) => messageId)).toEqual(order)
    })

    it('does not restore a session that the person has reset in the meantime', async () => {
      const { say, take, queue, clock, store } = await setup(engine)
      const { conversationId } = await say('one')
      const work = await take()
      await queue.keepSession(work, session(conversationId))
      clock.now += 1
      await store.sessions.reset(conversationId, clock.now)
      await queue.keepSession(work, session(conversationId))
      await queue.settle(work, { ...answered(), session: session(conversationId) })
      expect(await store.sessions.get(conversationId)).toBeUndefined()
    })

    const ends: [string, (conversationId: string) => Settlement][] = [
      ['answered', (id) => ({ ...answered('run-1'), session: session(id) })],
      ['failed', (id) => ({ kind: 'failed', problem: 'p', reply: REPLY, session: session(id) })],
      ['cancelled', (id) => ({ kind: 'cancelled', run: { id: 'run-1', result: RESULT }, session: session(id) })],
      ['retry', () => ({ kind: 'retry', at: 0, isAttempt: true, run: { id: 'run-1', result: RESULT }, note: REPLY })],
      ['handed-back', () => ({ kind: 'handed-back', runId: 'run-1' })],
    ]

    describe.each(ends)('%s under a lost claim changes nothing', (_, settlement) => {
      it('when another has the message', async () => {
        const { say, take, begin, queue, other, clock, store } = await setup(engine)
        const { conversationId } = await say('one')
        await say('two')
        const stale = await take()
        await begin(stale, 'run-1')
        clock.now += LEASE_MS
        await begin(await take(other), 'run-2')
        const before = await snapshot(store, conversationId)
        expect([
          await queue.settle(stale, settlement(conversationId)),
          await snapshot(store, conversationId),
          (await store.runs.get('run-1'))?.state,
        ]).toEqual(['lost', before, 'interrupted'])
      })

      it('when the message is finished', async () => {
        const { say, take, begin, queue, other, clock, store } = await setup(engine)
        const { conversationId } = await say('one')
        await say('two')
        const stale = await take()
        await begin(stale, 'run-1')
        clock.now += LEASE_MS
        await other.settle(await take(other), answered())
        const before = await snapshot(store, conversationId)
        expect([await queue.settle(stale, settlement(conversationId)), await snapshot(store, conversationId)]).toEqual([
          'lost',
          before,
        ])
      })

      it('when the worker itself has given it back', async () => {
        const { say, take, begin, queue, store } = await setup(engine)
        const { conversationId } = await say('one')
        await say('two')
        const stale = await take()
        await begin(stale, 'run-1')
        await queue.settle(stale, { kind: 'handed-back', runId: 'run-1' })
        const before = await snapshot(store, conversationId)
        expect([await queue.settle(stale, settlement(conversationId)), await snapshot(store, conversationId)]).toEqual([
          'lost',
          before,
        ])
      })
    })
  })

  describe('renew', () => {
    it('keeps a message from others, and reports a cancellation and a loss', async () => {
      const { say, take, queue, other, clock, store } = await setup(engine)
      const { messageId } = await say('one')
      const work = await take()
      clock.now += LEASE_MS - 1
      const states = [await queue.renew(work)]
      clock.now += LEASE_MS - 1
      const meanwhile = await other.claim([CHANNEL])
      await store.jobs.requestCancel(messageId)
      states.push(await queue.renew(work))
      clock.now += LEASE_MS
      await take(other)
      states.push(await queue.renew(work))
      expect([states, meanwhile]).toEqual([['held', 'cancelled', 'lost'], undefined])
    })
  })

  describe('drop', () => {
    it('takes a waiting message out, and the others move up', async () => {
      const { say, take, queue, store } = await setup(engine)
      const [one, two, three] = [await say('one'), await say('two'), await say('three')]
      const outcomes = [await queue.drop(one.messageId), await queue.drop(three.messageId)]
      expect([
        outcomes,
        await statesOf(store, [one.messageId, two.messageId, three.messageId]),
        (await take()).message.id,
        await store.outbox.history(one.conversationId, 9),
      ]).toEqual([['dropped', 'dropped'], ['dropped', 'open', 'dropped'], two.messageId, []])
    })

    it('leaves a message that somebody works on', async () => {
      const { say, take, queue } = await setup(engine)
      const { messageId } = await say('one')
      const work = await take()
      expect([await queue.drop(messageId), await queue.renew(work)]).toEqual(['active', 'held'])
    })

    it('lets go of a dead letter', async () => {
      const { say, take, queue, store } = await setup(engine)
      const { messageId } = await say('one')
      await queue.settle(await take(), { kind: 'failed', problem: 'p', reply: REPLY })
      expect([await queue.drop(messageId), await store.inbox.listFailed(9)]).toEqual(['dropped', []])
    })

    it('reports finished messages, and unknown ones', async () => {
      const { say, take, queue } = await setup(engine)
      const { messageId } = await say('one')
      await queue.settle(await take(), answered())
      const error = await queue.drop('none').catch((error: unknown) => error)
      expect([await queue.drop(messageId), error]).toEqual(['finished', notFound()])
    })
  })

  describe('retry', () => {
    it('retries a dead letter, behind what came since, and counts from the start', async () => {
      const { say, take, queue } = await setup(engine)
      const { messageId } = await say('one')
      const run = { id: 'none', result: RESULT }
      await queue.settle(await take(), { kind: 'retry', at: 0, isAttempt: true, run })
      await queue.settle(await take(), { kind: 'failed', problem: 'p', reply: REPLY })
      const two = await say('two')
      const outcome = await queue.retry(messageId)
      const next = await take()
      await queue.settle(next, answered())
      const last = await take()
      expect([outcome, next.message.id, last.message.id, last.claim.failures, last.message.problem]).toEqual([
        'message',
        two.messageId,
        messageId,
        0,
        undefined,
      ])
    })

    it('rejects writes of earlier holders of the message', async () => {
      const { say, take, queue, other, clock, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const lost = await take()
      clock.now += LEASE_MS
      const failed = await take(other)
      await other.settle(failed, { kind: 'failed', problem: 'p', reply: REPLY })
      await queue.retry(messageId)
      const outcomes = [await queue.settle(lost, answered()), await other.settle(failed, answered())]
      await take()
      await store.jobs.expireLeases('one', clock.now)
      await take()
      const before = await snapshot(store, conversationId)
      outcomes.push(await queue.settle(lost, answered()), await other.settle(failed, answered()))
      expect([outcomes, await snapshot(store, conversationId)]).toEqual([Array<string>(4).fill('lost'), before])
    })

    it('sends a reply again that was not delivered, with new time', async () => {
      const { say, take, queue, clock, store } = await setup(engine)
      const { conversationId } = await say('one')
      await queue.settle(await take(), answered())
      clock.now += REPLY_EXPIRY_MS
      const [expired] = await store.outbox.expire(clock.now)
      const outcome = await queue.retry(expired?.id ?? '')
      const [reply] = await store.outbox.history(conversationId, 9)
      expect([outcome, reply?.id, reply?.state, reply?.expiresAt]).toEqual([
        'reply',
        expired?.id,
        'pending',
        clock.now + REPLY_EXPIRY_MS,
      ])
    })

    it('sends a reply again as a later attempt, because an earlier one may have arrived', async () => {
      const { say, take, queue, clock, store } = await setup(engine)
      await say('one')
      await queue.settle(await take(), answered())
      const send = () => store.outbox.claim('one', [CHANNEL], clock.now, LEASE_MS)
      const first = await send()
      if (!first) throw new Error('There is nothing to send')
      await store.outbox.settle(first, 'undelivered', 'No connection', clock.now)
      await queue.retry(first.id)
      expect([first, await send()].map((delivery) => delivery && [delivery.id, delivery.attempts])).toEqual([
        [first.id, 1],
        [first.id, 2],
      ])
    })

    it('refuses messages that have not failed, and unknown ones', async () => {
      const { say, take, queue, store } = await setup(engine)
      const { messageId, conversationId } = await say('one')
      const whileOpen = await queue.retry(messageId).catch((error: unknown) => error)
      await queue.settle(await take(), answered())
      const [reply] = await store.outbox.history(conversationId, 9)
      const afterwards = await queue.retry(messageId).catch((error: unknown) => error)
      const onItsWay = await queue.retry(reply?.id ?? '').catch((error: unknown) => error)
      const missing = await queue.retry('none').catch((error: unknown) => error)
      const refused = (reason: string) =>
        expect.objectContaining({ code: 'conflict', message: expect.stringContaining(reason) })
      expect([whileOpen, afterwards, onItsWay, missing]).toEqual([
        refused('it is open'),
        refused('it is answered'),
        refused('its reply is pending'),
        notFound(),
      ])
    })

    it('takes a dead letter up once when two ask at once', async () => {
      const { say, take, queue, other, store } = await setup(engine)
      const { messageId } = await say('one')
      await queue.settle(await take(), { kind: 'failed', problem: 'p', reply: REPLY })
      const outcomes = await Promise.allSettled([queue.retry(messageId), other.retry(messageId)])
      const problems = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
      expect([problems, (await store.inbox.listOpen(9)).map(({ id }) => id)]).toEqual([
        [expect.objectContaining({ code: 'conflict' })],
        [messageId],
      ])
    })
  })

  describe('edit', () => {
    const textOf = async (store: Store, messageId: string) => (await store.inbox.get(messageId))?.text

    it('changes the text of a message that waits, which keeps its place', async () => {
      const { say, take, queue } = await setup(engine)
      for (const platformId of ['one', 'two', 'three']) await say(platformId)
      const outcomes = [await queue.edit(CHANNEL, 'two', 'Changed 🙂'), await queue.edit(CHANNEL, 'one', 'First')]
      const texts: string[] = []
      for (let count = 0; count < 3; count++) {
        const work = await take()
        texts.push(work.message.text)
        await queue.settle(work, answered())
      }
      expect([outcomes, texts]).toEqual([
        ['changed', 'changed'],
        ['First', 'Changed 🙂', 'Hello three'],
      ])
    })

    it('changes a message that waits to be tried again', async () => {
      const { say, take, queue, clock } = await setup(engine)
      await say('one')
      const run = { id: 'none', result: RESULT }
      await queue.settle(await take(), { kind: 'retry', at: 5_000, isAttempt: true, run })
      const outcome = await queue.edit(CHANNEL, 'one', 'Changed')
      clock.now = 5_000
      expect([outcome, (await take()).message.text]).toEqual(['changed', 'Changed'])
    })

    it('comes too late if an agent has begun with the message', async () => {
      const { say, take, queue, store } = await setup(engine)
      const { messageId } = await say('one')
      await take()
      expect([await queue.edit(CHANNEL, 'one', 'Changed'), await textOf(store, messageId)]).toEqual([
        'late',
        'Hello one',
      ])
    })

    it.each<[state: string, finish: (stage: Stage, messageId: string) => Promise<unknown>]>([
      ['answered', async ({ queue, take }) => queue.settle(await take(), answered())],
      ['cancelled', async ({ queue, take }) => queue.settle(await take(), { kind: 'cancelled' })],
      ['failed', async ({ queue, take }) => queue.settle(await take(), { kind: 'failed', problem: 'p', reply: REPLY })],
      ['dropped', ({ queue }, messageId) => queue.drop(messageId)],
    ])('comes too late for a message that is %s', async (state, finish) => {
      const stage = await setup(engine)
      const { messageId } = await stage.say('one')
      await finish(stage, messageId)
      const outcome = await stage.queue.edit(CHANNEL, 'one', 'Changed')
      const message = await stage.store.inbox.get(messageId)
      expect([outcome, message?.state, message?.text]).toEqual(['late', state, 'Hello one'])
    })

    it('knows no message of another id or of another channel', async () => {
      const { say, queue, store } = await setup(engine)
      const { messageId } = await say('one')
      expect([
        await queue.edit(CHANNEL, 'two', 'Changed'),
        await queue.edit('mail', 'one', 'Changed'),
        await textOf(store, messageId),
      ]).toEqual(['unknown', 'unknown', 'Hello one'])
    })

    it('leaves NUL out', async () => {
      const { say, queue, take } = await setup(engine)
      await say('one')
      await queue.edit(CHANNEL, 'one', 'Chan\0ged\0')
      expect((await take()).message.text).toBe('Changed')
    })

    it.each([
      ['empty', ' \n\0'],
      ['too long', 'x'.repeat(MAX_MESSAGE_CHARACTERS + 1)],
    ])('leaves a message as it is when the new text is %s', async (_, text) => {
      const { say, queue, take } = await setup(engine)
      await say('one')
      await queue.edit(CHANNEL, 'one', text)
      expect((await take()).message.text).toBe('Hello one')
    })

    it('has changed what the agent gets, or is late, if somebody claims the message at the same moment', async () => {
      const { say, queue, other } = await setup(engine)
      for (let count = 0; count < 20; count++) {
        await say(`${count}`, { address: `${count}` })
        const [outcome, early] = await Promise.all([queue.edit(CHANNEL, `${count}`, 'Changed'), other.claim([CHANNEL])])
        // A claim skips what is being changed.
        const work = early ?? (await other.claim([CHANNEL]))
        expect(work?.message.text).toBe(outcome === 'changed' ? 'Changed' : `Hello ${count}`)
      }
    })
  })

  it('is consistent after it was closed in the middle of everything', async () => {
    const location = await engine.createLocation()
    const clock = { now: 1_000 }
    const first = queueOf(await openTestStore(location), clock, 'one', MAX_QUEUE_DEPTH)
    const incoming = { channel: CHANNEL, address: 'a', author: 'ann', text: 'Hello' }
    for (const platformId of ['one', 'two', 'three']) await first.accept({ ...incoming, platformId })
    const stale = await first.claim([CHANNEL])
    const second = queueOf(await openTestStore(location), clock, 'two', MAX_QUEUE_DEPTH)
    clock.now += LEASE_MS
    const order: string[] = []
    for (let work = await second.claim([CHANNEL]); work; work = await second.claim([CHANNEL])) {
      order.push(work.message.platformId)
      await second.settle(work, answered())
    }
    const late = stale && (await first.settle(stale, answered()))
    expect([order, late, (await second.accept({ ...incoming, platformId: 'two' })).status]).toEqual([
      ['one', 'two', 'three'],
      'lost',
      'duplicate',
    ])
  })
})

interface Stage {
  store: Store
  clock: { now: number }
  queue: Queue
  /** The queue of another gateway on the same database. */
  other: Queue
  say(platformId: string, message?: Partial<IncomingMessage>): Promise<Acceptance>
  take(queue?: Queue): Promise<Work>
  begin(work: Work, runId: string): Promise<void>
}

async function setup(engine: TestEngine, { maxQueueDepth = MAX_QUEUE_DEPTH } = {}): Promise<Stage> {
  const store = await engine.createStore()
  const clock = { now: 1_000 }
  const queue = queueOf(store, clock, 'one', maxQueueDepth)
  return {
    store,
    clock,
    queue,
    other: queueOf(store, clock, 'two', maxQueueDepth),
    say: (platformId, message = {}) =>
      queue.accept({
        channel: CHANNEL,
        address: 'a',
        platformId,
        author: 'ann',
        text: `Hello ${platformId}`,
        ...message,
      }),
    take: async (from = queue) => {
      const work = await from.claim([CHANNEL])
      if (!work) throw new Error('There is nothing to claim')
      return work
    },
    begin: async (work, runId) => {
      const { messageId, conversationId } = work.claim
      await store.runs.begin({ id: runId, messageId, conversationId, gatewayId: 'one', backend: 'pi' }, clock.now)
    },
  }
}

function queueOf(store: Store, clock: { now: number }, gatewayId: string, maxQueueDepth: number): Queue {
  const limits = { maxQueueDepth, leaseMs: LEASE_MS, replyExpiryMs: REPLY_EXPIRY_MS }
  return queueOn(store, { ...limits, gatewayId, now: () => clock.now })
}

function answered(runId = 'none'): Settlement & { kind: 'answered' } {
  return { kind: 'answered', run: { id: runId, result: RESULT }, reply: REPLY }
}

function reasonOf(acceptance: Acceptance): string | undefined {
  return acceptance.status === 'refused' ? acceptance.reason : undefined
}

function notFound(): unknown {
  return expect.objectContaining({ code: 'not_found', message: expect.stringContaining('aetheel queue list') })
}

async function statesOf(store: Store, messageIds: string[]): Promise<unknown[]> {
  return Promise.all(messageIds.map(async (id) => (await store.inbox.get(id))?.state))
}

/** Everything that a settlement may change. */
async function snapshot(store: Store, conversationId: string): Promise<unknown> {
  return {
    messages: await store.inbox.history(conversationId, 99),
    open: await store.inbox.listOpen(99),
    first: await store.jobs.first(conversationId),
    replies: await store.outbox.history(conversationId, 99),
    session: await store.sessions.get(conversationId),
    runs: await store.runs.list(99),
  }
}
