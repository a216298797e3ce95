/** The model's replies in the cases. */
import type { Agent } from './agents.js'
import type { ModelReply } from './protocols/types.js'

export function say(...deltas: string[]): ModelReply {
  return { type: 'text', deltas }
}

export function refuse(status: number, message: string, code?: string): ModelReply {
  // Agents that retry read this header, so that the cell need not wait for their own back-off.
  return { type: 'error', status, message, ...(code && { code }), headers: { 'retry-after': '1' } }
}

export function callShell(agent: Agent, command: string): ModelReply {
  return { type: 'tool', name: agent.shellTool.name, input: agent.shellTool.input(command) }
}
