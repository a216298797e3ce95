// What goes over the wire, taken from the schemas that the gateway checks it with. Types alone: nothing of the gateway is
// loaded with the client.

import type { z } from 'zod'
import type { StreamEventName } from '../http/event-projection.js'
import type { agentSchema } from '../http/routes/agents.js'
import type { commandSchema, commandSummarySchema } from '../http/routes/command-view.js'
import type { executeBodySchema, gitBodySchema, shellBodySchema, submittedSchema } from '../http/routes/execute.js'
import type { newProjectSchema, projectChangesSchema, projectSchema } from '../http/routes/projects.js'
import type { givenProviderSchema, providerSchema, usageSchema } from '../http/routes/schemas.js'

export type Provider = z.output<typeof providerSchema>
export type GivenProvider = z.input<typeof givenProviderSchema>
export type Project = z.output<typeof projectSchema>
export type NewProject = z.input<typeof newProjectSchema>
export type ProjectChanges = z.input<typeof projectChangesSchema>
export type ExecuteRequest = z.input<typeof executeBodySchema>
export type ShellRequest = z.input<typeof shellBodySchema>
export type GitRequest = z.input<typeof gitBodySchema>
export type SubmittedCommand = z.output<typeof submittedSchema>
export type CommandSummary = z.output<typeof commandSummarySchema>
export type CommandDetails = z.output<typeof commandSchema>
export type Agent = z.output<typeof agentSchema>
export type Usage = NonNullable<z.output<typeof usageSchema>>

export interface CommandPage {
  commands: CommandSummary[]
  /** For `before`; null when there are no older ones. */
  next: string | null
}

export interface CancelledCommand {
  command_id: string
  /** `asked`: another gateway works on it and stops soon; `finished`: it had ended before. */
  outcome: 'stopped' | 'dropped' | 'asked' | 'finished'
}

export interface Health {
  status: 'healthy' | 'degraded' | 'unhealthy'
  agents: Partial<Record<Provider, 'available' | 'unavailable'>>
  store: { engine: 'sqlite' | 'postgres'; status: 'available' | 'unavailable'; latency_ms: number | null }
  queue: { waiting: number; active: number; failed: number } | null
}

export interface WaitingMessage {
  id: string
  state: 'queued' | 'ready' | 'active'
  channel: string
  conversation: string
  author: string
  text: string
  position: number
  failures: number
  received_at: string
  due_at: string
}

export interface QueuedMessage {
  id: string
  kind: 'message'
  state: 'open' | 'answered' | 'failed' | 'cancelled' | 'dropped' | 'refused'
  job: 'queued' | 'ready' | 'active' | null
  channel: string
  author: string
  text: string
  problem: string | null
  received_at: string
  finished_at: string | null
}

export interface QueuedReply {
  id: string
  kind: 'reply'
  state: 'pending' | 'delivered' | 'undelivered' | 'dropped'
  channel: string
  message_id: string | null
  attempts: number
  problem: string | null
  created_at: string
}

export type QueueEntry = QueuedMessage | QueuedReply

export interface QueueOverview {
  open: WaitingMessage[]
  failed: QueuedMessage[]
  undelivered: QueuedReply[]
}

interface EventData extends Record<StreamEventName, object> {
  started: { session_id?: string; model?: string }
  output: { line: string; stream: 'stdout' | 'stderr' }
  thinking: { content: string }
  tool_use: { tool: string; input: Record<string, unknown>; tool_id: string }
  tool_result: { output: string; tool: string; tool_id: string; is_error: boolean }
  notice: { message: string }
  error: { error: string; reason: string }
  agent_complete: AgentComplete
  complete: Complete
}

/** The last word of the last run. */
export interface AgentComplete {
  is_error: boolean
  final_output?: string
  session_id?: string
  exit_code?: number
  duration_ms: number
  usage?: Usage
  cost_usd?: number
  error?: string
  reason?: string
  /** Milliseconds since the epoch when a rate limit is over. */
  retry_at?: number
  metadata?: Record<string, unknown>
}

/** The last event of every stream. */
export interface Complete {
  exit_code: number
  duration_ms: number
  session_id: string | null
  provider: string | null
  status: 'answered' | 'failed' | 'cancelled' | 'dropped' | 'refused'
  error?: string
}

/** `id` counts from 1 without gaps. */
export type CommandEvent = {
  [Name in StreamEventName]: { id: number; name: Name; data: EventData[Name] }
}[StreamEventName]
