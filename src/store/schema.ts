// The tables as the code sees them. Times are milliseconds since the epoch. JSON is in text columns, so that both engines
// keep it byte for byte.
//
// Some indexes contain only the rows of one state. A query for those has the state in its text, by `sql.lit`: with a bound
// value SQLite would prepare it again each time, since the value decides which index it may use.

import type { Permissions } from '../backends/types.js'
import type { MessageKind, QueueMode } from '../channels/types.js'

export interface Schema {
  projects: ProjectRow
  conversations: ConversationRow
  deleted_conversations: DeletedConversationRow
  messages: MessageRow
  jobs: JobRow
  runs: RunRow
  run_figures: RunFigureRow
  events: EventRow
  outbox: OutboxRow
  uploads: UploadRow
  sessions: SessionRow
  gateways: GatewayRow
  processes: ProcessRow
  audit: AuditRow
  channel_values: ChannelValueRow
  tokens: TokenRow
  logins: LoginRow
  credentials: CredentialRow
  channel_claims: ChannelClaimRow
  cron_jobs: CronJobRow
  heartbeats: HeartbeatRow
  approvals: ApprovalRow
  approval_rules: ApprovalRuleRow
  admissions: AdmissionRow
}

/** Who defines the project: the configuration file, the API, or the labels of its pod. */
export type ProjectSource = 'file' | 'api' | 'cluster'

interface ProjectRow {
  id: string
  name: string | null
  source: ProjectSource
  /** Distinguishes it from earlier and later projects with the same id. */
  instance: string
  directory: string
  /** The pod with the directory, as JSON; null for this machine. */
  pod: string | null
  /** Whether its directory was created with it: no others are ever deleted. */
  is_made_here: number
  backend: string | null
  model: string | null
  allowed_tools: string | null
  query_timeout_ms: number | null
  max_turns: number | null
  /** Whether nothing in its directory may configure the agent. */
  is_untrusted: number
  agent_permissions: Permissions | null
  created_at: number
  updated_at: number
}

export interface ConversationRow {
  id: string
  channel: string
  /** The platform's own id of the conversation: a thread, a chat, a number. */
  address: string
  /** The address of the conversation whose settings apply where this one has none. */
  parent: string | null
  /** The project that the operator has assigned; a choice made in the conversation takes precedence. */
  given_project_id: string | null
  /** Whether only one person reads it. */
  is_private: number
  project_id: string | null
  backend: string | null
  model: string | null
  queue_mode: QueueMode | null
  /** As a person chose it; null for the beginning of its first message. */
  title: string | null
  is_pinned: number
  is_archived: number
  /** When one of these three was last changed. */
  edited_at: number | null
  /** The last number given to a message or a reply of this conversation. */
  last_seq: number
  created_at: number
  updated_at: number
}

/** Kept for a while, so that those who could see the conversation learn that it is gone, and nobody else does. */
interface DeletedConversationRow {
  id: string
  channel: string
  address: string
  project_id: string | null
  is_private: number
  deleted_at: number
}

/** - `refused`: not accepted, and the person was told why
 *  - `failed`: a dead letter; `queue retry` reopens it */
export type MessageState = 'open' | 'answered' | 'failed' | 'cancelled' | 'dropped' | 'refused'

interface MessageRow {
  id: string
  conversation_id: string
  channel: string
  platform_id: string
  seq: number
  kind: MessageKind
  author: string
  text: string
  state: MessageState
  /** The `MessageOptions` as JSON. */
  options: string | null
  /** Why it failed or was refused. */
  problem: string | null
  /** Of its last claim. A dead letter that is reopened continues from there, so that earlier claims stay stale. */
  fence: number
  /** The number of the last event of its stream when it was last reopened; the stream continues after it. */
  retried_after: number | null
  /** The lead message, whose turn also answers this one: it has no job of its own then, and ends with that one. */
  merged_into: string | null
  received_at: number
  finished_at: number | null
}

/** The hot table: what still has to be done. A job is removed when its message is finished.
 *
 *  - `queued`: behind another message of its conversation
 *  - `ready`: the first of its conversation; may be claimed from `due_at` on
 *  - `active`: claimed; `due_at` is the end of the lease, after which anyone may claim it again */
export type JobState = 'queued' | 'ready' | 'active'

interface JobRow {
  message_id: string
  conversation_id: string
  channel: string
  seq: number
  state: JobState
  due_at: number
  /** Incremented by every claim; a worker writes only under the one it got. */
  fence: number
  /** Attempts that failed. */
  failures: number
  /** Attempts that were interrupted by the end of their gateway. */
  interruptions: number
  gateway_id: string | null
  is_cancelled: number
}

export const ENDED_STATES = ['answered', 'failed', 'cancelled', 'interrupted'] as const

export type EndedState = (typeof ENDED_STATES)[number]

export type RunState = 'running' | EndedState

interface RunRow {
  id: string
  message_id: string
  conversation_id: string
  gateway_id: string
  backend: string
  model: string | null
  /** Where the agent worked. */
  directory: string | null
  /** Names and texts as JSON. */
  metadata: string | null
  session_id: string | null
  /** The number after which its events begin in the stream of its message. */
  first_seq: number
  state: RunState
  started_at: number
  ended_at: number | null
  /** The `AgentResult` as JSON. */
  result: string | null
}

/** What is counted of an ended run, apart from its answer so that months can be read at once. */
interface RunFigureRow {
  run_id: string
  conversation_id: string
  /** The project at that time. */
  project_id: string | null
  backend: string
  state: EndedState
  started_at: number
  duration_ms: number
  /** From its start to its first text. */
  first_text_ms: number | null
  input_tokens: number | null
  output_tokens: number | null
  cache_read_tokens: number | null
  cache_write_tokens: number | null
  cost_usd: number | null
  /** Why there is no answer. */
  reason: string | null
}

interface EventRow {
  run_id: string
  /** From 1, without gaps. */
  seq: number
  type: string
  /** The `AgentEvent` as JSON. */
  body: string
}

/** `dropped`: discarded by a person after it could not be delivered, or withdrawn before it was sent. */
export type DeliveryState = 'pending' | 'delivered' | 'undelivered' | 'dropped'

interface OutboxRow {
  /** The same for every attempt, so that a channel can detect a repetition. */
  id: string
  conversation_id: string
  channel: string
  address: string
  seq: number
  message_id: string | null
  run_id: string | null
  /** The `Reply` as JSON. */
  body: string
  state: DeliveryState
  attempts: number
  due_at: number
  fence: number
  /** The gateway that is sending it. */
  gateway_id: string | null
  created_at: number
  expires_at: number
  settled_at: number | null
  problem: string | null
}

interface UploadRow {
  id: string
  conversation_id: string
  /** Null until it is sent. */
  message_id: string | null
  name: string
  media_type: string
  bytes: number
  created_at: number
}

interface SessionRow {
  conversation_id: string
  backend: string
  /** Null after a reset. */
  session_id: string | null
  /** Where the session began; most agents find it only from there. */
  directory: string
  /** `AgentResult.sessionUsage` as JSON. */
  usage: string | null
  used_at: number
  reset_at: number
}

interface GatewayRow {
  id: string
  host: string
  boot_id: string
  pid: number
  start_time: number
  started_at: number
  /** When it last announced itself. */
  seen_at: number
}

interface ProcessRow {
  run_id: string
  gateway_id: string
  host: string
  boot_id: string
  pid: number
  start_time: number
  /** The pod in which it runs, as JSON. */
  pod: string | null
}

interface AuditRow {
  id: string
  at: number
  actor: string
  action: string
  subject: string
  detail: string | null
}

interface ChannelValueRow {
  channel: string
  name: string
  value: string
}

interface ChannelClaimRow {
  channel: string
  name: string
  claimed_at: number
}

interface TokenRow {
  id: string
  name: string
  /** SHA-256 of the token, in hex. The token itself is not stored. */
  hash: string
  /** JSON: a list of `read`, `run`, `admin`. */
  scopes: string
  /** JSON: the ids of projects; null for all. */
  projects: string | null
  created_at: number
  expires_at: number | null
  used_at: number | null
}

interface LoginRow {
  /** SHA-256 of the browser's cookie value, in hex. */
  hash: string
  /** Of the token at that time: one that was revoked or replaced has no logins. */
  token_hash: string
  expires_at: number
}

interface CredentialRow {
  /** The id of a project, or empty for all. */
  owner: string
  name: string
  /** How agents get it: as a variable, or as a file whose path is in a variable. */
  kind: 'variable' | 'file'
  /** The key it is encrypted with. */
  key_id: string
  sealed: string
  created_at: number
  updated_at: number
}

/** Whether the latest slot missed while no gateway ran is made up for. */
export type CatchUp = 'once' | 'skip'

interface CronJobRow {
  id: string
  name: string
  schedule: string
  time_zone: string
  /** Null if there is a command. */
  prompt: string | null
  /** JSON: an executable and its arguments. */
  command: string | null
  channel: string
  address: string
  project_id: string | null
  session: 'own' | 'shared'
  catch_up: CatchUp
  /** All slots up to this time are handled. */
  last_slot: number
  last_message_id: string | null
  /** Why nothing was done at the last slot. */
  problem: string | null
  created_at: number
}

/** `begun`: the agent was woken. The others say why not. */
export type BeatOutcome =
  | ('begun' | 'no-file' | 'outside-hours' | 'busy')
  | ('probe-missing' | 'probe-quiet' | 'unchanged' | 'budget')

interface HeartbeatRow {
  /** The platform id of its message, even if there is none. */
  id: string
  at: number
  outcome: BeatOutcome | null
  note: string | null
  message_id: string | null
  digest: string | null
}

/** - `expired`: nobody answered in time, which counts as denied
 *  - `withdrawn`: the run has ended, or the agent no longer asks */
export const APPROVAL_STATES = ['asked', 'allowed', 'denied', 'expired', 'withdrawn'] as const

export type ApprovalState = (typeof APPROVAL_STATES)[number]

interface ApprovalRow {
  /** Also the id of the reply that asks for it. */
  id: string
  message_id: string
  run_id: string
  conversation_id: string
  project_id: string | null
  backend: string
  tool_name: string
  /** JSON, without known secrets. */
  tool_input: string
  summary: string
  /** The subject of a rule for exactly this; null if no rule can be made. */
  subject: string | null
  state: ApprovalState
  asked_at: number
  deadline: number
  answered_at: number | null
  answered_by: string | null
  message: string | null
  /** Whether it is still shown as a question. */
  is_open: number
}

interface ApprovalRuleRow {
  id: string
  /** Empty for conversations without a project. */
  project_id: string
  backend: string
  tool_name: string
  /** Null for the whole tool. */
  subject: string | null
  created_at: number
  created_by: string
}

interface AdmissionRow {
  channel: string
  person_id: string
  name: string
  admitted_by: string
  admitted_at: number
}
