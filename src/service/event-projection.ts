import type { AgentEvent, AgentResult, TokenUsage } from '../backends/types.js'
import type { FinalEvent } from '../streams/numbered-event.js'
import { runnerName } from '../backends/engine/provider-names.js'

/** An event as clients of a stream see it. */
export interface StreamEvent {
  name: StreamEventName
  data: Record<string, unknown>
}

export const STREAM_EVENT_NAMES = [
  'started',
  'output',
  'thinking',
  'tool_use',
  'tool_result',
  'notice',
  'error',
  'agent_complete',
  'complete',
] as const

export type StreamEventName = (typeof STREAM_EVENT_NAMES)[number]

/** Names and data are those of spec 3. `line` is a whole piece of text, as the agent wrote it, with its line ends. */
export function projectEvent(event: AgentEvent | FinalEvent): StreamEvent {
  switch (event.type) {
    case 'started': {
      const { sessionId, model } = event
      const data = { ...(sessionId !== undefined && { session_id: sessionId }), ...(model !== undefined && { model }) }
      return { name: 'started', data }
    }
    case 'output':
      return { name: 'output', data: { line: event.content, stream: streamOf(event) } }
    case 'thinking':
      return { name: 'thinking', data: { content: event.content } }
    case 'tool_use':
      return { name: 'tool_use', data: { tool: event.toolName, input: event.toolInput, tool_id: event.toolId } }
    case 'tool_result': {
      const { content, toolName, toolId, isError } = event
      return { name: 'tool_result', data: { output: content, tool: toolName, tool_id: toolId, is_error: isError } }
    }
    case 'notice':
      return { name: 'notice', data: { message: event.content } }
    case 'error':
      return { name: 'error', data: { error: event.content, reason: event.reason } }
    case 'complete':
      return { name: 'agent_complete', data: projectResult(event.result) }
    default:
      return { name: 'complete', data: projectFinal(event) }
  }
}

/** A command says of its pieces when they came from stderr. */
function streamOf({ metadata, stream }: Extract<AgentEvent, { type: 'output' }>): string {
  return metadata?.['stream'] === 'stderr' ? 'stderr' : stream
}

function projectResult(result: AgentResult): Record<string, unknown> {
  const { isError, finalOutput, sessionId, exitCode, durationMs, usage, costUsd, failure, metadata } = result
  return {
    is_error: isError,
    ...(finalOutput !== undefined && { final_output: finalOutput }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(exitCode !== undefined && { exit_code: exitCode }),
    duration_ms: durationMs,
    ...(usage && { usage: projectUsage(usage) }),
    ...(costUsd !== undefined && { cost_usd: costUsd }),
    ...(failure && { error: failure.message, reason: failure.reason }),
    ...(failure?.podProblem && { pod_problem: failure.podProblem }),
    ...(failure?.retryAt !== undefined && { retry_at: failure.retryAt }),
    ...(metadata && { metadata }),
  }
}

export function projectUsage(usage: TokenUsage) {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_read_tokens: usage.cacheReadTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    reasoning_tokens: usage.reasoningTokens,
    total_tokens: usage.totalTokens,
  }
}

function projectFinal({
  exitCode,
  durationMs,
  sessionId,
  backend,
  status,
  error,
}: FinalEvent): Record<string, unknown> {
  return {
    exit_code: exitCode,
    duration_ms: durationMs,
    session_id: sessionId ?? null,
    provider: backend === undefined ? null : runnerName(backend),
    status,
    ...(error !== undefined && { error }),
  }
}
