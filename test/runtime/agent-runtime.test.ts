import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AgentResult, BackendEventResult } from '../../src/backends/types.js'
import { AgentRuntime, toEventResult } from '../../src/runtime/agent-runtime.js'
import { SessionManager } from '../../src/runtime/session-manager.js'
import { ScriptedBackend } from '../scripted-backend.js'

const anyId = fc.string({ minLength: 1 })

const anyResult: fc.Arbitrary<BackendEventResult> = fc.record(
  { isError: fc.boolean(), responseText: fc.string(), sessionId: anyId },
  { requiredKeys: ['isError'] },
)

function setup(result: AgentResult) {
  const backend = new ScriptedBackend([{ type: 'complete', result }])
  const sessions = new SessionManager()
  const hooks: string[] = []
  const runtime = new AgentRuntime(
    { idleTimeoutMs: 0 },
    backend,
    sessions,
    { load: async () => 'be brief' },
    { assemble: (markdown) => `# Identity\n${markdown}` },
    {
      fire: async (hook) => {
        hooks.push(hook)
      },
    },
  )
  const process = (channelId: string) => runtime.process({ channelId, prompt: 'hello' }, new AbortController().signal)
  return { backend, sessions, hooks, process }
}

const ok = (sessionId?: string): AgentResult => ({
  isError: false,
  durationMs: 1,
  finalOutput: 'hi',
  ...(sessionId !== undefined && { sessionId }),
})

const failed = (reason: 'session_lost' | 'exit'): AgentResult => ({
  isError: true,
  durationMs: 1,
  failure: { reason, message: 'It failed', report: 'Claude CLI error (exit 1): it failed' },
})

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
  it('stores the session id of a result for its channel, and leaves the stored one alone without one', async () => {
    await fc.assert(
      fc.asyncProperty(anyId, anyId, fc.option(anyId, { nil: undefined }), async (channelId, before, sessionId) => {
        const { sessions, process } = setup(ok(sessionId))
        sessions.set(channelId, 'claude', before)
        await process(channelId)
        expect(sessions.get(channelId, 'claude')).toBe(sessionId ?? before)
      }),
      { numRuns: 200 },
    )
  })

  it('goes on in the session of the conversation, with the assembled system prompt', async () => {
    const { backend, sessions, process } = setup(ok('new'))
    sessions.set('thread-1', 'claude', 'old')
    await process('thread-1')
    expect(backend.requests).toEqual([
      { prompt: 'hello', systemPrompt: '# Identity\nbe brief', sessionId: 'old', idleTimeoutMs: 0 },
    ])
  })

  it('does not offer the session of one agent to another', () => {
    const sessions = new SessionManager()
    sessions.set('thread-1', 'claude', 'a')
    expect(sessions.get('thread-1', 'codex')).toBeUndefined()
  })

  it('forgets a session the agent has lost, and tells the reason in the words of the agent', async () => {
    const { sessions, process } = setup(failed('session_lost'))
    sessions.set('thread-1', 'claude', 'gone')
    const result = await process('thread-1')
    expect([result, sessions.get('thread-1', 'claude')]).toEqual([
      { targetChannelId: 'thread-1', error: 'It failed' },
      undefined,
    ])
  })

  it.each([
    ['run-finished', ok()],
    ['error', failed('exit')],
  ])('tells the hooks that a run started and how it ended: %s', async (hook, result) => {
    const { hooks, process } = setup(result)
    await process('thread-1')
    expect(hooks).toEqual(['run-started', hook])
  })
})
