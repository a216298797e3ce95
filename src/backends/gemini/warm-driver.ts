// Gemini CLI as a warm process. Wire types captured from `gemini --acp`, CLI 0.61.0; see test/fixtures/gemini/live-*.jsonl and
// docs/backends/gemini.md. What it tells is given to the translation of one-shot in the words of `-o stream-json`.
//
// Traps that a careless edit would fall into:
// - A prompt to a busy session cancels the one that runs: turns of a session wait for each other.
// - After `session/load` the whole history comes as if it were said now; it is over with `available_commands_update`.
// - To load a session in the minute in which it began empties its file: the CLI takes that for the file of a new session.
// - A turn that breaks off after it has used a tool leaves a call without a result in the memory of the session, which the
//   model server refuses from then on. The file is right: the session is loaded again.
// - Instructions are read from GEMINI.md when a session is opened or told to; all sessions share the file.

import { wait } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import { changeInstructions, isFreshSession } from './home.js'
import { isObject, type JsonObject } from '../engine/jsonl.js'
import type { Place } from '../engine/place.js'
import type { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { AgentEventBody, Approve } from '../types.js'
import { approvalRequestOf, GeminiLines, type PromptResult, type Update } from './warm-lines.js'
import { Rpc, RpcError } from '../engine/warm/rpc.js'
import { SessionLines, SharedTurn } from '../engine/warm/shared-turn.js'
import type { WarmConnection, WarmDriver, WarmTurn } from '../engine/warm/types.js'

type Send = (message: JsonObject) => void
type Translate = (emit: (event: AgentEventBody) => void, turn: Turn) => Translation

interface Opened {
  sessionId?: string
  models?: { currentModelId?: string }
}

interface Session {
  id: string
  model: string
  defaultModel: string
  /** The system prompt it has read. */
  instructions: string
}

export class GeminiWarmDriver implements WarmDriver {
  readonly isShared = true
  readonly canAsk = true
  readonly oldestKnown = '0.61.0'

  constructor(
    readonly launch: WarmDriver['launch'],
    private readonly translation: Translate,
  ) {}

  /** A session that is loaded has the settings of the directory the process was started in. */
  keyOf({ workingDir, isUntrusted, isAsking, allowedTools }: Turn): string {
    return JSON.stringify({ workingDir, isUntrusted, isAsking, allowedTools })
  }

  connect(send: Send, place: Place): WarmConnection {
    return new GeminiConnection(send, place, this.translation)
  }
}

/** Whether the minute in which a session began is over. */
const LOOK_AGAIN_MS = 1_000

/** What is looked at lies on this machine. */
const NEVER = new AbortController().signal

class GeminiConnection implements WarmConnection {
  readonly ready: Promise<void>
  readonly #rpc: Rpc
  #lines = new SessionLines()
  /** Those that are open, by id. */
  #sessions = new Map<string, Session>()
  /** Those under way, by the id of their session. */
  #turns = new Map<string, GeminiTurn>()
  /** What to do when the history of a session has been told. */
  #replays = new Map<string, () => void>()
  /** Settles when nobody reads the instructions any more. */
  #reading: Promise<unknown> = Promise.resolve()

  constructor(
    send: Send,
    private readonly place: Place,
    private readonly translation: Translate,
  ) {
    const listener = {
      notified: (_method: string, params: JsonObject) => this.#notified(params),
      asked: (method: string, params: JsonObject) => this.#asked(method, params),
    }
    this.#rpc = new Rpc(send, listener, { jsonrpc: '2.0' })
    this.ready = this.#initialize()
  }

  /** It knows no such method, and says so. */
  ping(): Promise<void> {
    return this.#rpc.ask('ping')
  }

  receive(message: JsonObject): void {
    this.#rpc.receive(message)
  }

  begin(turn: Turn, emit: (event: AgentEventBody) => void, approve?: Approve): WarmTurn {
    const warm = new GeminiTurn(turn, this.translation(emit, turn), this.#rpc, approve)
    const open = (): Promise<Session> => this.#open(turn)
    void this.#lines.play(warm, open, (id) => this.#talk(id, warm))
    return warm
  }

  async #initialize(): Promise<void> {
    await this.#rpc.request('initialize', {
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    })
  }

  async #talk(id: string, warm: GeminiTurn): Promise<void> {
    if (warm.isInterrupted) return
    const { turn } = warm
    while (!this.#sessions.has(id) && (await isFreshSession(this.place, NEVER, id, new Date()))) {
      // A process of its own would not ask.
      if (!turn.isAsking) return warm.decline()
      await wait(LOOK_AGAIN_MS)
      if (warm.isInterrupted) return
    }
    const session = this.#sessions.get(id) ?? (await this.#open(turn, id))
    const model = turn.model ?? session.defaultModel
    warm.translation.accept({ type: 'init', session_id: id, model })
    if (session.instructions !== turn.systemPrompt) await this.#refresh(session, turn.systemPrompt)
    if (session.model !== model) await this.#rpc.request('session/set_model', { sessionId: id, modelId: model })
    session.model = model
    warm.sessionId = id
    if (!warm.mayAsk()) return
    this.#turns.set(id, warm)
    try {
      warm.end(await this.#prompt(id, turn.prompt))
    } finally {
      this.#turns.delete(id)
      if (warm.hasBrokenOff) this.#sessions.delete(id)
    }
  }

  /** A new one, or a stored one by its id. */
  #open({ workingDir, systemPrompt }: Turn, id?: string): Promise<Session> {
    return this.#whileReading(systemPrompt, async () => {
      const where = { cwd: workingDir, mcpServers: [] }
      const opened: Opened = await (id === undefined ? this.#rpc.request('session/new', where) : this.#load(id, where))
      const { sessionId = id ?? '', models } = opened
      const model = models?.currentModelId ?? 'auto'
      const session = { id: sessionId, model, defaultModel: model, instructions: systemPrompt }
      this.#sessions.set(sessionId, session)
      return session
    })
  }

  async #load(id: string, where: JsonObject): Promise<JsonObject> {
    const replayed = new Promise<void>((resolve) => this.#replays.set(id, resolve))
    try {
      const opened = await this.#rpc.request('session/load', { sessionId: id, ...where })
      await replayed
      return opened
    } finally {
      this.#replays.delete(id)
    }
  }

  async #refresh(session: Session, systemPrompt: string): Promise<void> {
    await this.#whileReading(systemPrompt, () => this.#prompt(session.id, '/memory refresh'))
    session.instructions = systemPrompt
  }

  #prompt(sessionId: string, text: string): Promise<JsonObject> {
    return this.#rpc.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
  }

  /** One after the other: there is one file for all. */
  #whileReading<Value>(systemPrompt: string, read: () => Promise<Value>): Promise<Value> {
    const reading = this.#reading.then(async () => {
      await changeInstructions(this.place, NEVER, systemPrompt)
      return read()
    })
    this.#reading = reading.catch(() => {}) // Whoever reads hears of it.
    return reading
  }

  #notified({ sessionId, update }: JsonObject): void {
    if (typeof sessionId !== 'string' || !isObject(update)) return
    if (update['sessionUpdate'] === 'available_commands_update') this.#replays.get(sessionId)?.()
    this.#turns.get(sessionId)?.heard(update as unknown as Update)
  }

  async #asked(method: string, { sessionId, options, toolCall }: JsonObject): Promise<JsonObject | undefined> {
    if (method !== 'session/request_permission') return undefined
    const offered = options as Array<{ optionId: string; kind: string }>
    const warm = this.#turns.get(String(sessionId))
    const isAllowed = await warm?.mayUse(toolCall as Update)
    const chosen = offered.find(({ kind }) => kind === (isAllowed ? 'allow_once' : 'reject_once'))
    if (!chosen || warm?.isInterrupted !== false) return { outcome: { outcome: 'cancelled' } }
    return { outcome: { outcome: 'selected', optionId: chosen.optionId } }
  }
}

class GeminiTurn extends SharedTurn {
  isDeclined = false
  /** Known when the agent is asked. */
  sessionId = ''
  #lines = new GeminiLines()
  #isAnswered = false
  #over = new AbortController()

  constructor(
    turn: Turn,
    translation: Translation,
    private readonly rpc: Rpc,
    private readonly approve?: Approve,
  ) {
    super(turn, translation)
  }

  /** The memory of the session is not fit for another turn. */
  get hasBrokenOff(): boolean {
    return this.#lines.hasUsedTools && !this.#isAnswered
  }

  heard(update: Update): void {
    for (const line of this.#lines.of(update)) this.translation.accept(line)
  }

  /** Every tool that is offered, where the turn does not ask. */
  async mayUse(toolCall: Update): Promise<boolean> {
    if (!this.approve) return true
    // Of a tool that is asked about, it tells the end alone, and nothing when it is rejected.
    this.heard({ ...toolCall, sessionUpdate: 'tool_call' })
    const answer = await this.approve(approvalRequestOf(toolCall), this.#over.signal)
    if (answer.isAllowed || this.isInterrupted) return answer.isAllowed
    const content = [{ type: 'content' as const, content: { type: 'text', text: answer.message } }]
    this.heard({ ...toolCall, sessionUpdate: 'tool_call_update', status: 'failed', content })
    return false
  }

  end(result: PromptResult): void {
    this.#over.abort()
    const line = this.#lines.end(result)
    this.#isAnswered = line['status'] === 'success'
    this.translation.accept(line)
  }

  fail(error: unknown): void {
    const status = error instanceof RpcError ? error.code : undefined
    this.translation.accept({ type: 'result', status: 'error', error: { message: messageOf(error), status } })
  }

  decline(): void {
    this.isDeclined = true
    this.fail(new Error('Gemini cannot load a session in the minute in which it began. Try again in a minute.'))
  }

  protected stop(): void {
    this.rpc.notify('session/cancel', { sessionId: this.sessionId })
  }
}
