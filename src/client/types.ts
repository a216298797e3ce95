// What goes over the wire, taken from the schemas that the gateway checks it with. Types alone: nothing of the gateway is
// loaded with the client.

import type { z } from 'zod'
import type { StreamEventName } from '../service/event-projection.js'
import type { loginSchema, meSchema } from '../service/login.js'
import type { activitySchemas } from '../service/routes/activity.js'
import type { agentSchema } from '../service/routes/agents.js'
import type {
  approvalAnswerSchema,
  approvalPageSchema,
  approvalRuleSchema,
  approvalSchema,
} from '../service/routes/approvals.js'
import type { auditEntrySchema } from '../service/routes/audit.js'
import type { commandSchema, commandSummarySchema } from '../service/routes/command-view.js'
import type { cancelledSchema, commandPageSchema } from '../service/routes/commands.js'
import type {
  conversationChangesSchema,
  doneSchema,
  newConversationSchema,
  takenMessageSchema,
} from '../service/routes/conversation-actions.js'
import type {
  conversationDetailsSchema,
  conversationSchema,
  transcriptEntrySchema,
} from '../service/routes/conversation-view.js'
import type { usedSessionSchema } from '../service/routes/conversation-sessions.js'
import type { conversationPageSchema, runEventsSchema, transcriptPageSchema } from '../service/routes/conversations.js'
import type { credentialBodySchema, credentialSchema } from '../service/routes/credentials.js'
import type { executeBodySchema, gitBodySchema, shellBodySchema, submittedSchema } from '../service/routes/execute.js'
import type { figuresSchema } from '../service/routes/figures.js'
import type { healthSchema } from '../service/routes/health.js'
import type { newProjectSchema, projectChangesSchema, projectSchema } from '../service/routes/projects.js'
import type { entrySchema, messageSchema, overviewSchema, replySchema, waitingSchema } from '../service/routes/queue.js'
import type { givenProviderSchema, providerSchema, usageSchema } from '../service/routes/schemas.js'
import type { templateSchema } from '../service/routes/templates.js'
import type { ticketSchema } from '../service/tickets.js'

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
export type CommandPage = z.output<typeof commandPageSchema>
export type CancelledCommand = z.output<typeof cancelledSchema>
export type Health = z.output<typeof healthSchema>
export type WaitingMessage = z.output<typeof waitingSchema>
export type QueuedMessage = z.output<typeof messageSchema>
export type QueuedReply = z.output<typeof replySchema>
export type QueueEntry = z.output<typeof entrySchema>
export type QueueOverview = z.output<typeof overviewSchema>
export type Template = z.output<typeof templateSchema>
/** Without its value, which nothing tells. */
export type Credential = z.output<typeof credentialSchema>
export type NewCredential = z.input<typeof credentialBodySchema>
/** What a token allows. */
export type Me = z.output<typeof meSchema>
export type Login = z.output<typeof loginSchema>
export type Ticket = z.output<typeof ticketSchema>
export type Approval = z.output<typeof approvalSchema>
export type ApprovalPage = z.output<typeof approvalPageSchema>
export type ApprovalAnswer = z.input<typeof approvalAnswerSchema>
export type ApprovalRule = z.output<typeof approvalRuleSchema>
export type AuditEntry = z.output<typeof auditEntrySchema>

export type Conversation = z.output<typeof conversationSchema>
export type ConversationDetails = z.output<typeof conversationDetailsSchema>
export type ConversationPage = z.output<typeof conversationPageSchema>
export type NewConversation = z.input<typeof newConversationSchema>
export type ConversationChanges = z.input<typeof conversationChangesSchema>
/** One that a conversation could go on in. */
export type UsedSession = z.output<typeof usedSessionSchema>
export type TranscriptEntry = z.output<typeof transcriptEntrySchema>
export type TranscriptPage = z.output<typeof transcriptPageSchema>
export type TakenMessage = z.output<typeof takenMessageSchema>
export type Done = z.output<typeof doneSchema>
export type RunEvents = z.output<typeof runEventsSchema>
export type Figures = z.output<typeof figuresSchema>

export type ConversationFilter = {
  limit?: number
  /** `next` of a page before. */
  before?: string
  state?: Conversation['state']
  channel?: string
  /** The id of a project. */
  project?: string
  /** Words that were said in it. */
  q?: string
}

export type FiguresQuery = {
  /** Days in UTC, as `2026-11-16`. */
  from?: string
  to?: string
  group?: Figures['group']
  agent?: GivenProvider
  project?: string
}

/** What the stream of all activity tells. */
export type ActivityEvent = {
  [Name in keyof typeof activitySchemas]: { name: Name; data: z.output<(typeof activitySchemas)[Name]> }
}[keyof typeof activitySchemas]

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
  /** What is wrong with the pod of the project, where that is the reason. */
  pod_problem?: string
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
