import { runnerName } from '../backends/agents.js'
import type { AgentEvent, AgentResult } from '../backends/types.js'
import type { FinalEvent } from '../streams/numbered-event.js'
import { type AgentComplete, eventSchemas, type StreamEvent } from './api/events.js'
import { tokenUsageSchema } from './api/values.js'
import { toWire } from './wire.js'

/** An event in its wire format. `line` is a piece of text as the agent wrote it, including line breaks. */
export function projectEvent(event: AgentEvent | FinalEvent): StreamEvent {
  switch (event.type) {
    case 'started':
      return { name: 'started', data: toWire(eventSchemas.started, event) }
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
    case 'notice': {
      const { content, isTechnical } = event
      return { name: 'notice', data: { message: content, ...(isTechnical && { is_technical: true }) } }
    }
    case 'error':
      return { name: 'error', data: { error: event.content, reason: event.reason } }
    case 'complete':
      return { name: 'agent_complete', data: projectResult(event.result) }
    default: {
      const provider = event.backend === undefined ? undefined : runnerName(event.backend)
      return { name: 'complete', data: toWire(eventSchemas.complete, { ...event, provider }) }
    }
  }
}

/** Commands mark output that came from stderr. */
function streamOf({ metadata, stream }: Extract<AgentEvent, { type: 'output' }>): 'stdout' | 'stderr' {
  return metadata?.['stream'] === 'stderr' ? 'stderr' : stream
}

function projectResult({ usage, failure, ...result }: AgentResult): AgentComplete {
  return toWire(eventSchemas.agent_complete, {
    ...result,
    usage: usage && toWire(tokenUsageSchema, usage),
    error: failure?.message,
    reason: failure?.reason,
    podProblem: failure?.podProblem,
    retryAt: failure?.retryAt,
  })
}
