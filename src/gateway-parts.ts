// What a gateway needs, and what it is made of, for whoever starts or serves it.

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
import type { Metrics } from './metrics.js'
import type { Scheduler } from './schedule/scheduler.js'
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
  /** Knows every secret that must not be told. */
  scrubber?: Scrubber
  metrics?: Metrics
  /** Left out, those that kubectl reaches. */
  pods?: Pods
  /** Serves this conversation alone, and leaves the others to a gateway that runs on. */
  address?: string
  /** Hears of each step of each message. */
  onStep?(step: Step): void
  /** The last thing before it takes messages. Contract: when it rejects, the gateway does not start. */
  beforeWork?(gateway: GatewayParts): Promise<void>
}

/** What a gateway is made of, for whoever serves it. */
export interface GatewayParts {
  id: string
  store: Store
  queue: Queue
  agents: BackendRegistry
  credentials: CredentialStore
  scrubber: Scrubber
  metrics: Metrics
  /** What agents ask to be allowed. */
  approvals: ApprovalService
  /** The events of messages, from the first one and as they come. */
  streams: StreamHub
  /** What goes on in all conversations. */
  activity: ActivityHub
  /** Ends the work on a message, or takes it out of the queue. */
  cancel(messageId: string): Promise<StopOutcome['kind']>
  /** Looks for work and replies now; for whoever changed the queue from outside. */
  wake(): void
  /** The names of its channels. */
  channels: string[]
  /** What people can tell the gateway about a conversation. */
  commands: Pick<ConversationCommands, 'act' | 'stopMessage'>
  /** As a channel would: for a channel's messages that come another way. */
  hostOf(channel: string): GatewayHost
}

export interface Gateway extends GatewayParts {
  /** Heartbeats and cron jobs. */
  scheduler: Scheduler
  /** Goes on with another configuration, as far as that can be done; turns that run go on as they began. Contract: the
   *  object it was started with is changed. */
  reconfigure(next: GatewayConfig): Promise<ConfigChange>
  /** Drains, gives back what is not finished, ends everything it started. */
  stop(): Promise<void>
}
