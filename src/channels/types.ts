/** What lies between the gateway and a place where people write. A channel knows the platform and nothing above. */

import type { AgentEvent } from '../backends/types.js'

export const MESSAGE_KINDS = ['message', 'heartbeat', 'cron', 'hook', 'webhook'] as const

export type MessageKind = (typeof MESSAGE_KINDS)[number]

/** A message as a platform delivers it. */
export interface ChannelMessage {
  /** The platform's name of the conversation: a thread, a chat, a number. */
  address: string
  /** The platform's id of the message, unique in its channel; one that comes again under it is answered once. */
  platformId: string
  author: string
  text: string
  kind?: MessageKind
}

export type Acceptance =
  /** `position` is the number of messages that come before it in its conversation. */
  | { status: 'accepted'; messageId: string; conversationId: string; position: number }
  | { status: 'duplicate'; messageId: string; conversationId: string }
  /** The reason goes to the person as a reply, too. */
  | { status: 'refused'; messageId: string; conversationId: string; reason: string }

/** What a person is told. */
export interface Reply {
  /** The agent's answer, or why there is none. */
  text: string
  /** What the gateway adds, such as that the session was lost; a sentence each. */
  notes: string[]
  isError: boolean
}

export interface OutgoingReply extends Reply {
  /** The same for every attempt: a reply that was sent under it must not be shown again. */
  idempotencyKey: string
  address: string
  /** The message it answers. */
  messageId?: string
}

/** What an agent is doing now. It may be shown or not; the reply comes in any case. */
export interface LiveEvent {
  address: string
  messageId: string
  runId: string
  /** From 1, without gaps within the run. */
  seq: number
  event: AgentEvent
}

/** What a channel may ask of the gateway. */
export interface ChannelHost {
  /** Contract: when it settles, the message is safe, or the reason why not is on its way. It rejects when neither is. */
  onMessage(message: ChannelMessage): Promise<Acceptance>
  /** A line such as `/stop`; the answer is for the person. */
  onCommand(address: string, author: string, line: string): Promise<string>
}

export interface Channel {
  readonly name: string
  start(host: ChannelHost): Promise<void>
  /** Contract: resolves when the platform has taken it; a rejection is tried again until the reply expires. */
  send(reply: OutgoingReply, signal: AbortSignal): Promise<void>
  /** Contract: returns at once and never throws. */
  show?(event: LiveEvent): void
  /** Takes nothing more in. `send` still works until `close`. */
  stop(): Promise<void>
  close(): Promise<void>
}
