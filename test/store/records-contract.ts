import { describe, expect, it } from 'vitest'
import type { AgentResult } from '../../src/backends/types.js'
import type { RecordedEvent } from '../../src/store/runs.js'
import type { TestEngine } from '../engines.js'
import { CHANNEL, createStage } from './stage.js'

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
    it('number what comes in, each for itself', async () => {
      const { conversations } = (await createStage(engine)).store
      const places = [
        await conversations.enter(CHANNEL, 'general', 'a', 1),
        await conversations.enter(CHANNEL, 'general', 'unused', 2),
        await conversations.enter(CHANNEL, 'other', 'b', 3),
        await conversations.enter('mail', 'general', 'c', 4),
        await conversations.nextSeq('a', 5),
      ]
      expect(places).toEqual([{ id: 'a', seq: 1 }, { id: 'a', seq: 2 }, { id: 'b', seq: 1 }, { id: 'c', seq: 1 }, 3])
    })

    it('are found by id and by address', async () => {
      const { conversations } = (await createStage(engine)).store
      await conversations.enter(CHANNEL, `#"o'ne" 🙂`, 'a', 1)
      const a = { id: 'a', channel: CHANNEL, address: `#"o'ne" 🙂` }
      expect([
        await conversations.get('a'),
        await conversations.find(CHANNEL, `#"o'ne" 🙂`),
        await conversations.get('b'),
        await conversations.find('mail', `#"o'ne" 🙂`),
      ]).toEqual([a, a, undefined, undefined])
    })

    it('have settings of their own, which can be taken back one by one', async () => {
      const { conversations } = (await createStage(engine)).store
      await conversations.enter(CHANNEL, 'a', 'a', 1)
      await conversations.enter(CHANNEL, 'b', 'b', 1)
      await conversations.configure('a', { projectId: 'site', backend: 'codex', model: 'large' })
      await conversations.configure('a', { backend: 'pi', model: null })
      await conversations.configure('a', {})
      expect([await conversations.get('a'), await conversations.get('b')]).toEqual([
        { id: 'a', channel: CHANNEL, address: 'a', projectId: 'site', backend: 'pi' },
        { id: 'b', channel: CHANNEL, address: 'b' },
      ])
    })
  })

  it('keeps projects by id; the last word about one counts, as a whole', async () => {
    const { projects } = (await createStage(engine)).store
    await projects.put({ id: 'site', directory: '/srv/site', backend: 'codex', model: 'large', maxTurns: 3 })
    await projects.put({
      id: 'app',
      directory: '/srv/app',
      allowedTools: ['Read', 'Bash'],
      queryTimeoutMs: 5_000_000_000,
    })
    await projects.put({ id: 'site', directory: '/srv/new', allowedTools: [] })
    const app = { id: 'app', directory: '/srv/app', allowedTools: ['Read', 'Bash'], queryTimeoutMs: 5_000_000_000 }
    const site = { id: 'site', directory: '/srv/new', allowedTools: [] }
    expect([await projects.list(), await projects.get('site'), await projects.get('none')]).toEqual([
      [app, site],
      site,
      undefined,
    ])
  })

  describe('sessions', () => {
    it('are one per conversation: that of another agent takes its place', async () => {
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

    it('tell when they were last used', async () => {
      const { sessions } = (await createStage(engine)).store
      const session = { conversationId: 'a', backend: 'codex', sessionId: 's1', directory: '/srv' }
      await sessions.set(session, NOW)
      await sessions.set(session, NOW + 5)
      expect(await sessions.get('a')).toEqual({ ...session, usedAt: NOW + 5 })
    })

    it('are forgotten when told to', async () => {
      const { sessions } = (await createStage(engine)).store
      const session = { conversationId: 'a', backend: 'pi', sessionId: 's', directory: '/srv' }
      await sessions.set(session, NOW)
      await sessions.set({ ...session, conversationId: 'b' }, NOW)
      await sessions.delete('a', 's')
      await sessions.delete('b', 'an older one')
      expect([await sessions.get('a'), (await sessions.get('b'))?.sessionId]).toEqual([undefined, 's'])
    })

    it('that were reset are gone, and tell whether they were there', async () => {
      const { store } = await createStage(engine)
      await store.conversations.enter(CHANNEL, 'a', 'a', 0)
      await store.sessions.set({ conversationId: 'a', backend: 'pi', sessionId: 's', directory: '/srv' }, NOW)
      const outcomes = [await store.sessions.reset('a', NOW + 1), await store.sessions.reset('a', NOW + 2)]
      expect([outcomes, await store.sessions.get('a'), await store.sessions.list(9)]).toEqual([
        [true, false],
        undefined,
        [],
      ])
    })

    it('that were reset do not come back by a turn that began before', async () => {
      const { sessions } = (await createStage(engine)).store
      const session = { conversationId: 'a', backend: 'pi', sessionId: 's', directory: '/srv' }
      await sessions.reset('a', NOW + 5)
      await sessions.set(session, NOW + 9, NOW + 4)
      const early = await sessions.get('a')
      await sessions.set(session, NOW + 9, NOW + 6)
      expect([early, (await sessions.get('a'))?.sessionId]).toEqual([undefined, 's'])
    })

    it('are listed with their place, last used first', async () => {
      const { store } = await createStage(engine)
      for (const [index, id] of ['one', 'two', 'three'].entries()) {
        await store.conversations.enter(CHANNEL, `#${id}`, id, 0)
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
    it('keep how they went', async () => {
      const { store, run } = await createRuns(engine)
      const result: AgentResult = {
        isError: true,
        finalOutput: `It's "done" \0 🙂`,
        sessionId: 's',
        durationMs: 12,
        usage: USAGE,
        failure: { reason: 'exit', message: 'no \0', report: 'r' },
      }
      await store.runs.begin({ ...run('one'), model: 'large' }, NOW)
      const before = await store.runs.get('one')
      await store.runs.end('one', 'failed', result, NOW + 12)
      const begun = { ...run('one'), model: 'large', startedAt: NOW }
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

    it('that nobody works on any more are marked, and the finished ones stay as they are', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), 1)
      await store.runs.end('one', 'failed', undefined, 2)
      await store.runs.begin(run('two'), 3)
      await store.runs.interrupt('m', 4)
      expect([await store.runs.get('one'), await store.runs.get('two')]).toEqual([
        { ...run('one'), state: 'failed', startedAt: 1, endedAt: 2 },
        { ...run('two'), state: 'interrupted', startedAt: 3, endedAt: 4 },
      ])
    })

    it('were interrupted when the latest of the message was cut off', async () => {
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
      await store.runs.record('one', events(1, 1))
      await store.runs.record('one', [])
      await store.runs.record('one', events(2, 1_700))
      await store.runs.record('two', events(1, 2))
      expect([await store.runs.events('one'), await store.runs.events('one', 1_698)]).toEqual([
        events(1, 1_700),
        events(1_699, 1_700),
      ])
    })

    it('may be told events again, when it is not known whether they were written', async () => {
      const { store, run } = await createRuns(engine)
      await store.runs.begin(run('one'), NOW)
      await store.runs.record('one', events(1, 600))
      const [last] = events(601, 601)
      if (last?.event.type === 'output') last.event.content = 'Longer by what came since'
      const again = [...events(1, 600), ...(last ? [last] : [])]
      await store.runs.record('one', again)
      expect(await store.runs.events('one')).toEqual(again)
    })

    it('keep an event of any content', async () => {
      const { store, run } = await createRuns(engine)
      const event = {
        type: 'tool_use',
        toolId: 't',
        toolName: `o'"ne`,
        toolInput: { deep: [{ nul: '\0', half: '\uD83D', text: '🙂'.repeat(250_000) }] },
        timestamp: NOW,
      } as const
      await store.runs.begin(run('one'), NOW)
      await store.runs.record('one', [{ seq: 1, event }])
      expect(JSON.stringify(await store.runs.events('one')) === JSON.stringify([{ seq: 1, event }])).toBe(true)
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

  it('keeps who changed what, newest first', async () => {
    const { audit } = (await createStage(engine)).store
    const entry = { actor: 'terminal', action: 'queue.drop', subject: 'one' }
    await audit.add({ ...entry, at: NOW })
    await audit.add({ ...entry, at: NOW + 2, detail: `it's "old"` })
    await audit.add({ ...entry, at: NOW + 1 })
    expect([await audit.list(10), (await audit.list(1)).length]).toEqual([
      [
        { ...entry, at: NOW + 2, detail: `it's "old"` },
        { ...entry, at: NOW + 1 },
        { ...entry, at: NOW },
      ],
      1,
    ])
  })

  it('leaves out what a database has no place for, and keeps the rest of the text', async () => {
    const { store, add, claim } = await createStage(engine)
    await add('a', 'one')
    await store.inbox.finish(await claim(0), 'failed', 'a\0b\0', 1)
    await store.audit.add({ at: NOW, actor: 'ann', action: 'drop\0', subject: '\0one' })
    expect([(await store.inbox.get('one'))?.problem, await store.audit.list(1)]).toEqual([
      'ab',
      [{ at: NOW, actor: 'ann', action: 'drop', subject: 'one' }],
    ])
  })
}

async function createRuns(engine: TestEngine) {
  const { store, add } = await createStage(engine)
  await add('a', 'm')
  const run = (id: string) => ({ id, messageId: 'm', conversationId: 'a', gatewayId: 'g', backend: 'claude' })
  return { store, run }
}

function events(from: number, to: number): RecordedEvent[] {
  return Array.from({ length: to - from + 1 }, (_, index) => ({
    seq: from + index,
    event: { type: 'output', content: `Part ${from + index}`, stream: 'stdout', timestamp: NOW },
  }))
}
