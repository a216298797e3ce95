// Gemini CLI as a warm process. Wire types captured from `gemini --acp`, CLI 0.61.0; see test/fixtures/gemini/live-*.jsonl and
// docs/backends/gemini.md. Its updates are converted to lines of `-o stream-json` for the one-shot translation.
//
// Traps:
// - A prompt to a busy session cancels the running one, so turns of a session wait for each other.
// - `session/load` replays the whole history as if it were new; the replay ends with `available_commands_update`.
// - Loading a session in the minute in which it began empties its file: the CLI mistakes it for the file of a new session.
// - A turn that breaks off after using a tool leaves a call without a result in the session's memory, and the model server
//   refuses the session from then on. The file is intact, so the session is reloaded.
// - Instructions are read from GEMINI.md when a session is opened or refreshed; all sessions share the file.

import { wait } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import { isObject, type JsonObject } from '../engine/jsonl.js'
import type { Place } from '../engine/place.js'
import type { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import { RpcError, SharedConnection, SharedTurn } from '../engine/warm/shared-connection.js'
import type { Send, WarmDriver } from '../engine/warm/types.js'
import type { Approve } from '../types.js'
import { changeInstructions, isFreshSession } from './home.js'
import { approvalRequestOf, GeminiLines, type PromptResult, type Update } from './warm-lines.js'

interface OpenedSession {
  sessionId?: string
  models?: { currentModelId?: string }
}

interface Session {
  id: string
  model: string
  defaultModel: string
  /** The system prompt it read last. */
  instructions: string
}

export function geminiWarmDriver(launch: WarmDriver['launch']): WarmDriver {
  return {
    isShared: true,
    canAsk: true,
    oldestKnown: '0.61.0',
    /** A loaded session has the settings of the directory in which the process was started. */
    keyOf: ({ workingDir, isUntrusted, isAsking, allowedTools }) =>
      JSON.stringify({ workingDir, isUntrusted, isAsking, allowedTools }),
    launch,
    connect: (send, place) => new GeminiConnection(send, place),
  }
}

/** How often to check whether the minute in which a session began is over. */
const CHECK_AGAIN_MS = 1_000

/** Everything it reads is on this machine, so it needs no time limit. */
const NEVER_ABORTED = new AbortController().signal

class GeminiConnection extends SharedConnection<GeminiTurn> {
  readonly ready = this.#initialize()
  /** Open sessions, by id. */
  #sessions = new Map<string, Session>()
  /** Called at the end of the replay of a session's history. */
  #replays = new Map<string, () => void>()
  /** Settles when the instructions are no longer being read. */
  #reading: Promise<unknown> = Promise.resolve()

  constructor(
    send: Send,
    private readonly place: Place,
  ) {
    super(send, { jsonrpc: '2.0' })
  }

  /** There is no such method; the error response will do. */
  ping(): Promise<void> {
    return this.rpc.ask('ping')
  }

  protected newTurn(turn: Turn, translation: Translation, approve?: Approve): GeminiTurn {
    return new GeminiTurn(turn, translation, this.rpc, approve)
  }

  async #initialize(): Promise<void> {
    await this.rpc.request('initialize', {
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    })
  }

  protected async talk(id: string, warm: GeminiTurn): Promise<void> {
    if (warm.isInterrupted) return
    const { turn } = warm
    while (!this.#sessions.has(id) && (await isFreshSession(this.place, NEVER_ABORTED, id, new Date()))) {
      // A one-shot process could not ask for approval.
      if (!turn.isAsking) return warm.decline()
      await wait(CHECK_AGAIN_MS)
      if (warm.isInterrupted) return
    }
    const session = this.#sessions.get(id) ?? (await this.open(turn, id))
    const model = turn.model ?? session.defaultModel
    warm.translation.accept({ type: 'init', session_id: id, model })
    if (session.instructions !== turn.systemPrompt) await this.#refresh(session, turn.systemPrompt)
    if (session.model !== model) await this.rpc.request('session/set_model', { sessionId: id, modelId: model })
    session.model = model
    warm.sessionId = id
    if (!warm.mayPrompt()) return
    this.turns.set(id, warm)
    try {
      warm.end(await this.#prompt(id, turn.prompt))
    } finally {
      this.turns.delete(id)
      if (warm.hasBrokenOff) this.#sessions.delete(id)
    }
  }

  protected open({ workingDir, systemPrompt }: Turn, id?: string): Promise<Session> {
    return this.#withInstructions(systemPrompt, async () => {
      const where = { cwd: workingDir, mcpServers: [] }
      const opened: OpenedSession = await (id === undefined
        ? this.rpc.request('session/new', where)
        : this.#load(id, where))
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
      const opened = await this.rpc.request('session/load', { sessionId: id, ...where })
      await replayed
      return opened
    } finally {
      this.#replays.delete(id)
    }
  }

  async #refresh(session: Session, systemPrompt: string): Promise<void> {
    await this.#withInstructions(systemPrompt, () => this.#prompt(session.id, '/memory refresh'))
    session.instructions = systemPrompt
  }

  #prompt(sessionId: string, text: string): Promise<JsonObject> {
    return this.rpc.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
  }

  /** One at a time: all sessions share the file. */
  #withInstructions<Value>(systemPrompt: string, read: () => Promise<Value>): Promise<Value> {
    const reading = this.#reading.then(async () => {
      await changeInstructions(this.place, NEVER_ABORTED, systemPrompt)
      return read()
    })
    this.#reading = reading.catch(() => {}) // Reported to the caller.
    return reading
  }

  onNotification(_method: string, { sessionId, update }: JsonObject): void {
    if (typeof sessionId !== 'string' || !isObject(update)) return
    if (update['sessionUpdate'] === 'available_commands_update') this.#replays.get(sessionId)?.()
    this.turns.get(sessionId)?.receive(update as unknown as Update)
  }

  async onRequest(method: string, { sessionId, options, toolCall }: JsonObject): Promise<JsonObject | undefined> {
    if (method !== 'session/request_permission') return undefined
    const offered = options as Array<{ optionId: string; kind: string }>
    const warm = this.turns.get(String(sessionId))
    const isAllowed = await warm?.mayUse(toolCall as Update)
    const chosen = offered.find(({ kind }) => kind === (isAllowed ? 'allow_once' : 'reject_once'))
    if (!chosen || warm?.isInterrupted !== false) return { outcome: { outcome: 'cancelled' } }
    return { outcome: { outcome: 'selected', optionId: chosen.optionId } }
  }
}

class GeminiTurn extends SharedTurn {
  isDeclined = false
  /** Set before the agent gets the prompt. */
  sessionId = ''
  #lines = new GeminiLines()
  #isAnswered = false

  /** The session's memory is unfit for another turn. */
  get hasBrokenOff(): boolean {
    return this.#lines.hasUsedTools && !this.#isAnswered
  }

  receive(update: Update): void {
    for (const line of this.#lines.of(update)) this.translation.accept(line)
  }

  /** Any tool that is offered, if the turn needs no approvals. */
  async mayUse(toolCall: Update): Promise<boolean> {
    if (!this.approve) return true
    // The CLI reports a tool that needed approval only at its end, and not at all if it was rejected.
    this.receive({ ...toolCall, sessionUpdate: 'tool_call' })
    const answer = await this.approve(approvalRequestOf(toolCall), this.over.signal)
    if (answer.isAllowed || this.isInterrupted) return answer.isAllowed
    const content = [{ type: 'content' as const, content: { type: 'text', text: answer.message } }]
    this.receive({ ...toolCall, sessionUpdate: 'tool_call_update', status: 'failed', content })
    return false
  }

  end(result: PromptResult): void {
    if (this.approve) this.over.abort()
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
    this.fail(new Error('Gemini CLI cannot load a session in the minute in which it began. Try again in a minute.'))
  }

  protected stop(): void {
    this.rpc.notify('session/cancel', { sessionId: this.sessionId })
  }
}
