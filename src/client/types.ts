// The wire types under the client's public names. Types only: the client loads nothing of the gateway.

export type { Login, Me, Ticket } from '../service/api/access.js'
export type { Agent } from '../service/api/agents.js'
export type { Approval, ApprovalAnswer, ApprovalPage, ApprovalRule } from '../service/api/approvals.js'
export type {
  CancelledCommand,
  CommandDetails,
  CommandPage,
  CommandSummary,
  ExecuteRequest,
  GitRequest,
  ShellRequest,
  SubmittedCommand,
} from '../service/api/commands.js'
export type {
  AnsweredCommand,
  ChangedFile,
  Changes,
  Conversation,
  ConversationChanges,
  ConversationDetails,
  ConversationFilter,
  ConversationPage,
  Continued,
  Done,
  FileEdit,
  NewConversation,
  SlashCommand,
  TakenMessage,
  TranscriptEntry,
  TranscriptPage,
  UploadedFile,
  UsedSession,
} from '../service/api/conversations.js'
export type { ActivityEvent, AgentComplete, CommandEvent, Complete, RunEvents } from '../service/api/events.js'
export type { AuditEntry, AuditPage, AuditQuery, Figures, FiguresQuery, Health } from '../service/api/operation.js'
export type {
  Credential,
  NewCredential,
  NewProject,
  Project,
  ProjectChanges,
  ProjectFiles,
  Template,
} from '../service/api/projects.js'
export type { QueuedMessage, QueuedReply, QueueEntry, QueueOverview, WaitingMessage } from '../service/api/queue.js'
export type { CreatedToken, NewToken, Token } from '../service/api/tokens.js'
export type { GivenProvider, Provider, Usage } from '../service/api/values.js'
