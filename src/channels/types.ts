/** The contract between the gateway and a chat platform. A channel knows its platform and nothing above it. */

import type { AgentEvent } from '../backends/types.js'

/** What starts a turn besides a person. */
export const EVENT_KINDS = ['heartbeat', 'cron', 'hook', 'webhook'] as const

export const MESSAGE_KINDS = ['message', ...EVENT_KINDS] as const

export type MessageKind = (typeof MESSAGE_KINDS)[number]

/**
 * What happens to a person's message that arrives while the agent is working on another: it waits for its own turn
 * (`followup`), shares a turn with everything else waiting (`collect`), does so after ending the running turn
 * (`interrupt`), or reaches the running agent at once (`steer`).
 */
export const QUEUE_MODES = ['followup', 'collect', 'interrupt', 'steer'] as const

export type QueueMode = (typeof QUEUE_MODES)[number]

/** Where a conversation takes place. */
export interface Place {
  /** The platform's id of the conversation: a thread, a chat, a phone number. */
  address: string
  /** The address it belongs to, such as the channel of a thread. Its settings apply unless the address has its own. */
  parent?: string
  /** The project the operator assigned to this place. */
  projectId?: string
  /** The conversation belongs to one person: other conversations do not list it. */
  isPrivate?: boolean
}

/** A file attached to an incoming message. */
export interface IncomingFile {
  /** As the sender named it; never trust it as a path. */
  name: string
  /** As the platform reports it. */
  type?: string | undefined
  bytes: number
  /** Contract: returns at most one byte more than `bytes`; rejects if the file cannot be fetched. */
  read(signal: AbortSignal): Promise<Uint8Array>
}

/** A file ready to be sent. */
export interface OpenedFile {
  name: string
  content: Buffer
}

/** Options for the turn of a single message. */
export interface MessageOptions {
  model?: string
  allowedTools?: string[]
  timeoutMs?: number
  /** The session the caller wants to continue. */
  sessionId?: string
  /** The caller's own labels, passed on with the run, in the request to the agent and to hooks. */
  metadata?: Record<string, string>
  /** The id of its event stream. */
  streamId?: string
  /** The instance of the project it was sent to: a later project under the same id does not match. */
  projectInstance?: string
  /** A command to run instead of an agent: an executable and its arguments. */
  command?: string[]
  /**
   * Which session to use instead of the conversation's: `own` starts one for this turn only; `idle` continues the
   * conversation's without counting as activity in it.
   */
  session?: 'own' | 'idle'
  /** The conversation continues in a new session from here. */
  beginsSession?: true
  /** The project to work in, if not the conversation's. */
  projectId?: string
  /** The name of the cron job it belongs to. */
  job?: string
  /** The previous one of its kind failed too: the person already knows and is not notified again. */
  isKnownToFail?: boolean
  /** The paused turn that it continues. */
  continues?: PausedTurn
  /** Values available to the operator's command templates. */
  variables?: MessageVariables
}

/** Given to an agent that does not remember it. */
export interface PausedTurn {
  /** The messages it was answering. */
  asked: string[]
  /** What the agent said before it paused; may be empty. */
  said: string
}

/** Properties of a message, under the names used in command templates. */
export interface MessageVariables {
  From?: string
  To?: string
  MessageSid?: string
  MediaPath?: string
  MediaUrl?: string
  MediaType?: string
  Transcript?: string
}

/** A message as a platform delivers it. */
export interface ChannelMessage extends Place {
  /**
   * The platform's id of the message, unique within the channel. A message that arrives again under the same id is
   * answered once.
   */
  platformId: string
  author: string
  text: string
  kind?: MessageKind
  files?: IncomingFile[]
  options?: MessageOptions
}

export interface AcceptedMessage {
  status: 'accepted'
  messageId: string
  conversationId: string
  /** The number of messages ahead of it in its conversation. */
  position: number
  /** Notes for the person, for example that a file was not accepted. */
  notes: string[]
  /** The message whose turn was interrupted for it. */
  interrupts?: string
}

export type Acceptance =
  | AcceptedMessage
  | { status: 'duplicate'; messageId: string; conversationId: string }
  /** The person also gets the reason as a reply. */
  | { status: 'refused'; messageId: string; conversationId: string; reason: string }

/** A file the answer wants to send. Whether it may be sent is decided when it is opened or fetched. */
export type OutgoingFile = OutgoingPath | OutgoingUrl

export interface OutgoingPath {
  /** As the agent wrote it; relative paths start at `directory`. */
  path: string
  /** The agent's working directory. Files outside it are sent only from directories the operator has allowed. */
  directory: string
}

export interface OutgoingUrl {
  url: string
}

/** A message to a person. */
export interface Reply {
  /** The agent's answer, or the reason there is none. */
  text: string
  /** Notes from the gateway, such as a lost session; one sentence each. */
  notes: string[]
  isError: boolean
  files?: OutgoingFile[]
  /** The message failed and can be retried. */
  canRetry?: true
  /** The agent paused at its turn limit and can continue. */
  canContinue?: true
  /** When the waiting message is retried, in milliseconds since the epoch. */
  waitsUntil?: number
  /** A permission prompt; a channel with buttons offers the answers. */
  question?: Question
  /** The recipient; by default the author of the message being answered. */
  author?: string
}

export interface Question {
  /** The id of the approval. */
  id: string
  /** Whether "always allow" can be offered for exactly this request. */
  canRemember: boolean
}

/** A question that no longer needs an answer. */
export interface EndedQuestion {
  id: string
  address: string
  /** The text that replaces it. */
  text: string
}

export interface OutgoingReply extends Reply {
  /** The same for every attempt. A reply already sent under this key must not be shown again. */
  idempotencyKey: string
  address: string
  /** The message being answered, by our id and by the platform's. */
  messageId?: string
  platformId?: string
  /** The platform's ids of further messages that it answers; only for a channel that `showsOutcomes`. */
  alsoAnswers?: string[]
  /** The message had failed and was queued again; only for a channel that `showsOutcomes`. */
  wasRetried?: true
  /** The answer's model, time and cost in a few words; only for a channel that `showsOutcomes`. */
  footer?: string
  createdAt: number
  /** Counted from 1. An earlier attempt may already have reached the platform. */
  attempt: number
}

/** Messages that get no answer: one that was stopped or removed from the queue, and those that shared its turn. */
export interface Forgotten {
  address: string
  messageId: string
  /** The platform's ids. */
  platformIds: string[]
}

/** A turn has failed and is tried again. */
export interface NextAttempt {
  address: string
  messageId: string
  /** Why it failed. */
  problem: string
  /** Counted from 1: the first one was number 1. */
  attempt: number
  /** How many there are in total, if they fail like the last one. */
  attempts: number
  /** In milliseconds since the epoch. */
  startsAt: number
}

/** What an agent is doing right now. Showing it is optional; the reply follows in any case. */
export interface LiveEvent {
  address: string
  messageId: string
  /** The platform's id of the message. */
  platformId: string
  runId: string
  /** Counted from 1 within the run, without gaps. */
  seq: number
  event: AgentEvent
}

/** A command, for platforms that list them to people. */
export interface CommandDescription {
  name: string
  meaning: string
  /** `isPerson`: it names a person, so a platform may offer a choice of people. */
  argument?: { name: string; meaning: string; isRequired: boolean; hasSuggestions: boolean; isPerson?: boolean }
  /** It changes nothing, so the answer is shown only to the person who asked. */
  isQuestion: boolean
}

/** A completion offered while a person types a command. */
export interface Suggestion {
  label: string
  value: string
}

/** A person as the platform knows them. */
export interface Person {
  id: string
  name: string
}

/** People let in by a command, in addition to those in the configuration. */
export interface Admissions {
  has(personId: string): Promise<boolean>
  /** Latest first. */
  list(): Promise<{ personId: string; name: string; admittedBy: string }[]>
  /** False if the person is in already. */
  add(person: Person, by: string): Promise<boolean>
  /** False if the person was not in. */
  remove(personId: string, by: string): Promise<boolean>
}

/** What the gateway offers a channel. */
export interface ChannelHost {
  /**
   * Contract: when it resolves, the message is stored, or a reply with the reason why not is on its way. It rejects if
   * neither is the case.
   */
  onMessage(message: ChannelMessage): Promise<Acceptance>
  /** Whether a message with this id has arrived before. */
  isKnown(platformId: string): Promise<boolean>
  /** The person edited a message. `late` if an agent has already started on it. */
  onEdit(message: ChannelMessage): Promise<'changed' | 'late' | 'unknown'>
  /** The person deleted a message; it is dropped unless an agent has started on it. */
  onDelete(platformId: string): Promise<void>
  commands(): CommandDescription[]
  /** Whether a line is a command rather than a message for the agent. */
  isCommand(line: string): boolean
  /** Runs a line such as `/stop`; returns the answer for the person. */
  onCommand(place: Place, author: string, line: string): Promise<string>
  /** Completions for the argument of a command, given what the person has `typed` so far. */
  suggest(place: Place, command: string, typed: string): Promise<Suggestion[]>
  /**
   * Stops the turn of a message, retries a failed one, continues a paused one, or answers a question. `id` is the id of
   * the message or the question.
   */
  onButton(action: ButtonAction, id: string, author: string): Promise<ButtonAnswer>
  /**
   * Sends a text that answers no message. Contract: once it resolves, delivery is as certain as for a reply. With a key
   * it is sent once across all gateways: the key is claimed in the same transaction.
   */
  say(place: Place, text: string, author?: string, key?: string): Promise<void>
  /**
   * Opens or fetches a file named in an answer. Contract: rejects with a sentence for the person if the file cannot or
   * must not be sent.
   */
  openFile(file: OutgoingFile, maxBytes: number, signal: AbortSignal): Promise<OpenedFile>
  /** The path on this machine of a file named in an answer. Contract: rejects as `openFile` does. */
  locateFile(file: OutgoingPath): Promise<string>
  /** The platform accepted a reply and later reported that it could not deliver it, and why. */
  onUndelivered(idempotencyKey: string, problem: string): Promise<void>
  /**
   * Claims a key across all gateways, for work that must be done once and is not a message. False if it was already
   * claimed.
   */
  claim(key: string): Promise<boolean>
  isClaimed(key: string): Promise<boolean>
  readonly admissions: Admissions
  /** Returns a value stored by `remember`; it survives restarts. */
  recall(key: string): Promise<string | undefined>
  remember(key: string, value: string): Promise<void>
  /** The addresses of this channel's conversations that were active since then. */
  addresses(since: number): Promise<string[]>
}

export const BUTTON_ACTIONS = ['stop', 'retry', 'continue', 'allow', 'always', 'deny'] as const

export type ButtonAction = (typeof BUTTON_ACTIONS)[number]

export interface ButtonAnswer {
  /** For the person. */
  text: string
  /** False if it failed, and may be pressed again. */
  isDone: boolean
}

/** An incoming request from the platform. Contract: only the channel verifies that it really comes from there. */
export interface PlatformRequest {
  /** The path below the endpoint's, without a leading slash. */
  rest: string
  /** The raw query string, without the question mark. */
  query: string
  headers: Readonly<Record<string, string | undefined>>
  body: Buffer
}

export interface PlatformResponse {
  status: number
  headers?: Record<string, string>
  body?: string | Buffer
}

/** An endpoint the platform calls at our public URL. */
export interface PlatformEndpoint {
  method: 'GET' | 'POST'
  /** Begins with a slash; matches everything below it too. */
  path: string
  /** A larger body is refused before it is read. */
  maxBytes: number
  handle(request: PlatformRequest): Promise<PlatformResponse>
}

export interface Channel {
  readonly name: string
  /** Served by the HTTP server under the public URL, without a token. */
  readonly endpoints?: PlatformEndpoint[]
  /** Whether replies can carry files, or display them. */
  readonly takesFiles?: boolean
  /** Whether it offers the answers to a question itself, such as by buttons: then the question names no commands. */
  readonly offersAnswers?: boolean
  /** Whether people can edit and delete what they have written. */
  readonly takesEdits?: boolean
  /** Whether it shows how messages ended, and an answer's model, time and cost. */
  readonly showsOutcomes?: boolean
  /** Contract: rejects only for problems the operator must fix; transient ones are waited out. */
  start(host: ChannelHost): Promise<void>
  /**
   * Contract: resolves once the platform has accepted the reply. A rejection is retried until the reply expires, unless
   * its code is `undeliverable`: then retrying is pointless.
   */
  send(reply: OutgoingReply, signal: AbortSignal): Promise<void>
  /** Contract: returns at once and never throws. */
  show?(event: LiveEvent): void
  /** Contract: returns at once and never throws. */
  retry?(next: NextAttempt): void
  /** Contract: returns at once and never throws. */
  forget?(forgotten: Forgotten): void
  /** Marks a question as closed. Contract: one that cannot be found counts as closed; a rejection is retried. */
  endQuestion?(question: EndedQuestion): Promise<void>
  /** Stops accepting messages. `send` still works until `close`. */
  stop(): Promise<void>
  close(): Promise<void>
}
