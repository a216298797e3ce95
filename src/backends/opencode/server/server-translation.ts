// Wire types captured from the events of `opencode serve`, 1.18.33; see test/fixtures/opencode-server.
//
// Traps:
// - The prompt is echoed as a message. Events of an earlier turn may still arrive after the new prompt. So the turn begins
//   with the part whose id we chose, and only messages created after it belong to it.
// - Text arrives as deltas and then again in full. A delta has no position: after a gap it counts only for parts whose
//   state came over the same connection; the rest of the others arrives with their full text.
// - Everything may arrive twice, as an event and in what is read after a gap.
// - A further prompt of the turn is answered after the current work, usually before the session is idle, but one that just
//   missed it only afterwards: the turn is not over until its last prompt is answered.

import { isObject, type JsonObject } from '../../engine/jsonl.js'
import { type OpenCodeError, OpenCodeTranslation, type StepFinish, type ToolPart } from '../format.js'
import type { Turn } from '../../engine/turn.js'
import type { AgentEventBody } from '../../types.js'
import type { SessionMessage, SessionStatus } from './client.js'
import type { ServerEvent } from './event-stream.js'

interface MessageInfo {
  id: string
  role: string
  time: { created: number; completed?: number }
  /** The prompt it answers. */
  parentID?: string
  /** Set for a summary of the conversation, which is only for the model. */
  summary?: unknown
  /** Why the model stopped. */
  finish?: string
  model?: { providerID: string; modelID: string }
  error?: OpenCodeError
}

type Part = { id: string; messageID: string } & (
  | { type: 'text'; text: string; time?: { end?: number }; ignored?: boolean }
  | { type: 'reasoning'; text: string; time?: { end?: number } }
  | ({ type: 'tool' } & ToolPart)
  | ({ type: 'step-finish' } & StepFinish)
  | { type: 'step-start' | 'snapshot' | 'patch' | 'file' | 'agent' | 'retry' | 'subtask' | 'compaction' }
)

interface TextState {
  kind: 'text' | 'reasoning'
  text: string
  /** How much of it was emitted. OpenCode trims trailing blanks from the full text. */
  emitted: number
  /** Whether the next delta continues it. */
  isCurrent: boolean
  isWhole: boolean
}

/** Irrelevant to the turn. */
const NOISE = new Set([
  ...['session.created', 'session.updated', 'session.diff', 'session.deleted', 'session.compacted'],
  ...['message.removed', 'message.part.removed', 'todo.updated', 'command.executed', 'file.edited', 'sync'],
  ...['permission.asked', 'permission.replied', 'question.asked', 'question.replied', 'question.rejected'],
  'server.heartbeat',
])

/** Finish reasons with which the agent is done. */
const LAST_WORDS = ['stop', 'length']

export class ServerTranslation extends OpenCodeTranslation {
  /** Whether the session is idle, according to the latest status. */
  isIdle = false
  /** Running tools. */
  readonly openTools = new Set<string>()
  /** When the server accepted the prompt. */
  #begunAt: number | undefined
  #userMessages = new Map<string, MessageInfo>()
  /** The last further prompt, by its part id, and its message once the server has accepted it. */
  #further: { partId: string; messageId?: string } | undefined
  /** The agent's messages in this turn. */
  #messages = new Map<string, MessageInfo>()
  #parts = new Map<string, TextState>()
  /** The text parts since the last round of tools. */
  #said: string[] = []
  #speaking: string | undefined
  #tools = new Map<string, ToolPart>()
  #finishedTools = new Set<string>()
  #steps = new Set<string>()
  #attempt = 0
  /** Belongs to this turn if it never begins, otherwise to an earlier one. */
  #earlyError: OpenCodeError | undefined

  constructor(
    emit: (event: AgentEventBody) => void,
    turn: Turn,
    /** The part id of the prompt. */
    private readonly promptId: string,
  ) {
    super(emit, turn)
  }

  get hasBegun(): boolean {
    return this.#begunAt !== undefined
  }

  /** Whether the agent's last message is complete. */
  get isAnswered(): boolean {
    const last = [...this.#messages.values()].at(-1)
    return last?.time.completed !== undefined
  }

  /** Whether the last prompt has yet to be answered. */
  get owesAnswer(): boolean {
    if (!this.#further || this.verdict?.isError) return false
    const { messageId } = this.#further
    const last = [...this.#messages.values()].at(-1)
    const isAnswer = messageId !== undefined && last?.parentID === messageId && last.finish !== 'tool-calls'
    return !isAnswer || last.time.completed === undefined
  }

  /** Whether the server would echo further prompts as it did this one. */
  get takesPrompts(): boolean {
    return this.#begunAt !== undefined && this.#begunAt > 0
  }

  /** Announces a further prompt with this id. Returns a function to call if the server does not accept it. */
  expect(partId: string): () => void {
    const before = this.#further
    this.#further = { partId }
    return () => {
      this.#further = before
    }
  }

  /** An error occurred after which the turn may never begin. */
  get isDoubtful(): boolean {
    return this.#earlyError !== undefined
  }

  /** The turn will never begin. */
  giveUp(): void {
    if (this.#earlyError) this.#failure(this.#earlyError)
  }

  toolOf(callId: string): { toolName: string; toolInput: Record<string, unknown> } | undefined {
    const part = this.#tools.get(callId)
    return part && { toolName: part.tool, toolInput: part.state.input }
  }

  enter(sessionId: string): void {
    this.setSession(sessionId)
  }

  event({ type, properties }: ServerEvent): void {
    this.accept({ ...properties, type })
  }

  /** Events are missing: texts in progress may have grown. */
  interrupt(): void {
    for (const state of this.#parts.values()) state.isCurrent = false
  }

  /** Takes the session's messages in place of missed events. */
  readAgain(messages: SessionMessage[], status: SessionStatus | undefined): void {
    for (const message of messages) this.#read(message)
    this.accept({ type: 'session.status', status: status ?? { type: 'idle' } })
  }

  /** Takes the response to the prompt in place of events still to come. Returns whether that is the end: it has only text,
   *  and the events have already announced the message. */
  takeAnswer(message: SessionMessage): boolean {
    if (!isObject(message) || !isObject(message.info) || !Array.isArray(message.parts)) return false
    const info = message.info as unknown as MessageInfo
    const isLast = this.#tools.size === 0 && info.id === [...this.#messages.keys()].at(-1)
    if (!isLast || info.error || info.summary || !LAST_WORDS.includes(info.finish ?? '')) return false
    if (message.parts.some(({ type }) => type === 'tool')) return false
    this.#read(message)
    return this.isAnswered && this.verdict?.isError === false
  }

  /** Takes the messages that a compaction has added to the session. */
  takeSummary(messages: SessionMessage[]): void {
    this.started(this.sessionId)
    const summary = messages.findLast(({ info }) => (info as unknown as MessageInfo).summary)
    for (const part of (summary?.parts ?? []) as Part[]) if (part.type === 'step-finish') this.spend(part)
    const { error } = (summary?.info ?? {}) as Partial<MessageInfo>
    if (error) this.#failure(error)
    else this.succeeded(messages.length === 0 ? 'There is nothing to compact.' : '')
  }

  protected translate(event: JsonObject): void {
    switch (event['type']) {
      case 'message.updated':
        return isObject(event['info']) ? this.#message(event['info'] as unknown as MessageInfo) : this.#plainText(event)
      case 'message.part.updated':
        return this.#part(event['part'] as Part, event['isRead'] === true)
      case 'message.part.delta':
        return this.#delta(event)
      case 'session.status':
        return this.#status(event['status'] as SessionStatus)
      case 'session.idle':
        this.isIdle = true
        return
      case 'session.error':
        return this.#sessionError(event['error'] ?? {})
      // Alternative names for the same events.
      case 'message.created':
        return this.#plainText(event)
      case 'tool.started':
      case 'tool.completed':
        return this.#plainTool(event)
      case 'session.completed':
        this.isIdle = true
        if (!this.verdict) this.succeeded(this.#answer().join('\n\n'))
        return
      case 'error':
        return this.#failure(plainError(event))
      default:
        if (!NOISE.has(String(event['type'])) && !String(event['type']).startsWith('session.next.')) {
          this.unknown(event['type'])
        }
    }
  }

  #read({ info, parts }: SessionMessage): void {
    this.accept({ type: 'message.updated', info })
    for (const part of parts) this.accept({ type: 'message.part.updated', part, isRead: true })
  }

  #message(info: MessageInfo): void {
    if (info.role === 'user') {
      if (!this.hasBegun) this.#userMessages.set(info.id, info)
      return
    }
    if (this.#begunAt === undefined || info.time.created < this.#begunAt) return
    this.#messages.set(info.id, info)
    if (info.error) this.#failure(info.error)
  }

  #part(part: Part, isRead: boolean): void {
    if (part.id === this.promptId) return this.#begin(part.messageID)
    if (part.id === this.#further?.partId) {
      this.#further.messageId = part.messageID
      return
    }
    const message = this.#messages.get(part.messageID)
    if (!message) return
    switch (part.type) {
      case 'text':
        if (!part.ignored && !message.summary) this.#text(part, isRead)
        return
      case 'reasoning':
        return this.#text(part, isRead)
      case 'tool':
        return this.#tool(part)
      case 'step-finish':
        return this.#step(part, message)
      default:
    }
  }

  #begin(messageId: string): void {
    const info = this.#userMessages.get(messageId)
    if (this.hasBegun || !info) return
    this.#begunAt = info.time.created
    this.#earlyError = undefined
    this.#userMessages.clear()
    this.started(this.sessionId, info.model && `${info.model.providerID}/${info.model.modelID}`)
  }

  #text(part: Pick<Extract<Part, { text: string }>, 'id' | 'type' | 'text' | 'time'>, isRead: boolean): void {
    const state = this.#parts.get(part.id) ?? this.#newText(part.id, part.type)
    if (state.isWhole) return
    state.isWhole = part.time?.end !== undefined
    const isBehind = part.text.length < state.emitted && !state.isWhole
    // A message that was read is from another moment than the events around it.
    state.isCurrent = !isBehind && !isRead
    if (isBehind) return
    const rest = part.text.slice(state.emitted)
    state.text = part.text
    this.#emitText(part.id, state, rest)
  }

  #newText(id: string, kind: TextState['kind']): TextState {
    const state = { kind, text: '', emitted: 0, isCurrent: true, isWhole: false }
    this.#parts.set(id, state)
    if (kind === 'text') this.#said.push(id)
    return state
  }

  #delta({ partID = '', field, delta = '' }: { partID?: string; field?: string; delta?: string }): void {
    const state = this.#parts.get(partID)
    if (!state?.isCurrent || state.isWhole || field !== 'text') return
    state.text += delta
    this.#emitText(partID, state, delta)
  }

  #emitText(partId: string, state: TextState, text: string): void {
    state.emitted += text.length
    if (state.kind === 'reasoning') return this.thinking(text)
    if (text === '') return
    if (this.#speaking !== partId) this.endText()
    this.#speaking = partId
    this.output(text)
  }

  #answer(): string[] {
    return this.#said.map((id) => this.#parts.get(id)?.text ?? '').filter((text) => text !== '')
  }

  #tool(part: ToolPart): void {
    const { callID, state } = part
    if (this.#finishedTools.has(callID) || state.status === 'pending') return
    if (!this.#tools.has(callID)) this.toolCall(part)
    this.#tools.set(callID, part)
    this.openTools.add(callID)
    if (state.status === 'running') return
    this.openTools.delete(callID)
    this.#finishedTools.add(callID)
    this.toolEnd(part)
  }

  #step(part: Extract<Part, { type: 'step-finish' }>, message: MessageInfo): void {
    if (this.#steps.has(part.id)) return
    this.#steps.add(part.id)
    this.#attempt = 0
    // A summary is not an answer; the turn continues after it.
    if (message.summary) this.spend(part)
    else if (this.stepFinish(part, this.#answer())) this.#said = []
  }

  #status(status: SessionStatus): void {
    this.isIdle = status.type === 'idle'
    if (status.type !== 'retry' || status.attempt === this.#attempt) return
    this.#attempt = status.attempt
    this.reportProblem(`${status.message} (OpenCode is retrying, attempt ${status.attempt})`)
  }

  #sessionError(error: OpenCodeError): void {
    if (this.hasBegun) this.#failure(error)
    else this.#earlyError ??= error
  }

  /** The first one wins: later ones only repeat it at greater length. */
  #failure(error: OpenCodeError): void {
    if (this.verdict?.isError) return
    if (error.name === 'MessageAbortedError') this.failed('The turn was aborted on the server.', 'cancelled')
    else this.error(error)
  }

  #plainText({ id, messageID, role, text, content }: JsonObject): void {
    if (role === 'user') return
    this.#plainBegin()
    this.#text({ id: `plain-${String(id ?? messageID)}`, type: 'text', text: (text ?? content) as string }, false)
  }

  #plainTool({ type, id, callID, tool, name, input, output, error }: JsonObject): void {
    this.#plainBegin()
    const state = {
      status: type === 'tool.started' ? 'running' : error === undefined ? 'completed' : 'error',
      input: isObject(input) ? input : {},
      ...(output !== undefined && { output: output as string }),
      ...(error !== undefined && { error: error as string }),
    }
    this.#tool({ callID: (id ?? callID) as string, tool: (tool ?? name) as string, state })
  }

  #plainBegin(): void {
    if (this.hasBegun) return
    this.#begunAt = 0
    this.started(this.sessionId)
  }
}

function plainError({ error, message }: JsonObject): OpenCodeError {
  if (isObject(error)) return typeof error['message'] === 'string' ? { data: { message: error['message'] } } : error
  const text = message ?? error
  return typeof text === 'string' ? { data: { message: text } } : {}
}
