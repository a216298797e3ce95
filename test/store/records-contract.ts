import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { AgentResult } from '../../src/backends/types.js'
import type { Place } from '../../src/channels/types.js'
import type { Conversation } from '../../src/store/conversations.js'
import type { RecordedEvent } from '../../src/store/events.js'
import type { NewRun } from '../../src/store/runs.js'
import type { Store } from '../../src/store/store.js'
import type { TestEngine } from '../kit/engines.js'
import { CHANNEL, createStage, LEASE_MS, newMessage } from './stage.js'

const USAGE = {
  inputTokens: 1,
  outputTokens: 2,
  cacheReadTokens: 3,
  cacheWriteTokens: 4,
  reasoningTokens: 5,
  totalTokens: 10,
}
/** Larger than 32 bits, as every time is. */
const NOW = 1_800_000_000_123

export function describeRecordsContract(engine: TestEngine): void {
  describe('conversations', () => {
    it('number what comes in, each on its own', async () => {
      const { conversations } = (await createStage(engine)).store
      const places = [
        await conversations.enter({ channel: CHANNEL, address: 'general' }, 'a', 1),
        await conversations.enter({ channel: CHANNEL, address: 'general' }, 'unused', 2),
        await conversations.enter({ channel: CHANNEL, address: 'other' }, 'b', 3),
        await conversations.enter({ channel: 'mail', address: 'general' }, 'c', 4),
        await conversations.nextSeq('a', 5),
      ]
      const general = { id: 'a', channel: CHANNEL, address: 'general' }
      expect(places).toEqual([
        { ...general, seq: 1 },
        { ...general, seq: 2 },
        { id: 'b', channel: CHANNEL, address: 'other', seq: 1 },
        { id: 'c', channel: 'mail', address: 'general', seq: 1 },
        3,
      ])
    })

    it('are entered with what was chosen for them and for their parent', async () => {
      const { conversations } = (await createStage(engine)).store
      await conversations.enter({ channel: CHANNEL, address: 'room' }, 'room', 1)
      await conversations.configure('room', { backend: 'pi', queueMode: 'steer' })
      const room = await conversations.enter({ channel: CHANNEL, address: 'room' }, 'unused', 2)
      const thread = await conversations.enter({ channel: CHANNEL, address: 'thread', parent: 'room' }, 'thread', 3)
      const chosen = { backend: 'pi', queueMode: 'steer' }
      expect([room, thread]).toEqual([
        { id: 'room', channel: CHANNEL, address: 'room', seq: 2, ...chosen },
        { id: 'thread', channel: CHANNEL, address: 'thread', seq: 1, ...chosen },
      ])
    })

    it('know where they take place, as their channel last reported', async () => {
      const { conversations } = (await createStage(engine)).store
      await conversations.enter({ channel: CHANNEL, address: 'room' }, 'room', 1)
      await conversations.enter({ channel: CHANNEL, address: 'thread' }, 'thread', 2)
      const place = { address: 'thread', parent: 'room', projectId: 'site' }
      await conversations.enter({ channel: CHANNEL, ...place }, 'unused', 3)
      expect([await conversations.place('room'), await conversations.place('thread')]).toEqual([
        { address: 'room' },
        place,
      ])
    })

    it('are found by id and by address', async () => {
      const { conversations } = (await createStage(engine)).store
      await conversations.enter({ channel: CHANNEL, address: `#"o'ne" 🙂` }, 'a', 1)
      const a = { id: 'a', channel: CHANNEL, address: `#"o'ne" 🙂` }
      expect([
        await conversations.get('a'),
        await conversations.find(CHANNEL, `#"o'ne" 🙂`),
        await conversations.get('b'),
        await conversations.find('mail', `#"o'ne" 🙂`),
      ]).toEqual([a, a, undefined, undefined])
    })

    it('have their own settings, which can be cleared one by one', async () => {
      const { conversations } = (await createStage(engine)).store
      await conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 1)
      await conversations.enter({ channel: CHANNEL, address: 'b' }, 'b', 1)
      await conversations.configure('a', { projectId: 'site', backend: 'codex', model: 'large' })
      await conversations.configure('a', { backend: 'pi', model: null })
      await conversations.configure('a', {})
      expect([await conversations.get('a'), await conversations.get('b')]).toEqual([
        { id: 'a', channel: CHANNEL, address: 'a', projectId: 'site', backend: 'pi' },
        { id: 'b', channel: CHANNEL, address: 'b' },
      ])
    })
  })

  describe('conversations with a parent', () => {
    const enter = (store: Store, id: string, place: Partial<Place>) =>
      store.conversations.enter({ channel: CHANNEL, address: id, ...place }, id, 1)

    it('inherit its choices where they have none; the project the operator gave comes last', async () => {
      const { store } = await createStage(engine)
      await enter(store, 'room', {})
      await enter(store, 'thread', { parent: 'room', projectId: 'given' })
      await enter(store, 'own', { parent: 'room', projectId: 'given' })
      await store.conversations.configure('own', { projectId: 'app', backend: 'pi' })
      const before = await store.conversations.get('thread')
      await store.conversations.configure('room', { projectId: 'site', backend: 'codex', model: 'large' })
      const ofChannel = { channel: CHANNEL }
      expect([before, await store.conversations.get('thread'), await store.conversations.get('own')]).toEqual([
        { id: 'thread', ...ofChannel, address: 'thread', projectId: 'given' },
        { id: 'thread', ...ofChannel, address: 'thread', projectId: 'site', backend: 'codex', model: 'large' },
        { id: 'own', ...ofChannel, address: 'own', projectId: 'app', backend: 'pi' },
      ])
    })
  })

  it('keeps projects by id; a later definition replaces the earlier one as a whole', async () => {
    const { projects } = (await createStage(engine)).store
    await projects.put({ id: 'site', directory: '/srv/site', backend: 'codex', model: 'large', maxTurns: 3 }, 'file', 1)
    await projects.put(
      {
        id: 'app',
        directory: '/srv/app',
        allowedTools: ['Read', 'Bash'],
        queryTimeoutMs: 5_000_000_000,
        isUntrusted: true,
        agentPermissions: 'ask',
      },
      'api',
      2,
    )
    await projects.put({ id: 'site', name: 'The site', directory: '/srv/new', allowedTools: [] }, 'file', 3)
    const app = {
      id: 'app',
      source: 'api',
      instance: 'app~2',
      directory: '/srv/app',
      allowedTools: ['Read', 'Bash'],
      queryTimeoutMs: 5_000_000_000,
      isUntrusted: true,
      agentPermissions: 'ask',
      createdAt: 2,
      updatedAt: 2,
    }
    const files = { id: 'site', name: 'The site', source: 'file', instance: 'site~1' }
    const site = { ...files, directory: '/srv/new', allowedTools: [], createdAt: 1, updatedAt: 3 }
    expect([await projects.list(), await projects.get('site'), await projects.get('none')]).toEqual([
      [app, site],
      site,
      undefined,
    ])
  })

  it('distinguishes a project from an earlier one with the same id', async () => {
    const { projects } = (await createStage(engine)).store
    await projects.add({ id: 'site', directory: '/srv', isMadeHere: true }, NOW)
    await projects.change('site', { name: 'The site' }, NOW + 1)
    const before = await projects.get('site')
    await projects.remove('site')
    await projects.add({ id: 'site', directory: '/srv' }, NOW + 2)
    const after = await projects.get('site')
    expect([before?.instance === after?.instance, before?.isMadeHere, after?.isMadeHere]).toEqual([
      false,
      true,
      undefined,
    ])
  })

  describe('sessions', () => {
    it('are one per conversation: that of another agent replaces it', async () => {
      const { sessions } = (await createStage(engine)).store
      const old = { conversationId: 'a', backend: 'codex', sessionId: 's1', directory: '/srv', usage: USAGE }
      await sessions.set(old, NOW)
      const before = await sessions.get('a')
      await sessions.set({ conversationId: 'a', backend: 'claude', sessionId: 's2', directory: '/srv/b' }, NOW + 5)
      await sessions.set({ conversationId: 'b', backend: 'pi', sessionId: 's3', directory: '/srv' }, NOW)
      expect([before, await sessions.get('a')]).toEqual([
        { ...old, usedAt: NOW },
        {
          conversationId: 'a',
          backend: 'claude',
          sessionId: 's2',
          directory: '/srv/b',
          usedAt: NOW + 5,
        },
      ])
    })

    it('record when they were last used', async () => {
      const { sessions } = (await createStage(engine)).store
      const session = { conversationId: 'a', backend: 'codex', sessionId: 's1', directory: '/srv' }
      await sessions.set(session, NOW)
      await sessions.set(session, NOW + 5)
      expect(await sessions.get('a')).toEqual({ ...session, usedAt: NOW + 5 })
    })

    it('are deleted only if they have not been replaced', async () => {
      const { sessions } = (await createStage(engine)).store
      const session = { conversationId: 'a', backend: 'pi', sessionId: 's', directory: '/srv' }
      await sessions.set(session, NOW)
      await sessions.set({ ...session, conversationId: 'b' }, NOW)
      await sessions.delete('a', 's')
      await sessions.delete('b', 'an older one')
      expect([await sessions.get('a'), (await sessions.get('b'))?.sessionId]).toEqual([undefined, 's'])
    })

    it('that were reset are gone; a reset says whether there was one', async () => {
      const { store } = await createStage(engine)
      await store.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 0)
      await store.sessions.set({ conversationId: 'a', backend: 'pi', sessionId: 's', directory: '/srv' }, NOW)
      const outcomes = [await store.sessions.reset('a', NOW + 1), await store.sessions.reset('a', NOW + 2)]
      expect([outcomes, await store.sessions.get('a'), await store.sessions.list(9)]).toEqual([
        [true, false],
        undefined,
        [],
      ])
    })

    it('that were reset are not brought back by a turn that began before', async () => {
      const { sessions } = (await createStage(engine)).store
      const session = { conversationId: 'a', backend: 'pi', sessionId: 's', directory: '/srv' }
      await sessions.reset('a', NOW + 5)
      await sessions.set(session, NOW + 9, NOW + 4)
      const early = await sessions.get('a')
      await sessions.set(session, NOW + 9, NOW + 6)
      expect([early, (await sessions.get('a'))?.sessionId]).toEqual([undefined, 's'])
    })

    it('that were chosen are not replaced by a turn that began before', async () => {
      const { sessions } = (await createStage(engine)).store
      const session = { conversationId: 'a', backend: 'pi', sessionId: 's', directory: '/srv' }
      const chosen = { ...session, sessionId: 'chosen', usage: USAGE }
      await sessions.set(session, NOW)
      await sessions.choose(chosen, NOW + 5)
      await sessions.choose({ ...chosen, conversationId: 'b' }, NOW + 5)
      await sessions.set(session, NOW + 9, NOW + 4)
      const kept = [await sessions.get('a'), await sessions.get('b')]
      await sessions.set(session, NOW + 9, NOW + 6)
      expect([kept, (await sessions.get('a'))?.sessionId]).toEqual([
        [
          { ...chosen, usedAt: NOW + 5 },
          { ...chosen, conversationId: 'b', usedAt: NOW + 5 },
        ],
        's',
      ])
    })

    it('know which conversations continue in them', async () => {
      const { sessions } = (await createStage(engine)).store
      const session = { backend: 'pi', sessionId: 's', directory: '/srv' }
      for (const conversationId of ['a', 'b', 'c']) await sessions.set({ ...session, conversationId }, NOW)
      await sessions.reset('b', NOW + 1)
      await sessions.set({ ...session, conversationId: 'c', backend: 'codex' }, NOW + 1)
      expect([
        await sessions.conversationsIn(session),
        await sessions.conversationsIn({ ...session, sessionId: 't' }),
      ]).toEqual([['a'], []])
    })

    it('are listed with their conversations, most recently used first', async () => {
      const { store } = await createStage(engine)
      for (const [index, id] of ['one', 'two', 'three'].entries()) {
        await store.conversations.enter({ channel: CHANNEL, address: `#${id}` }, id, 0)
        await store.sessions.set({ conversationId: id, backend: 'pi', sessionId: id, directory: '/srv' }, NOW + index)
      }
      const listed = await store.sessions.list(2)
      expect(listed.map(({ sessionId, channel, address }) => ({ sessionId, channel, address }))).toEqual([
        { sessionId: 'three', channel: CHANNEL, address: '#three' },
        { sessionId: 'two', channel: CHANNEL, address: '#two' },
      ])
    })
  })

  describe('runs', () => {
    it('record how they went', async () => {
      const { store, run } = await createRuns(engine)
      const result: AgentResult = {
        isError: true,
        finalOutput: `It's "done" \0 🙂`,
        sessionId: 's',
        durationMs: 12,
        usage: USAGE,
        failure: { reason: 'exit', message: 'no \0', report: 'r' },
      }
      const more = { model: 'large', metadata: { ticket: `it's "7"` } }
      await store.runs.begin({ ...run('one'), ...more }, NOW)
      const before = await store.runs.get('one')
      await store.runs.end('one', 'failed', result, NOW + 12)
      const begun = { ...run('one'), ...more, firstSeq: 0, startedAt: NOW }
      expect([before, await store.runs.get('one'), await store.runs.get('none')]).toEqual([
        { ...begun, state: 'running' },
        { ...begun, sessionId: 's', state: 'failed', endedAt: NOW + 12, result },
        undefined,
      ])
    })

    it('are found by the beginning of their id, at most two', async () => {
      const { store, run } = await createRuns(engine)
      for (const id of ['ab-1', 'ab-2', 'ab-3', 'ac-1']) await store.runs.begin(run(id), NOW)
      const found = async (prefix: string) => (await store.runs.findByPrefix(prefix)).map(({ id }) => id)
      expect([await found('ac'), (await found('ab')).length, await found('x')]).toEqual([['ac-1'], 2, []])
    })

    it('are listed newest first', async () => {
      const { store, run } = await createRuns(engine)
      for (const [index, id] of ['one', 'two', 'three'].entries()) await store.runs.begin(run(id), NOW + index)
      expect((await store.runs.list(2)).map(({ id }) => id)).toEqual(['three', 'two'])
    })

    it('that nobody works on any more are marked as interrupted; finished ones stay as they are', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), 1)
      await store.runs.end('one', 'failed', undefined, 2)
      await store.runs.begin(run('two'), 3)
      await store.runs.interrupt('m', 4)
      expect([await store.runs.get('one'), await store.runs.get('two')]).toEqual([
        { ...run('one'), firstSeq: 0, state: 'failed', startedAt: 1, endedAt: 2 },
        { ...run('two'), firstSeq: 0, state: 'interrupted', startedAt: 3, endedAt: 4 },
      ])
    })

    it('count as interrupted if the latest of the message was', async () => {
      const { store, run } = await createRuns(engine)
      const states = [await store.runs.wasInterrupted('m')]
      await store.runs.begin(run('one'), 1)
      await store.runs.interrupt('m', 2)
      states.push(await store.runs.wasInterrupted('m'))
      await store.runs.begin(run('two'), 3)
      states.push(await store.runs.wasInterrupted('m'))
      await store.runs.end('two', 'failed', undefined, 4)
      states.push(await store.runs.wasInterrupted('m'))
      expect(states).toEqual([false, true, false, false])
    })

    it('keep their events in order and without gaps, however many', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), NOW)
      await store.runs.begin(run('two'), NOW)
      await store.events.record('one', events(1, 1))
      await store.events.record('one', [])
      await store.events.record('one', events(2, 1_700))
      await store.events.record('two', events(1, 2))
      expect([await store.events.list('one'), await store.events.list('one', 1_698)]).toEqual([
        events(1, 1_700),
        events(1_699, 1_700),
      ])
    })

    it('have their events read page by page, up to the event that fills the page', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), NOW)
      await store.runs.begin(run('two'), NOW)
      const long = { type: 'output' as const, content: 'é'.repeat(1_000), stream: 'stdout' as const, timestamp: NOW }
      const recorded = [1, 2, 3, 4, 5].map((seq) => ({ seq, event: seq > 3 ? long : { ...long, content: 'short' } }))
      await store.events.record('one', recorded)
      await store.events.record('two', recorded)
      const page = async (after: number, limit: number, bytes: number): Promise<[number[], boolean]> => {
        const read = await store.events.page('one', after, { events: limit, bytes })
        return [read.events.map(({ seq }) => seq), read.isLast]
      }
      expect([
        await store.events.page('one', 3, { events: 10, bytes: 10_000 }),
        await page(0, 2, 10_000),
        await page(0, 10, 1_500),
        await page(4, 10, 1_500),
        await page(4, 10, 2_500),
        await page(5, 10, 1),
      ]).toEqual([
        { events: recorded.slice(3), isLast: true },
        [[1, 2], false],
        [[1, 2, 3, 4], false],
        [[5], false],
        [[5], true],
        [[], true],
      ])
    })

    it('keep events that come one by one; the latest version of each counts', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), NOW)
      await store.runs.begin(run('two'), NOW)
      for (const event of [...events(1, 3), toolUse(2, 't', 'ls')]) await store.events.record('one', [event])
      await store.events.record('two', events(1, 1))
      expect([await store.events.list('one'), await store.events.latestTools('one')]).toEqual([
        [...events(1, 1), toolUse(2, 't', 'ls'), ...events(3, 3)],
        [{ name: 'Bash', input: { command: 'ls' }, isRunning: true }],
      ])
    })

    it('say which is the latest of a message and where its events begin', async () => {
      const { store, run } = await createRuns(engine)
      const latest = [await store.runs.latest('m')]
      await store.runs.begin(run('one'), NOW)
      await store.events.record('one', events(1, 3))
      latest.push(await store.runs.latest('m'))
      await store.runs.interrupt('m', NOW)
      await store.runs.begin(run('two'), NOW)
      latest.push(await store.runs.latest('m'), await store.runs.latest('none'))
      expect(latest).toEqual([
        undefined,
        { id: 'one', firstSeq: 0, state: 'running' },
        { id: 'two', firstSeq: 3, state: 'running' },
        undefined,
      ])
    })

    it('accept events again if it is not known whether they were written', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), NOW)
      await store.events.record('one', events(1, 600))
      const [last] = events(601, 601)
      if (last?.event.type === 'output') last.event.content = 'Longer by what came since'
      const again = [...events(1, 600), ...(last ? [last] : [])]
      await store.events.record('one', again)
      expect(await store.events.list('one')).toEqual(again)
    })

    it('keep no event that comes after their message was claimed again', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), NOW)
      const before = await store.events.record('one', events(1, 2))
      await store.runs.interrupt('m', NOW + 1)
      const after = await store.events.record('one', events(2, 3))
      expect([before, after, await store.events.list('one')]).toEqual([true, false, events(1, 2)])
    })

    it('keep no event that comes while their message is claimed again', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), NOW)
      let late: Promise<boolean> | undefined
      await store.transaction(async (tables) => {
        await tables.runs.interrupt('m', NOW + 1)
        late = store.events.record('one', events(1, 2))
        // Long enough to be written, if it did not wait for the claim.
        await Promise.race([late, sleep(200)])
      })
      expect([await late, await store.events.list('one')]).toEqual([false, []])
    })

    it('keep events of any content', async () => {
      const { store, run } = await createRuns(engine)
      const event = {
        type: 'tool_use',
        toolId: 't',
        toolName: `o'"ne`,
        toolInput: { deep: [{ nul: '\0', half: '\uD83D', text: '🙂'.repeat(250_000) }] },
        timestamp: NOW,
      } as const
      await store.runs.begin(run('one'), NOW)
      await store.events.record('one', [{ seq: 1, event }])
      expect(JSON.stringify(await store.events.list('one')) === JSON.stringify([{ seq: 1, event }])).toBe(true)
    })
  })

  describe('what is known of runs', () => {
    it('is which one is running, and its latest tools', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), NOW)
      await store.runs.end('one', 'failed', undefined, NOW + 1)
      const before = await store.runs.running('m')
      await store.runs.begin(run('two'), NOW + 2)
      await store.events.record('two', [
        ...[toolUse(1, 't1', 'ls'), toolUse(2, 't2', 'make'), toolResult(3, 't1')],
        ...events(4, 4),
        toolUse(5, 't3', 'npm test'),
      ])
      const tools = await store.events.latestTools('two')
      expect([before, (await store.runs.running('m'))?.id, tools, await store.events.latestTools('one')]).toEqual([
        undefined,
        'two',
        [
          { name: 'Bash', input: { command: 'npm test' }, isRunning: true },
          { name: 'Bash', input: { command: 'make' }, isRunning: true },
          { name: 'Bash', input: { command: 'ls' }, isRunning: false },
        ],
        [],
      ])
    })

    it('is what waits behind them, in order and up to a limit', async () => {
      const { store, add, claim } = await createStage(engine)
      for (const [index, id] of ['one', 'two', 'three'].entries()) await add('a', id, index)
      await add('b', 'other', 0)
      const { messageId } = await claim(5)
      const waiting = { author: 'ann', text: 'Hello' }
      expect([messageId, await store.inbox.waiting('a', 2), await store.inbox.waiting('none', 2)]).toEqual([
        'one',
        [
          { ...waiting, id: 'one', receivedAt: 0, state: 'active', dueAt: 5 + LEASE_MS },
          { ...waiting, id: 'two', receivedAt: 1, state: 'queued', dueAt: 1 },
        ],
        [],
      ])
    })

    it('is which sessions they used, each with its last use', async () => {
      const { store, turn } = await createTurns(engine)
      await turn('a', { backend: 'codex', sessionId: 's1' })
      await turn('b', { backend: 'claude', sessionId: 's2' })
      await turn('a', { backend: 'codex', sessionId: 's1', sessionUsage: USAGE })
      await turn('a', { backend: 'pi' })
      const filter = { conversationId: 'a', directory: '/srv', since: 0 }
      const s1 = { backend: 'codex', sessionId: 's1', usedAt: 3, question: 'Hello', usage: USAGE }
      const s2 = { backend: 'claude', sessionId: 's2', usedAt: 2, question: 'Hello' }
      expect([
        await store.runs.sessions(filter, 9),
        await store.runs.sessions(filter, 1),
        await store.runs.sessions({ ...filter, since: 3 }, 9),
        await store.runs.sessions({ ...filter, prefix: 's2' }, 9),
        await store.runs.sessions({ ...filter, prefix: '_2' }, 9),
      ]).toEqual([[s1, s2], [s1], [s1], [s2], []])
    })

    it('excludes private sessions of others', async () => {
      const { store, turn } = await createTurns(engine)
      await turn('a', { sessionId: 'open' })
      await turn('direct', { sessionId: 'private' }, { isPrivate: true })
      // A message that does not say so does not make it public.
      await turn('direct', { sessionId: 'private' })
      const ids = async (conversationId: string | undefined) =>
        (await store.runs.sessions({ conversationId, directory: '/srv', since: 0 }, 9)).map(
          ({ sessionId }) => sessionId,
        )
      expect([await ids('a'), await ids('direct'), await ids(undefined)]).toEqual([
        ['open'],
        ['private', 'open'],
        ['open'],
      ])
    })

    it('is the sessions of one directory only', async () => {
      const { store, turn } = await createTurns(engine)
      await turn('a', { sessionId: 'here' })
      await turn('a', { sessionId: 'there', directory: '/old' })
      expect(
        (await store.runs.sessions({ conversationId: 'a', directory: '/srv', since: 0 }, 9)).map(
          ({ sessionId }) => sessionId,
        ),
      ).toEqual(['here'])
    })

    it('is what they used, by conversation and by project', async () => {
      const { store, turn } = await createTurns(engine)
      await turn('a', { usage: USAGE, costUsd: 0.25 })
      await turn('a', { usage: USAGE, costUsd: 0.5 })
      await turn('a', {})
      await turn('b', { usage: USAGE })
      await turn('c', { costUsd: 4 }, { projectId: 'site' })
      await turn('room', { costUsd: 8 })
      await store.conversations.configure('room', { projectId: 'app' })
      await turn('thread', { costUsd: 16 }, { parent: 'room' })
      const tokens = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 }
      expect([
        await store.figures.usage({ conversationId: 'a' }, 0),
        await store.figures.usage({ conversationId: 'a' }, 2),
        await store.figures.usage({ conversationId: 'b' }, 0),
        (await store.figures.usage({ projectId: undefined }, 0)).turns,
        await store.figures.usage({ projectId: 'site' }, 0),
        await store.figures.usage({ projectId: 'app' }, 0),
        await store.figures.usage({ projectId: 'none' }, 0),
      ]).toEqual([
        {
          turns: 3,
          workedMs: 30,
          tokens: { inputTokens: 2, outputTokens: 4, cacheReadTokens: 6, cacheWriteTokens: 8 },
          costUsd: 0.75,
          pricedTurns: 2,
          uncountedTurns: 1,
        },
        { turns: 2, workedMs: 20, tokens, costUsd: 0.5, pricedTurns: 1, uncountedTurns: 1 },
        { turns: 1, workedMs: 10, tokens, pricedTurns: 0, uncountedTurns: 0 },
        4,
        { turns: 1, workedMs: 10, costUsd: 4, pricedTurns: 1, uncountedTurns: 1 },
        { turns: 2, workedMs: 20, costUsd: 24, pricedTurns: 2, uncountedTurns: 2 },
        { turns: 0, workedMs: 0, pricedTurns: 0, uncountedTurns: 0 },
      ])
    })

    it('excludes the time of interrupted runs, and running ones altogether', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('cut off'), NOW)
      await store.runs.end('cut off', 'interrupted', undefined, NOW + 10_000)
      await store.runs.begin(run('running'), NOW)
      expect(await store.figures.usage({ conversationId: 'a' }, NOW)).toEqual({
        turns: 1,
        workedMs: 0,
        pricedTurns: 0,
        uncountedTurns: 1,
      })
    })

    it('include which models an agent answered with, and which last in a conversation', async () => {
      const { store, turn } = await createTurns(engine)
      await turn('a', { told: 'first' })
      await turn('b', { told: 'second' })
      await turn('a', { told: 'other', backend: 'codex' })
      await turn('a', { told: 'failing', isError: true })
      await turn('b', { told: 'first' })
      await turn('a', { told: 'third' })
      await turn('a', { model: 'untold' })
      const last = async (conversationId: string, backend: string): Promise<string | undefined> => {
        const run = await store.runs.latestAnswer(conversationId, backend)
        return run === undefined ? undefined : store.events.modelOf(run)
      }
      expect([
        await store.events.modelsOf('claude', 0),
        await store.events.modelsOf('claude', 6),
        [await last('b', 'claude'), await last('a', 'codex'), await last('a', 'claude'), await last('c', 'claude')],
      ]).toEqual([['third', 'first', 'second'], ['third'], ['first', 'other', undefined, undefined]])
    })

    it('is which models an agent has answered with, most recently used first', async () => {
      const { store, turn } = await createTurns(engine)
      await turn('a', { model: 'large' })
      await turn('a', { model: 'small' })
      await turn('a', { model: 'mistyped', isError: true })
      await turn('b', { model: 'large' })
      await turn('b', { model: 'other', backend: 'pi' })
      await turn('b', {})
      expect([
        await store.runs.models('claude', 0, 9),
        await store.runs.models('claude', 0, 1),
        await store.runs.models('claude', 4, 9),
        await store.runs.models('codex', 0, 9),
      ]).toEqual([['large', 'small'], ['large'], ['large'], []])
    })
  })

  describe('the ledger', () => {
    const gateway = { host: 'box', bootId: 'boot', pid: 4_000_000, startTime: 9_000_000_000, startedAt: NOW }

    it('knows the gateways and when they were last seen', async () => {
      const { ledger } = (await createStage(engine)).store
      await ledger.announceGateway({ id: 'two', ...gateway, startedAt: NOW + 1, seenAt: NOW + 1 })
      await ledger.announceGateway({ id: 'one', ...gateway, seenAt: NOW })
      await ledger.announceGateway({ id: 'one', ...gateway, seenAt: NOW + 7 })
      expect(await ledger.gateways()).toEqual([
        { id: 'one', ...gateway, seenAt: NOW + 7 },
        { id: 'two', ...gateway, startedAt: NOW + 1, seenAt: NOW + 1 },
      ])
    })

    it('knows the processes of each gateway until they have ended', async () => {
      const { ledger } = (await createStage(engine)).store
      const process = { host: 'box', bootId: 'boot', pid: 4_000_001, startTime: 9_000_000_001 }
      for (const runId of ['r1', 'r2', 'r3']) await ledger.add({ ...process, runId, ownerId: 'one' })
      await ledger.add({ ...process, runId: 'r4', ownerId: 'two' })
      await ledger.remove(['r1', 'r3', 'unknown'])
      await ledger.remove([])
      expect([await ledger.processesOf('one'), await ledger.processesOf('two'), await ledger.processesOf('x')]).toEqual(
        [[{ ...process, runId: 'r2', ownerId: 'one' }], [{ ...process, runId: 'r4', ownerId: 'two' }], []],
      )
    })

    it('forgets a gateway with its processes', async () => {
      const { ledger } = (await createStage(engine)).store
      for (const id of ['one', 'two']) {
        await ledger.announceGateway({ id, ...gateway, seenAt: NOW })
        await ledger.add({ host: 'box', bootId: 'boot', pid: 5, startTime: 6, runId: `run of ${id}`, ownerId: id })
      }
      await ledger.removeGateway('one')
      const left = (await ledger.gateways()).map(({ id }) => id)
      expect([left, await ledger.processesOf('one'), (await ledger.processesOf('two')).length]).toEqual([
        ['two'],
        [],
        1,
      ])
    })
  })

  it('records who changed what, newest first', async () => {
    const { audit } = (await createStage(engine)).store
    const entry = { actor: 'terminal', action: 'queue.drop', subject: 'one' }
    await audit.add({ ...entry, at: NOW })
    await audit.add({ ...entry, at: NOW + 2, detail: `it's "old"` })
    await audit.add({ ...entry, at: NOW + 1 })
    const id: unknown = expect.any(String)
    expect([await audit.list(10), (await audit.list(1)).length]).toEqual([
      [
        { ...entry, id, at: NOW + 2, detail: `it's "old"` },
        { ...entry, id, at: NOW + 1 },
        { ...entry, id, at: NOW },
      ],
      1,
    ])
  })

  it('leaves out what a database cannot store, and keeps the rest of the text', async () => {
    const { store, add, claim } = await createStage(engine)
    await add('a', 'one')
    await store.jobs.finish(await claim(0), 'failed', 'a\0b\0', 1)
    await store.audit.add({ at: NOW, actor: 'ann', action: 'drop\0', subject: '\0one' })
    expect([(await store.inbox.get('one'))?.problem, await store.audit.list(1)]).toEqual([
      'ab',
      [{ id: expect.any(String), at: NOW, actor: 'ann', action: 'drop', subject: 'one' }],
    ])
  })

  describe('a conversation in its place', () => {
    const setup = async () => {
      const { conversations } = (await createStage(engine)).store
      const enter = (id: string, place: Partial<Place> & { channel?: string } = {}, now = 1) =>
        conversations.enter({ channel: CHANNEL, address: id, ...place }, id, now)
      const choicesOf = async (id: string) => {
        const { projectId, backend, model } = (await conversations.get(id)) ?? ({} as Partial<Conversation>)
        return { projectId, backend, model }
      }
      return { conversations, enter, choicesOf }
    }

    it('is the same by id and by address', async () => {
      const { conversations, enter } = await setup()
      await enter('room')
      await enter('thread', { parent: 'room', projectId: 'given' })
      await conversations.configure('room', { backend: 'codex' })
      const thread = { id: 'thread', channel: CHANNEL, address: 'thread', projectId: 'given', backend: 'codex' }
      expect([await conversations.get('thread'), await conversations.find(CHANNEL, 'thread')]).toEqual([thread, thread])
    })

    it('inherits agent and model together: with either of its own, it inherits neither', async () => {
      const { conversations, enter, choicesOf } = await setup()
      await enter('room')
      await conversations.configure('room', { backend: 'codex', model: 'large' })
      for (const id of ['none', 'agent', 'model']) await enter(id, { parent: 'room' })
      await conversations.configure('agent', { backend: 'pi' })
      await conversations.configure('model', { model: 'small' })
      expect([await choicesOf('none'), await choicesOf('agent'), await choicesOf('model')]).toEqual([
        { backend: 'codex', model: 'large' },
        { backend: 'pi' },
        { model: 'small' },
      ])
    })

    it('has its own project first, then that of its parent, then what the operator gave', async () => {
      const { conversations, enter, choicesOf } = await setup()
      await enter('room', { projectId: 'given to the room' })
      await enter('thread', { parent: 'room', projectId: 'given' })
      const steps = [await choicesOf('thread')]
      await conversations.configure('room', { projectId: 'of the room' })
      steps.push(await choicesOf('thread'))
      await conversations.configure('thread', { projectId: 'own' })
      steps.push(await choicesOf('thread'))
      await conversations.configure('thread', { projectId: null })
      await conversations.configure('room', { projectId: null })
      steps.push(await choicesOf('thread'), await choicesOf('room'))
      expect(steps.map(({ projectId }) => projectId)).toEqual([
        'given',
        'of the room',
        'own',
        'given',
        'given to the room',
      ])
    })

    it('forgets the project that the operator gave earlier', async () => {
      const { enter, choicesOf } = await setup()
      await enter('thread', { parent: 'room', projectId: 'earlier' })
      await enter('thread', { parent: 'room', projectId: 'now' })
      const given = await choicesOf('thread')
      await enter('thread', { parent: 'room' })
      expect([given, await choicesOf('thread')]).toEqual([{ projectId: 'now' }, {}])
    })

    it('inherits nothing from a parent that does not exist or is in another channel, nor from a grandparent', async () => {
      const { conversations, enter, choicesOf } = await setup()
      await enter('lonely', { parent: 'nowhere' })
      await enter('room of mail', { channel: 'mail', address: 'room' })
      await conversations.configure('room of mail', { backend: 'codex' })
      await enter('thread', { parent: 'room' })
      await enter('top')
      await conversations.configure('top', { backend: 'pi' })
      await enter('middle', { parent: 'top' })
      await enter('bottom', { parent: 'middle' })
      expect([await choicesOf('lonely'), await choicesOf('thread'), await choicesOf('bottom')]).toEqual([{}, {}, {}])
    })

    it('is listed by channel, most recently used first', async () => {
      const { conversations, enter } = await setup()
      await enter('a', {}, NOW)
      await enter('b', {}, NOW + 1)
      await enter('c', {}, NOW + 2)
      await enter('d', { channel: 'mail' }, NOW + 3)
      await conversations.nextSeq('a', NOW + 4)
      expect([
        await conversations.addresses(CHANNEL, NOW + 2),
        await conversations.addresses(CHANNEL, 0),
        await conversations.addresses('mail', 0),
        await conversations.addresses('none', 0),
      ]).toEqual([['a', 'c'], ['a', 'c', 'b'], ['d'], []])
    })
  })

  describe('admissions', () => {
    it('let a person in once per channel, by an id that is text, until they are removed', async () => {
      const { admissions } = (await createStage(engine)).store
      const ada = {
        channel: CHANNEL,
        personId: '100000000000000001',
        name: 'ada 🙂',
        admittedBy: 'own"er',
        admittedAt: NOW,
      }
      const ben = {
        channel: 'mail',
        personId: '100000000000000001',
        name: 'ben',
        admittedBy: 'ann',
        admittedAt: NOW + 1,
      }
      const added = [
        await admissions.add(ada),
        await admissions.add({ ...ada, name: 'other' }),
        await admissions.add(ben),
      ]
      const lists = [await admissions.list(), await admissions.list(CHANNEL)]
      const removed = [
        await admissions.remove(CHANNEL, '1'),
        await admissions.remove(CHANNEL, ada.personId),
        await admissions.remove(CHANNEL, ada.personId),
      ]
      expect([
        added,
        lists,
        removed,
        await admissions.has(CHANNEL, ada.personId),
        await admissions.has('mail', ben.personId),
      ]).toEqual([[true, false, true], [[ben, ada], [ada]], [false, true, false], false, true])
    })
  })

  describe('channel values', () => {
    it('are kept by channel and name; the latest counts', async () => {
      const { channelValues } = (await createStage(engine)).store
      await channelValues.set(CHANNEL, 'cursor', '1')
      await channelValues.set(CHANNEL, 'cursor', `it's "2" 🙂`)
      await channelValues.set(CHANNEL, 'other', '3')
      await channelValues.set('mail', 'cursor', '4')
      expect([
        await channelValues.get(CHANNEL, 'cursor'),
        await channelValues.get(CHANNEL, 'other'),
        await channelValues.get('mail', 'cursor'),
        await channelValues.get('mail', 'other'),
      ]).toEqual([`it's "2" 🙂`, '3', '4', undefined])
    })

    it('can be claimed once per channel and name', async () => {
      const { channelValues } = (await createStage(engine)).store
      expect([
        await channelValues.claim(CHANNEL, 'one', NOW),
        await channelValues.claim(CHANNEL, 'one', NOW + 1),
        await channelValues.claim(CHANNEL, 'two', NOW),
        await channelValues.claim('mail', 'one', NOW),
        await channelValues.isClaimed(CHANNEL, 'one'),
        await channelValues.isClaimed('mail', 'two'),
      ]).toEqual([true, false, true, true, true, false])
    })

    it('are claimed by only one of many who try at once', async () => {
      const { channelValues } = (await createStage(engine)).store
      const claims = await Promise.all(Array.from({ length: 10 }, () => channelValues.claim(CHANNEL, 'one', NOW)))
      expect(claims.filter(Boolean)).toEqual([true])
    })

    it('are separate from claims of the same name', async () => {
      const { channelValues } = (await createStage(engine)).store
      await channelValues.set(CHANNEL, 'one', '1')
      const claims = [await channelValues.claim(CHANNEL, 'one', NOW), await channelValues.claim(CHANNEL, 'one', NOW)]
      await channelValues.claim(CHANNEL, 'two', NOW)
      expect([claims, await channelValues.get(CHANNEL, 'one'), await channelValues.get(CHANNEL, 'two')]).toEqual([
        [true, false],
        '1',
        undefined,
      ])
    })

    it('stay for ever, whereas claims are forgotten', async () => {
      const { channelValues } = (await createStage(engine)).store
      await channelValues.claim(CHANNEL, 'old', NOW)
      await channelValues.claim(CHANNEL, 'new', NOW + 1)
      // Even if it looks like an old claim.
      await channelValues.set(CHANNEL, 'cursor', 'claimed')
      await channelValues.forgetClaims(NOW + 1)
      expect([
        await channelValues.claim(CHANNEL, 'old', NOW + 2),
        await channelValues.claim(CHANNEL, 'new', NOW + 2),
        await channelValues.get(CHANNEL, 'cursor'),
      ]).toEqual([true, false, 'claimed'])
    })
  })
}

async function createRuns(engine: TestEngine) {
  const { store, add } = await createStage(engine)
  await add('a', 'm')
  const run = (id: string) => ({ id, messageId: 'm', conversationId: 'a', gatewayId: 'g', backend: 'claude' })
  return { store, run }
}

/** Turns begin one millisecond apart, the first at 1, and take ten. */
async function createTurns(engine: TestEngine) {
  const { store } = await createStage(engine)
  let turns = 0
  const enter = (id: string, place: Partial<Place> = {}) =>
    store.conversations.enter({ channel: CHANNEL, address: id, ...place }, id, 1)
  const turn = async (
    conversationId: string,
    run: Partial<AgentResult & NewRun & { told: string }>,
    place: Partial<Place> = {},
  ) => {
    turns += 1
    const id = `turn-${turns}`
    const { seq } = await enter(conversationId, place)
    await store.inbox.add(newMessage({ id, conversationId, seq }), 'open', null, turns)
    const { backend = 'claude', directory = '/srv', model, told, ...result } = run
    const about = { backend, directory, ...(model !== undefined && { model }) }
    const begun = { id, messageId: id, conversationId, gatewayId: 'g', ...about }
    await store.runs.begin(begun, turns)
    const event = { type: 'started' as const, model: told ?? '', timestamp: NOW }
    if (told !== undefined) await store.events.record(id, [{ seq: 1, event }])
    const state = result.isError ? 'failed' : 'answered'
    await store.runs.end(id, state, { isError: false, durationMs: 10, ...result }, turns + 10)
  }
  return { store, enter, turn }
}

function toolUse(seq: number, toolId: string, command: string): RecordedEvent {
  return { seq, event: { type: 'tool_use', toolId, toolName: 'Bash', toolInput: { command }, timestamp: NOW } }
}

function toolResult(seq: number, toolId: string): RecordedEvent {
  return { seq, event: { type: 'tool_result', toolId, toolName: 'Bash', content: '', isError: false, timestamp: NOW } }
}

function events(from: number, to: number): RecordedEvent[] {
  return Array.from({ length: to - from + 1 }, (_, index) => ({
    seq: from + index,
    event: { type: 'output', content: `Part ${from + index}`, stream: 'stdout', timestamp: NOW },
  }))
}
