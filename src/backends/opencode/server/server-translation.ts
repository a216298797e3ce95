// Wire types captured from the events of `opencode serve`, 1.18.33; see test/fixtures/opencode-server.
//
// Traps that a careless edit would fall into:
// - The prompt comes back as a message of its own. What an older turn left behind still arrives after the new prompt. So
//   the turn begins with the part that we named ourselves, and only messages made after it belong to it.
// - Text comes as deltas and once more whole. A delta does not say where it belongs: after a gap it counts only for parts
//   whose state was told on the same connection; the rest of the others comes when they are whole.
// - Everything may be told twice, by an event and by what is read after a gap.
// - A further prompt of the turn is answered after what is under way, mostly before the session is idle, but one that came
//   just then after it: the turn is not over before its last prompt is answered.

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
  /** The prompt that it answers. */
  parentID?: string
  /** A summary of the conversation so far, for the model alone. */
  summary?: unknown
  /** Why the model has ended it. */
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
  /** How much of it was told. OpenCode takes blanks away from the end when all is written. */
  told: number
  /** Whether the next delta continues it. */
  isCurrent: boolean
  isWhole: boolean
}

/** Nothing in them for whoever waits for an answer. */
const NOISE = new Set([
  ...['session.created', 'session.updated', 'session.diff', 'session.deleted', 'session.compacted'],
  ...['message.removed', 'message.part.removed', 'todo.updated', 'command.executed', 'file.edited', 'sync'],
  ...['permission.asked', 'permission.replied', 'question.asked', 'question.replied', 'question.rejected'],
  'server.heartbeat',
])

/** With these the agent is done. */
const LAST_WORDS = ['stop', 'length']

export class ServerTranslation extends OpenCodeTranslation {
  /** Whether the session does nothing, as it was told last. */
  isIdle = false
  /** Tools that are at work. */
  readonly openTools = new Set<string>()
  /** When the server had taken the prompt. */
  #begunAt: number | undefined
  #userMessages = new Map<string, MessageInfo>()
  /** The last further prompt, by the id of its part, and its message when the server has taken it. */
  #further: { partId: string; messageId?: string } | undefined
  /** Those of the agent in this turn. */
  #messages = new Map<string, MessageInfo>()
  #parts = new Map<string, TextState>()
  /** The parts with what was said since the last round of tools. */
  #said: string[] = []
  #speaking: string | undefined
  #tools = new Map<string, ToolPart>()
  #finishedTools = new Set<string>()
  #steps = new Set<string>()
  #attempt = 0
  /** Of this turn, if it never begins; of an older one otherwise. */
  #earlyError: OpenCodeError | undefined

  constructor(
    emit: (event: AgentEventBody) => void,
    turn: Turn,
    /** The id that the prompt was sent with. */
    private readonly promptId: string,
  ) {
    super(emit, turn)
  }

  get hasBegun(): boolean {
    return this.#begunAt !== undefined
  }

  /** Whether the last message of the agent will not change any more. */
  get isAnswered(): boolean {
    const last = [...this.#messages.values()].at(-1)
    return last?.time.completed !== undefined
  }

  /** Whether the last prompt is yet to be answered. */
  get isOwing(): boolean {
    if (!this.#further || this.verdict?.isError) return false
    const { messageId } = this.#further
    const last = [...this.#messages.values()].at(-1)
    const isAnswer = messageId !== undefined && last?.parentID === messageId && last.finish !== 'tool-calls'
    return !isAnswer || last.time.completed === undefined
  }

  /** Whether further prompts would be told of as this one was. */
  get takesPrompts(): boolean {
    return this.#begunAt !== undefined && this.#begunAt > 0
  }

  /** A further prompt is sent, with this id. Returns what to call when the server has not taken it. */
  expect(partId: string): () => void {
    const before = this.#further
    this.#further = { partId }
    return () => {
      this.#further = before
    }
  }

  /** Something went wrong, and it may be that the turn will never begin. */
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
    this.inSession(sessionId)
  }

  event({ type, properties }: ServerEvent): void {
    this.accept({ ...properties, type })
  }

  /** Events are missing: what was being written may have gone on. */
  interrupt(): void {
    for (const state of this.#parts.values()) state.isCurrent = false
  }

  /** What was read of the session, in place of events that were missed. */
  readAgain(messages: SessionMessage[], status: SessionStatus | undefined): void {
    for (const message of messages) this.#read(message)
    this.accept({ type: 'session.status', status: status ?? { type: 'idle' } })
  }

  /** What the server answers to the prompt, in place of events that are still to come. Whether nothing else can come:
   *  it is an answer in words alone, and the events have got as far as its beginning. */
  takeAnswer(message: SessionMessage): boolean {
    if (!isObject(message) || !isObject(message.info) || !Array.isArray(message.parts)) return false
    const info = message.info as unknown as MessageInfo
    const isLast = this.#tools.size === 0 && info.id === [...this.#messages.keys()].at(-1)
    if (!isLast || info.error || info.summary || !LAST_WORDS.includes(info.finish ?? '')) return false
    if (message.parts.some(({ type }) => type === 'tool')) return false
    this.#read(message)
    return this.isAnswered && this.verdict?.isError === false
  }

  protected translate(event: JsonObject): void {
    switch (event['type']) {
      case 'message.updated':
        return isObject(event['info'])
          ? this.#message(event['info'] as unknown as MessageInfo)
          : this.#documentText(event)
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
      // The names of the service document.
      case 'message.created':
        return this.#documentText(event)
      case 'tool.started':
      case 'tool.completed':
        return this.#documentTool(event)
      case 'session.completed':
        this.isIdle = true
        if (!this.verdict) this.succeeded(this.#answer().join('\n\n'))
        return
      case 'error':
        return this.#failure(documentError(event))
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
    const isBehind = part.text.length < state.told && !state.isWhole
    // What was read is of another moment than the events around it.
    state.isCurrent = !isBehind && !isRead
    if (isBehind) return
    const rest = part.text.slice(state.told)
    state.text = part.text
    this.#tell(part.id, state, rest)
  }

  #newText(id: string, kind: TextState['kind']): TextState {
    const state = { kind, text: '', told: 0, isCurrent: true, isWhole: false }
    this.#parts.set(id, state)
    if (kind === 'text') this.#said.push(id)
    return state
  }

  #delta({ partID = '', field, delta = '' }: { partID?: string; field?: string; delta?: string }): void {
    const state = this.#parts.get(partID)
    if (!state?.isCurrent || state.isWhole || field !== 'text') return
    state.text += delta
    this.#tell(partID, state, delta)
  }

  #tell(partId: string, state: TextState, text: string): void {
    state.told += text.length
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
    // A summary is no answer; the turn goes on after it.
    if (message.summary) this.spend(part)
    else if (this.stepFinish(part, this.#answer())) this.#said = []
  }

  #status(status: SessionStatus): void {
    this.isIdle = status.type === 'idle'
    if (status.type !== 'retry' || status.attempt === this.#attempt) return
    this.#attempt = status.attempt
    this.complained(`${status.message} (OpenCode tries again, attempt ${status.attempt})`)
  }

  #sessionError(error: OpenCodeError): void {
    if (this.hasBegun) this.#failure(error)
    else this.#earlyError ??= error
  }

  /** The first one stands: what follows only repeats it, at greater length. */
  #failure(error: OpenCodeError): void {
    if (this.verdict?.isError) return
    if (error.name === 'MessageAbortedError') this.failed('The turn was aborted on the server.', 'cancelled')
    else this.error(error)
  }

  #documentText({ id, messageID, role, text, content }: JsonObject): void {
    if (role === 'user') return
    this.#documentBegin()
    this.#text({ id: `document-${String(id ?? messageID)}`, type: 'text', text: (text ?? content) as string }, false)
  }

  #documentTool({ type, id, callID, tool, name, input, output, error }: JsonObject): void {
    this.#documentBegin()
    const state = {
      status: type === 'tool.started' ? 'running' : error === undefined ? 'completed' : 'error',
      input: isObject(input) ? input : {},
      ...(output !== undefined && { output: output as string }),
      ...(error !== undefined && { error: error as string }),
    }
    this.#tool({ callID: (id ?? callID) as string, tool: (tool ?? name) as string, state })
  }

  #documentBegin(): void {
    if (this.hasBegun) return
    this.#begunAt = 0
    this.started(this.sessionId)
  }
}

function documentError({ error, message }: JsonObject): OpenCodeError {
  if (isObject(error)) return typeof error['message'] === 'string' ? { data: { message: error['message'] } } : error
  const text = message ?? error
  return typeof text === 'string' ? { data: { message: text } } : {}
}
