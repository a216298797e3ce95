// What a gateway needs and what it is made of.

import type { ApprovalService } from './approvals/approval-service.js'
import type { BackendRegistry } from './backends/registry.js'
import type { Channel } from './channels/types.js'
import type { ConfigChange } from './config/reload.js'
import type { GatewayConfig } from './config.js'
import type { ConversationCommands } from './conversation/conversation-commands.js'
import type { CredentialStore } from './credentials/credential-store.js'
import type { Scrubber } from './credentials/scrubber.js'
import type { Pods } from './kubernetes/types.js'
import type { Log } from './log.js'
import type { UploadedFiles } from './media/uploaded-files.js'
import type { Metrics } from './metrics.js'
import type { Scheduler } from './schedule/scheduler.js'
import type { Note } from './store/audit.js'
import type { DeletedConversation } from './store/conversations.js'
import type { Store } from './store/store.js'
import type { ActivityHub } from './streams/activity-hub.js'
import type { StreamHub } from './streams/stream-hub.js'
import type { GatewayHost } from './turns/accept.js'
import type { Queue } from './turns/queue.js'
import type { StopOutcome } from './turns/stop.js'
import type { Step } from './turns/types.js'

export interface GatewayDependencies {
  environment: NodeJS.ProcessEnv
  log: Log
  channels: Channel[]
  /** Hides every known secret. */
  scrubber?: Scrubber
  metrics?: Metrics
  /** Defaults to those that kubectl reaches. */
  pods?: Pods
  /** Serve only this conversation, and leave the others to another gateway. */
  address?: string
  /** Called at each step of each message. */
  onStep?(step: Step): void
  /** Called last, before the gateway takes messages. Contract: if it rejects, the gateway does not start. */
  beforeWork?(gateway: GatewayParts): Promise<void>
}

/** The parts of a gateway, for those who serve it. */
export interface GatewayParts {
  id: string
  store: Store
  queue: Queue
  agents: BackendRegistry
  credentials: CredentialStore
  scrubber: Scrubber
  metrics: Metrics
  approvals: ApprovalService
  /** The events of messages, stored and new. */
  streams: StreamHub
  /** Activity in all conversations. */
  activity: ActivityHub
  /** Ends a message's turn, or removes it from the queue. */
  cancel(messageId: string): Promise<StopOutcome['kind']>
  /** Looks for work and replies; for callers that changed the queue from outside. */
  wake(): void
  /** The content of files that were uploaded for messages. */
  uploads: UploadedFiles
  /** Channel names. */
  channels: string[]
  /** The slash commands. */
  commands: Pick<ConversationCommands, 'act' | 'stopMessage' | 'continueMessage'>
  /** Removes a conversation for good. Contract: throws `conflict` while something runs or waits in it. */
  deleteConversation(conversation: DeletedConversation, audit: Note): Promise<void>
  /** The host of a channel, for messages that reach it another way. */
  hostOf(channel: string): GatewayHost
}

export interface Gateway extends GatewayParts {
  /** Heartbeats and cron jobs. */
  scheduler: Scheduler
  /**
   * Applies a new configuration as far as possible at run time; running turns are not affected. Contract: changes the
   * object the gateway was started with.
   */
  reconfigure(next: GatewayConfig): Promise<ConfigChange>
  /** Drains, releases unfinished messages and ends everything it started. */
  stop(): Promise<void>
}
