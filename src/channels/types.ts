/** What lies between the gateway and a place where people write. A channel knows the platform and nothing above. */

import type { AgentEvent } from '../backends/types.js'

/** What begins a turn beside a person. */
export const EVENT_KINDS = ['heartbeat', 'cron', 'hook', 'webhook'] as const

export const MESSAGE_KINDS = ['message', ...EVENT_KINDS] as const

export type MessageKind = (typeof MESSAGE_KINDS)[number]

/** What becomes of a person's message that comes while the agent works on another: it waits for its own turn
 *  (`followup`), shares its turn with all that wait with it (`collect`), does so after it has ended what runs (`interrupt`),
 *  or is told to the agent at once (`steer`). */
export const QUEUE_MODES = ['followup', 'collect', 'interrupt', 'steer'] as const

export type QueueMode = (typeof QUEUE_MODES)[number]

/** Where something is said. */
export interface Place {
  /** The platform's name of the conversation: a thread, a chat, a number. */
  address: string
  /** The address of what it is part of, such as the channel of a thread; its settings hold where there are no others. */
  parent?: string
  /** The project that the operator has given to this place. */
  projectId?: string
  /** What is said here is for one person: other conversations do not list it. */
  isPrivate?: boolean
}

/** A file that came with a message. */
export interface IncomingFile {
  /** As its sender named it: not to be trusted as a path. */
  name: string
  /** As the platform says. */
  type?: string
  bytes: number
  /** Contract: gives at most one byte more than `bytes`; rejects when it cannot be had. */
  read(signal: AbortSignal): Promise<Uint8Array>
}

/** A file as it is sent. */
export interface OpenedFile {
  name: string
  content: Buffer
}

/** What holds for the turn of one message alone. */
export interface MessageOptions {
  model?: string
  allowedTools?: string[]
  timeoutMs?: number
  /** The session that whoever asked wanted to go on in. */
  sessionId?: string
  /** What whoever asked wants to find again: with the run, in the request to the agent, in hooks. */
  metadata?: Record<string, string>
  /** A name for the stream of its events. */
  streamId?: string
  /** Of the project it was asked of: another that has its id since is none of its. */
  projectInstance?: string
  /** A command to run instead of an agent: an executable and its arguments. */
  command?: string[]
  /** In a session that is not the conversation's: `own` begins one for this turn alone, `idle` goes on in the
   *  conversation's without counting as a use of it. */
  session?: 'own' | 'idle'
  /** The conversation goes on in a new session from here. */
  beginsSession?: true
  /** Where it is done, when not where the conversation works. */
  projectId?: string
  /** The cron job that it is of, by its name. */
  job?: string
  /** The one like it before failed, too: the person knows, and is not told again. */
  isKnownToFail?: boolean
  /** What a command template of the operator may name. */
  variables?: MessageVariables
}

/** Of a message, under the names that command templates have for them. */
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
  /** The platform's id of the message, unique in its channel; one that comes again under it is answered once. */
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
  /** How many messages come before it in its conversation. */
  position: number
  /** For the person, as that a file was not taken. */
  notes: string[]
  /** The message whose turn ends for it. */
  interrupts?: string
}

export type Acceptance =
  | AcceptedMessage
  | { status: 'duplicate'; messageId: string; conversationId: string }
  /** The reason goes to the person as a reply, too. */
  | { status: 'refused'; messageId: string; conversationId: string; reason: string }

/** What an answer names to be sent with it. Whether it may be sent is decided when it is opened or fetched. */
export type OutgoingFile = OutgoingPath | OutgoingUrl

export interface OutgoingPath {
  /** As the agent wrote it; a relative one begins at the directory. */
  path: string
  /** Where the agent worked: what is outside of it is sent only from directories that the operator has named. */
  directory: string
}

export interface OutgoingUrl {
  url: string
}

/** What a person is told. */
export interface Reply {
  /** The agent's answer, or why there is none. */
  text: string
  /** What the gateway adds, such as that the session was lost; a sentence each. */
  notes: string[]
  isError: boolean
  files?: OutgoingFile[]
  /** The message failed and may be taken up again. */
  canRetry?: true
  /** When the message it waits with is taken up, in milliseconds since the epoch. */
  waitsUntil?: number
  /** It asks whether an agent may do something; a channel that has buttons offers the answers. */
  question?: Question
  /** Who is spoken to; left out, who wrote the message that is answered. */
  author?: string
}

export interface Question {
  /** Of the approval that it is about. */
  id: string
  /** Whether exactly this can be allowed for the future, too. */
  canRemember: boolean
}

/** A question that needs no answer any more. */
export interface EndedQuestion {
  id: string
  address: string
  /** What takes its place. */
  text: string
}

export interface OutgoingReply extends Reply {
  /** The same for every attempt: a reply that was sent under it must not be shown again. */
  idempotencyKey: string
  address: string
  /** The message it answers, by our id and by the platform's. */
  messageId?: string
  platformId?: string
  createdAt: number
  /** From 1. A later one may come after an earlier one that reached the platform. */
  attempt: number
}

/** What an agent is doing now. It may be shown or not; the reply comes in any case. */
export interface LiveEvent {
  address: string
  messageId: string
  /** The platform's id of the message. */
  platformId: string
  runId: string
  /** From 1, without gaps within the run. */
  seq: number
  event: AgentEvent
}

/** A command, for platforms that show them to people. */
export interface CommandDescription {
  name: string
  meaning: string
  argument?: { name: string; meaning: string; isRequired: boolean; hasSuggestions: boolean }
  /** It changes nothing: the answer is for who asked. */
  isQuestion: boolean
}

/** A choice that is offered while a person types a command. */
export interface Suggestion {
  /** What is shown. */
  label: string
  value: string
}

/** What a channel may ask of the gateway. */
export interface ChannelHost {
  /** Contract: when it settles, the message is safe, or the reason why not is on its way. It rejects when neither is. */
  onMessage(message: ChannelMessage): Promise<Acceptance>
  /** Whether a message came under this id before. */
  isKnown(platformId: string): Promise<boolean>
  /** The person has changed a message. `late` when an agent has begun with it. */
  onEdit(message: ChannelMessage): Promise<'changed' | 'late' | 'unknown'>
  /** The person has taken a message back; it is left out unless an agent has begun with it. */
  onDelete(platformId: string): Promise<void>
  commands(): CommandDescription[]
  /** Whether a line is a command and not for the agent. */
  isCommand(line: string): boolean
  /** A line such as `/stop`; the answer is for the person. */
  onCommand(place: Place, author: string, line: string): Promise<string>
  /** What could stand after a command, of which the person has typed `typed`. */
  suggest(place: Place, command: string, typed: string): Promise<Suggestion[]>
  /** Ends the turn of one message, takes up one that failed, or answers a question; the answer is for the person. `id`
   *  is that of the message or of the question. */
  onButton(action: ButtonAction, id: string, author: string): Promise<string>
  /** Says something that answers no message. Contract: when it settles, it is on its way as safely as a reply. With a key
   *  it is said once, on any gateway: the key is claimed in the same step. */
  say(place: Place, text: string, author?: string, key?: string): Promise<void>
  /** Opens or fetches what an answer names. Contract: rejects with a sentence for the person when it cannot or must not
   *  be sent. */
  openFile(file: OutgoingFile, maxBytes: number, signal: AbortSignal): Promise<OpenedFile>
  /** Where a file that an answer names is on this machine. Contract: rejects as `openFile` does. */
  locateFile(file: OutgoingPath): Promise<string>
  /** The platform says, after it took a reply, that it could not be delivered, and why. */
  onUndelivered(idempotencyKey: string, problem: string): Promise<void>
  /** Whether nobody has had this yet, on any gateway: for what must be done once and is no message. */
  claim(key: string): Promise<boolean>
  isClaimed(key: string): Promise<boolean>
  /** A value that outlives the gateway. */
  recall(key: string): Promise<string | undefined>
  remember(key: string, value: string): Promise<void>
  /** The conversations of this channel in which something happened since then. */
  addresses(since: number): Promise<string[]>
}

export const BUTTON_ACTIONS = ['stop', 'retry', 'allow', 'always', 'deny'] as const

export type ButtonAction = (typeof BUTTON_ACTIONS)[number]

/** A request of the platform to us. Contract: whether it really comes from there, only the channel finds out. */
export interface PlatformRequest {
  /** The path below that of the endpoint, without a slash before it. */
  rest: string
  /** As it stands after the question mark. */
  query: string
  headers: Readonly<Record<string, string | undefined>>
  body: Buffer
}

export interface PlatformResponse {
  status: number
  headers?: Record<string, string>
  body?: string | Buffer
}

/** What a platform calls at our public address. */
export interface PlatformEndpoint {
  method: 'GET' | 'POST'
  /** Begins with a slash; everything below it comes here, too. */
  path: string
  /** A larger body is refused before it is read. */
  maxBytes: number
  handle(request: PlatformRequest): Promise<PlatformResponse>
}

export interface Channel {
  readonly name: string
  /** Served by the HTTP server under the public URL, without a token. */
  readonly endpoints?: PlatformEndpoint[]
  /** Whether files can go with a reply, or are shown with it. */
  readonly takesFiles?: boolean
  /** Contract: rejects only for what the operator must put right; what passes by itself is waited for. */
  start(host: ChannelHost): Promise<void>
  /** Contract: resolves when the platform has taken it; a rejection is tried again until the reply expires, unless it is
   *  `undeliverable`: then nothing helps. */
  send(reply: OutgoingReply, signal: AbortSignal): Promise<void>
  /** Contract: returns at once and never throws. */
  show?(event: LiveEvent): void
  /** The message was taken out or stopped, and gets no answer. Contract: returns at once and never throws. */
  forget?(address: string, messageId: string): void
  /** Shows that a question has ended. Contract: one that is not to be found is as good as ended; a rejection is tried
   *  again. */
  endQuestion?(question: EndedQuestion): Promise<void>
  /** Takes nothing more in. `send` still works until `close`. */
  stop(): Promise<void>
  close(): Promise<void>
}
