import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AgentEvent, BackendAdapter, BackendEventResult } from '../../src/backends/types.js'
import { GatewayError } from '../../src/errors.js'
import { AgentRuntime, type GatewayEvent, toEventResult, type TurnListener } from '../../src/runtime/agent-runtime.js'
import type { TurnBackend } from '../../src/runtime/lift-adapter.js'
import { SessionManager } from '../../src/runtime/session-manager.js'
import type { Session } from '../../src/store/sessions.js'
import { brokenInvariants } from '../contract/invariants.js'
import { openTestStore } from '../kit/engines.js'
import { failed, type Script, ScriptedBackend, succeeded } from '../kit/scripted-backend.js'

const FRESH_NOTE = 'The earlier session was lost; this answer starts a fresh one and remembers nothing from before.'
const MOVED_NOTE = 'The working directory has changed; this answer starts a fresh session there.'
const DIRECTORY = '/projects/here'

const usage = {
  inputTokens: 1,
  outputTokens: 2,
  cacheReadTokens: 3,
  cacheWriteTokens: 4,
  reasoningTokens: 0,
  totalTokens: 10,
}

const anyId = fc.string({ minLength: 1 })

const anyResult: fc.Arbitrary<BackendEventResult> = fc.record(
  { isError: fc.boolean(), responseText: fc.string(), sessionId: anyId },
  { requiredKeys: ['isError'] },
)

async function setup(backend: BackendAdapter | TurnBackend) {
  const store = await openTestStore({ file: ':memory:' })
  const sessions = new SessionManager(store.sessions, { idleMs: 0, now: () => 0 })
  const hooks: Array<[string, Record<string, unknown>]> = []
  const events: AgentEvent[] = []
  const kept: Array<[session: Session, eventsBefore: number]> = []
  const runtime = new AgentRuntime(
    { idleTimeoutMs: 0, workingDir: DIRECTORY },
    backend,
    sessions,
    { load: async () => ({ identity: 'be brief', skills: [] }) },
    { assemble: ({ identity }, { kind, canSendFiles }) => `${kind}${canSendFiles ? ', files' : ''}: ${identity}` },
    { fire: (hook, payload) => hooks.push([hook, payload]) },
  )
  const { signal } = new AbortController()
  const event = { channelId: 'thread-1', prompt: 'hello' }
  return {
    sessions,
    hooks,
    events,
    remember: (session: Partial<Session> = {}) => sessions.set({ ...sessionOf('old'), ...session }),
    remembered: async () => (await sessions.get('thread-1', backend.name()))?.sessionId,
    process: (more: Partial<GatewayEvent> = {}) => runtime.process({ ...event, ...more }, signal),
    kept,
    runTurn: (more: Partial<GatewayEvent> = {}, listener: Partial<TurnListener> = {}) =>
      runtime.runTurn({ ...event, ...more }, signal, {
        ...listener,
        onEvent: (agentEvent) => events.push(agentEvent),
        keepSession: async (session) => {
          kept.push([session, events.length])
        },
      }),
  }
}

async function setupScripts(...scripts: Script[]) {
  const backend = new ScriptedBackend(scripts)
  return { requests: backend.requests, ...(await setup(backend)) }
}

function sessionOf(sessionId: string, directory = DIRECTORY): Session {
  return { conversationId: 'thread-1', backend: 'claude', sessionId, directory }
}

const answered = (sessionId?: string): Script => [
  { type: 'complete', result: succeeded('hi', sessionId === undefined ? {} : { sessionId }) },
]

const lost: Script = [
  { type: 'error', content: 'It failed', reason: 'session_lost' },
  { type: 'complete', result: failed('session_lost') },
]

const startedAndAnswered: Script = [
  { type: 'started', sessionId: 'new' },
  { type: 'output', content: 'hi', stream: 'stdout' },
  { type: 'complete', result: succeeded('hi', { sessionId: 'new' }) },
]

describe('EventResult mapping', () => {
  // Feature: multi-cli-backend, Property 9: EventResult mapping preserves semantics
  it('puts the text of a failure in error and that of an answer in responseText, and always names the channel', () => {
    fc.assert(
      fc.property(anyResult, anyId, (result, channelId) => {
        const expected = result.isError
          ? { targetChannelId: channelId, error: result.responseText }
          : { targetChannelId: channelId, responseText: result.responseText, sessionId: result.sessionId }
        expect(toEventResult(result, channelId)).toEqual(expected)
      }),
      { numRuns: 200 },
    )
  })
})

describe('AgentRuntime', () => {
  // Feature: multi-cli-backend, Property 10: Session ID storage after backend execution
  it('stores the session id of a result for its channel, and keeps the stored one if there is none', async () => {
    await fc.assert(
      fc.asyncProperty(anyId, anyId, fc.option(anyId, { nil: undefined }), async (channelId, before, sessionId) => {
        const { sessions, process } = await setupScripts(answered(sessionId))
        await sessions.set({ ...sessionOf(before), conversationId: channelId })
        await process({ channelId })
        expect((await sessions.get(channelId, 'claude'))?.sessionId).toBe(sessionId ?? before)
      }),
      { numRuns: 200 },
    )
  })

  it("continues the session of the conversation, with the assembled system prompt and the session's usage", async () => {
    const { requests, remember, process } = await setupScripts(answered('old'))
    await remember({ usage })
    await process()
    expect(requests).toEqual([
      {
        prompt: 'hello',
        systemPrompt: 'message: be brief',
        workingDir: DIRECTORY,
        idleTimeoutMs: 0,
        sessionId: 'old',
        sessionUsage: usage,
      },
    ])
  })

  it('requests what the event says, and takes the rest from the configuration', async () => {
    const { requests, process } = await setupScripts(answered())
    const wishes = {
      runId: 'r1',
      model: 'small',
      allowedTools: ['Read'],
      timeoutMs: 5,
      maxTurns: 2,
      metadata: { a: 'b' },
    }
    await process({ ...wishes, kind: 'cron', canSendFiles: true, workingDir: '/projects/other/' })
    expect(requests).toEqual([
      {
        prompt: 'hello',
        systemPrompt: 'cron, files: be brief',
        workingDir: '/projects/other',
        idleTimeoutMs: 0,
        ...wishes,
      },
    ])
  })

  it('leaves it to the caller of runTurn to store the session, with its usage', async () => {
    const result = succeeded('hi', { sessionId: 'next', sessionUsage: usage })
    const { remember, remembered, runTurn } = await setupScripts([{ type: 'complete', result }])
    await remember()
    const outcome = await runTurn()
    expect([outcome, await remembered()]).toEqual([
      { result, notes: [], session: { ...sessionOf('next'), usage } },
      'old',
    ])
  })

  it('hands a new session over as soon as it has begun, for should we be killed in mid-turn', async () => {
    const { kept, runTurn } = await setupScripts([{ type: 'started', sessionId: 'new' }, new Error('killed')])
    await expect(runTurn()).rejects.toThrow('killed')
    expect(kept).toEqual([[sessionOf('new'), 0]])
  })

  it('keeps a new session as soon as it has begun, when it is kept here', async () => {
    const { remembered, process } = await setupScripts([{ type: 'started', sessionId: 'new' }, new Error('killed')])
    await expect(process()).rejects.toThrow('killed')
    expect(await remembered()).toEqual('new')
  })

  it.each([
    ['run-finished', succeeded('hi'), { durationMs: 1, isCancelled: false, isPaused: false }],
    ['run-finished', failed('cancelled', 'Cancelled'), { durationMs: 1, isCancelled: true, isPaused: false }],
    ['run-finished', failed('max_turns', 'Enough'), { durationMs: 1, isCancelled: false, isPaused: true }],
    ['error', failed('exit'), { reason: 'exit', message: 'It failed' }],
  ])('tells the hooks that a run started and how it ended: %s', async (hook, result, how) => {
    const { hooks, process } = await setupScripts([{ type: 'complete', result }])
    await process({ runId: 'r1', metadata: { ticket: '7' } })
    const about = { conversationId: 'thread-1', backend: 'claude', runId: 'r1', metadata: { ticket: '7' } }
    expect(hooks).toEqual([
      ['run-started', about],
      [hook, { ...about, ...how }],
    ])
  })

  it('runs no agent and fires no hook before it may begin', async () => {
    const { hooks, requests, runTurn } = await setupScripts(answered())
    let begin = (): void => {}
    const mayBegin = new Promise<void>((resolve) => {
      begin = resolve
    })
    const turn = runTurn({}, { mayBegin })
    for (let step = 0; step < 20; step += 1) await nextTurn()
    const before = [requests.length, hooks.length]
    begin()
    await turn
    expect([before, requests.length, hooks.map(([hook]) => hook)]).toEqual([[0, 0], 1, ['run-started', 'run-finished']])
  })

  it('runs no agent and fires no hook if it may not begin', async () => {
    const { hooks, requests, runTurn } = await setupScripts(answered())
    const refused = runTurn({}, { mayBegin: Promise.reject(new Error('not on the disk')) })
    await expect(refused).rejects.toThrow('not on the disk')
    expect([requests, hooks]).toEqual([[], []])
  })

  it('rejects when a backend breaks its contract and never completes', async () => {
    const { runTurn } = await setupScripts([{ type: 'output', content: 'hi', stream: 'stdout' }])
    await expect(runTurn()).rejects.toThrow('A run ended without its complete event')
  })
})

describe('a session that the agent has lost', () => {
  it('is cleared, and the turn is tried once more in a fresh one, with a note to the person', async () => {
    const { requests, kept, remember, remembered, runTurn } = await setupScripts(lost, startedAndAnswered)
    await remember()
    const outcome = await runTurn()
    expect([outcome, requests.map(({ sessionId }) => sessionId), kept, await remembered()]).toEqual([
      { result: succeeded('hi', { sessionId: 'new' }), notes: [FRESH_NOTE], session: sessionOf('new') },
      ['old', undefined],
      [[sessionOf('new'), 0]],
      undefined,
    ])
  })

  it.each<[string, Script, string]>([
    ['before it began', lost, 'started notice output complete'],
    ['after a notice', [{ type: 'notice', content: 'looking' }, ...lost], 'started notice notice output complete'],
    [
      'after it began',
      [{ type: 'started', sessionId: 'old' }, { type: 'notice', content: 'looking' }, ...lost],
      'started notice notice output complete',
    ],
  ])('makes one stream of both attempts when it was found out %s', async (_, first, types) => {
    const { events, remember, runTurn } = await setupScripts(first, startedAndAnswered)
    await remember()
    await runTurn()
    expect([events.map(({ type }) => type).join(' '), brokenInvariants(events)]).toEqual([types, []])
  })

  it('is not tried a third time', async () => {
    const { requests, events, remember, remembered, runTurn } = await setupScripts(lost)
    await remember()
    const outcome = await runTurn()
    expect([outcome, requests.length, events.map(({ type }) => type).join(' '), await remembered()]).toEqual([
      { result: failed('session_lost'), notes: [FRESH_NOTE] },
      2,
      'notice error complete',
      undefined,
    ])
  })

  it('is a failure like any other if none was to be continued', async () => {
    const { requests, process } = await setupScripts(lost)
    expect([await process(), requests.length]).toEqual([{ targetChannelId: 'thread-1', error: 'It failed' }, 1])
  })

  it('is not made of any other failure', async () => {
    const exit: Script = [
      { type: 'error', content: 'It failed', reason: 'exit' },
      { type: 'complete', result: failed('exit') },
    ]
    const { requests, events, remember, remembered, runTurn } = await setupScripts(exit)
    await remember()
    const { notes } = await runTurn()
    expect([notes, requests.length, events.map(({ type }) => type), await remembered()]).toEqual([
      [],
      1,
      ['error', 'complete'],
      'old',
    ])
  })

  it.each([
    'Session 1234 not found',
    'The session file is corrupted',
    'Error: invalid session: unknown session id',
    'No conversation found with session ID: 1234',
    'conversation 12 does not exist',
    'The session has expired',
  ])('is recognised by its message from an adapter that has only execute: %s', async (complaint) => {
    const asked: Array<string | undefined> = []
    const { remember, remembered, process } = await setup({
      name: () => 'claude',
      validate: async () => true,
      execute: async (_prompt, _systemPrompt, sessionId) => {
        asked.push(sessionId)
        if (sessionId !== undefined) return { isError: true, responseText: complaint }
        return { isError: false, responseText: 'hi', sessionId: 'new' }
      },
    })
    await remember()
    expect([await process(), asked, await remembered()]).toEqual([
      { targetChannelId: 'thread-1', responseText: 'hi', sessionId: 'new' },
      ['old', undefined],
      'new',
    ])
  })

  it.each([
    'The model is not found',
    'Overloaded',
    'npm: invalid option',
    'My sessions are fine, my disk is full',
    'The session is fine.\nThe file was not found.',
  ])('is not read into other words: %s', async (complaint) => {
    let calls = 0
    const { remember, remembered, process } = await setup({
      name: () => 'claude',
      validate: async () => true,
      execute: async () => {
        calls += 1
        return { isError: true, responseText: complaint }
      },
    })
    await remember()
    expect([await process(), calls, await remembered()]).toEqual([
      { targetChannelId: 'thread-1', error: complaint },
      1,
      'old',
    ])
  })
})

describe('a turn that was cut off', () => {
  it('continues the same session, and the agent is told that it was interrupted', async () => {
    const { requests, remember, process } = await setupScripts(answered('old'))
    await remember()
    await process({ wasInterrupted: true })
    expect(requests.map(({ prompt, sessionId }) => ({ prompt, sessionId }))).toEqual([
      {
        prompt: expect.stringMatching(/^\[The gateway was restarted .* The message was:\]\n\nhello$/),
        sessionId: 'old',
      },
    ])
  })

  it('is simply done again without a session: a fresh agent knows of nothing', async () => {
    const { requests, process } = await setupScripts(answered('new'))
    await process({ wasInterrupted: true })
    expect(requests.map(({ prompt, sessionId }) => ({ prompt, sessionId }))).toEqual([
      { prompt: 'hello', sessionId: undefined },
    ])
  })

  it('is simply done again when its session is lost', async () => {
    const { requests, remember, process } = await setupScripts(lost, startedAndAnswered)
    await remember()
    await process({ wasInterrupted: true })
    expect(requests[1]?.prompt).toEqual('hello')
  })
})

describe('a session that began in another directory', () => {
  it('is not continued, and the person is told', async () => {
    const { requests, remember, runTurn } = await setupScripts(startedAndAnswered)
    await remember({ directory: '/projects/elsewhere' })
    const { notes, session } = await runTurn()
    expect([notes, session, requests.map(({ sessionId }) => sessionId)]).toEqual([
      [MOVED_NOTE],
      sessionOf('new'),
      [undefined],
    ])
  })

  it('is continued where it began', async () => {
    const { requests, remember, runTurn } = await setupScripts(answered('old'))
    await remember({ directory: '/projects/elsewhere' })
    const { notes } = await runTurn({ workingDir: '/projects/elsewhere' })
    expect([notes, requests.map(({ sessionId }) => sessionId)]).toEqual([[], ['old']])
  })
})

describe('a turn in its own session', () => {
  it('neither continues nor keeps one, and leaves that of the conversation as it is', async () => {
    const { requests, kept, remember, remembered, runTurn } = await setupScripts(startedAndAnswered)
    await remember()
    const outcome = await runTurn({ session: 'own' })
    expect([outcome, requests.map(({ sessionId }) => sessionId), kept, await remembered()]).toEqual([
      { result: succeeded('hi', { sessionId: 'new' }), notes: [] },
      [undefined],
      [],
      'old',
    ])
  })
})

describe('a turn that does not count as a use of the session', () => {
  it('continues it, and keeps the time of its last use', async () => {
    const result = succeeded('hi', { sessionId: 'old', sessionUsage: usage })
    const { requests, remember, runTurn } = await setupScripts([{ type: 'complete', result }])
    await remember({ usedAt: -5 })
    const outcome = await runTurn({ session: 'idle' })
    expect([outcome, requests.map(({ sessionId }) => sessionId)]).toEqual([
      { result, notes: [], session: { ...sessionOf('old'), usage, usedAt: -5 } },
      ['old'],
    ])
  })

  it.each<[string, Partial<Session>, Partial<GatewayEvent>]>([
    ['has been silent for too long', { usedAt: -5 }, { sessionIdleMs: 5 }],
    ['is elsewhere', {}, { workingDir: '/elsewhere' }],
    ['is of another agent', { backend: 'codex' }, {}],
  ])('has its own if that of the conversation %s', async (_, session, event) => {
    const { requests, kept, sessions, remember, runTurn } = await setupScripts(startedAndAnswered)
    await remember(session)
    const outcome = await runTurn({ session: 'idle', ...event })
    const left = await sessions.get('thread-1', session.backend ?? 'claude')
    expect([outcome, requests.map(({ sessionId }) => sessionId), kept, left?.sessionId]).toEqual([
      { result: succeeded('hi', { sessionId: 'new' }), notes: [] },
      [undefined],
      [],
      'old',
    ])
  })

  it('keeps no other in place of one that is lost', async () => {
    const { kept, remember, remembered, runTurn } = await setupScripts(lost, startedAndAnswered)
    await remember()
    const outcome = await runTurn({ session: 'idle' })
    expect([outcome, kept, await remembered()]).toEqual([
      { result: succeeded('hi', { sessionId: 'new' }), notes: [FRESH_NOTE] },
      [],
      undefined,
    ])
  })
})

it('a conversation that was silent for as long as the event says begins a new session', async () => {
  const { requests, remember, runTurn } = await setupScripts(answered('new'))
  await remember({ usedAt: -5 })
  await runTurn({ sessionIdleMs: 5 })
  expect(requests.map(({ sessionId }) => sessionId)).toEqual([undefined])
})

describe('what is asked', () => {
  const compose: GatewayEvent['compose'] = (sessionId) => ({
    prompt: `in ${sessionId}`,
    command: { args: ['--in', String(sessionId)] },
  })

  it('is composed for the session that is really continued, again after one was lost', async () => {
    const { requests, remember, runTurn } = await setupScripts(lost, startedAndAnswered)
    await remember()
    await runTurn({ compose })
    expect(requests.map(({ prompt, command }) => [prompt, command?.args])).toEqual([
      ['in old', ['--in', 'old']],
      ['in undefined', ['--in', 'undefined']],
    ])
  })

  it('says that an earlier attempt was cut off, whatever is composed', async () => {
    const { requests, remember, runTurn } = await setupScripts(answered('old'))
    await remember()
    await runTurn({ compose, wasInterrupted: true })
    expect(requests[0]?.prompt).toMatch(/^\[The gateway was restarted[^]*\n\nin old$/)
  })

  it('is a refusal, and nothing is started, when it cannot be composed', async () => {
    const { requests, events, hooks, runTurn } = await setupScripts(answered())
    const message = 'It would begin with "-".'
    const outcome = await runTurn({
      compose() {
        throw new GatewayError('request_invalid', message)
      },
    })
    const result = { isError: true, durationMs: 0, failure: { reason: 'refused', message, report: message } }
    expect([outcome, requests, events, hooks.map(([hook]) => hook)]).toEqual([
      { result, notes: [] },
      [],
      [
        { type: 'error', content: message, reason: 'refused', timestamp: expect.any(Number) },
        { type: 'complete', result, timestamp: expect.any(Number) },
      ],
      ['run-started', 'error'],
    ])
  })
})

it('repeats to an agent whose session was lost the input it had taken while it worked', async () => {
  const prompts: string[] = []
  const backend: TurnBackend = {
    name: () => 'claude',
    async *run({ prompt, onSteerable }) {
      prompts.push(prompt)
      const isFirst = prompts.length === 1
      if (isFirst) await new Promise<void>((told) => onSteerable?.(async (text) => (told(), text === 'taken')))
      yield { type: 'complete', result: isFirst ? failed('session_lost') : succeeded('Done'), timestamp: 0 }
    },
  }
  const { runTurn, remember } = await setup(backend)
  await remember()
  const answers: boolean[] = []
  await runTurn(
    {},
    {
      onSteerable: (steer) => void ['refused', 'taken'].map(async (text) => answers.push(await steer(text))),
    },
  )
  expect([answers, prompts]).toEqual([
    [false, true],
    ['hello', 'hello\n\n[Another message of this conversation:]\n\ntaken'],
  ])
})
