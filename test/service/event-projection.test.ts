import { describe, expect, it } from 'vitest'
import type { AgentEventBody } from '../../src/backends/types.js'
import { projectEvent } from '../../src/service/event-projection.js'
import type { FinalEvent } from '../../src/streams/numbered-event.js'

const USAGE = {
  inputTokens: 1,
  outputTokens: 2,
  cacheReadTokens: 3,
  cacheWriteTokens: 4,
  reasoningTokens: 5,
  totalTokens: 10,
}
const FINAL = { type: 'final', exitCode: 0, durationMs: 9, timestamp: 0 } as const

/** Each event, and what a client reads, character for character. */
const GOLDEN: Array<[AgentEventBody | FinalEvent, string]> = [
  [{ type: 'started', sessionId: 's', model: 'opus' }, 'started {"session_id":"s","model":"opus"}'],
  [{ type: 'started' }, 'started {}'],
  [{ type: 'output', content: 'a\nb\n', stream: 'stdout' }, 'output {"line":"a\\nb\\n","stream":"stdout"}'],
  [
    { type: 'output', content: 'no such file', stream: 'stdout', metadata: { stream: 'stderr' } },
    'output {"line":"no such file","stream":"stderr"}',
  ],
  [{ type: 'thinking', content: 'hm' }, 'thinking {"content":"hm"}'],
  [
    { type: 'tool_use', toolId: 't1', toolName: 'Bash', toolInput: { command: 'ls' } },
    'tool_use {"tool":"Bash","input":{"command":"ls"},"tool_id":"t1"}',
  ],
  [
    { type: 'tool_result', toolId: 't1', toolName: 'Bash', content: 'a.txt', isError: false },
    'tool_result {"output":"a.txt","tool":"Bash","tool_id":"t1","is_error":false}',
  ],
  [{ type: 'notice', content: 'Compacted' }, 'notice {"message":"Compacted"}'],
  [
    { type: 'notice', content: 'Unknown event', isTechnical: true },
    'notice {"message":"Unknown event","is_technical":true}',
  ],
  [{ type: 'error', content: 'Not logged in', reason: 'auth' }, 'error {"error":"Not logged in","reason":"auth"}'],
  [
    {
      type: 'complete',
      result: {
        isError: false,
        finalOutput: 'Done',
        sessionId: 's',
        exitCode: 0,
        durationMs: 7,
        usage: USAGE,
        sessionUsage: USAGE,
        costUsd: 0.5,
        metadata: { turns: 2 },
      },
    },
    'agent_complete {"is_error":false,"final_output":"Done","session_id":"s","exit_code":0,"duration_ms":7,' +
      '"usage":{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"reasoning_tokens":5,' +
      '"total_tokens":10},"cost_usd":0.5,"metadata":{"turns":2}}',
  ],
  [
    {
      type: 'complete',
      result: {
        isError: true,
        durationMs: 7,
        failure: { reason: 'rate_limit', message: 'Slow down', report: 'r', retryAt: 99, stderr: 'e' },
      },
    },
    'agent_complete {"is_error":true,"duration_ms":7,"error":"Slow down","reason":"rate_limit","retry_at":99}',
  ],
  [
    { ...FINAL, status: 'answered', sessionId: 's', backend: 'claude' },
    'complete {"exit_code":0,"duration_ms":9,"session_id":"s","provider":"claudecode","status":"answered"}',
  ],
  [
    { ...FINAL, status: 'failed', exitCode: 1, backend: 'codex', error: 'exit: It broke.' },
    'complete {"exit_code":1,"duration_ms":9,"session_id":null,"provider":"codex","status":"failed","error":"exit: It broke."}',
  ],
  [
    { ...FINAL, status: 'dropped', exitCode: 1 },
    'complete {"exit_code":1,"duration_ms":9,"session_id":null,"provider":null,"status":"dropped"}',
  ],
]

describe('an event as clients see it', () => {
  it.each(GOLDEN)('%o', (event, expected) => {
    const { name, data } = projectEvent({ ...event, timestamp: 0 })
    expect(`${name} ${JSON.stringify(data)}`).toBe(expected)
  })
})
