// Shared by agents that speak JSON-RPC, and whose single process takes the turns of several sessions.

import { deferred, Lanes } from '../../../core/async.js'
import type { Approve } from '../../types.js'
import { isObject, type JsonObject } from '../jsonl.js'
import type { Translation } from '../translation.js'
import type { Turn } from '../turn.js'
import type { Send, WarmConnection, WarmTurn } from './types.js'

/** A turn that may have to wait or be prepared before the agent gets the prompt. */
export abstract class SharedTurn implements WarmTurn {
  isInterrupted = false
  /** Aborted when approvals are no longer needed. */
  protected readonly over = new AbortController()
  readonly #done = deferred()
  readonly done = this.#done.promise
  #isPrompted = false

  constructor(
    readonly turn: Turn,
    readonly translation: Translation,
    protected readonly rpc: Rpc,
    protected readonly approve?: Approve,
  ) {}

  get isPending(): boolean {
    return !this.#isPrompted
  }

  /** Returns whether the prompt may still be sent. From then on, an interrupt goes to the agent. */
  mayPrompt(): boolean {
    this.#isPrompted = !this.isInterrupted
    return this.#isPrompted
  }

  /** A turn that the agent knows nothing about ends at once. */
  interrupt(): void {
    this.isInterrupted = true
    if (this.#isPrompted) this.stop()
    else this.finish()
  }

  finish(): void {
    this.#done.resolve()
  }

  /** Reports why the turn could not run. */
  abstract fail(error: unknown): void

  protected abstract stop(): void
}

/** Runs the turns of all sessions, one at a time in each. */
export abstract class SharedConnection<OneTurn extends SharedTurn> implements WarmConnection {
  abstract readonly ready: Promise<void>
  protected readonly rpc: Rpc
  /** Running turns, by session id. */
  protected readonly turns = new Map<string, OneTurn>()
  readonly #lanes = new Lanes()

  constructor(send: Send, frame: JsonObject = {}) {
    this.rpc = new Rpc(send, this, frame)
  }

  abstract ping(): Promise<void>
  abstract onNotification(method: string, params: JsonObject): void
  /** Answers a request of the agent; without an answer it gets a "not supported" error. */
  abstract onRequest(method: string, params: JsonObject): Promise<JsonObject | undefined>

  receive(message: JsonObject): void {
    this.rpc.receive(message)
  }

  begin(turn: Turn, translation: Translation, approve?: Approve): WarmTurn {
    const warm = this.newTurn(turn, translation, approve)
    void this.#run(warm)
    return warm
  }

  /** Contract: never rejects. */
  async #run(warm: OneTurn): Promise<void> {
    try {
      const id = warm.turn.sessionId?.toLowerCase() ?? (await this.open(warm.turn)).id
      await this.#lanes.run(id, () => this.talk(id, warm))
    } catch (error) {
      warm.fail(error)
    }
    warm.finish()
  }

  protected abstract newTurn(turn: Turn, translation: Translation, approve?: Approve): OneTurn
  /** Opens a new session for a turn that names none, or a stored one by its id. */
  protected abstract open(turn: Turn, id?: string): Promise<{ id: string }>
  /** Runs a turn of that session to its end. */
  protected abstract talk(id: string, warm: OneTurn): Promise<void>
}

/** An error response. */
export class RpcError extends Error {
  override readonly name = 'RpcError'

  constructor(
    message: string,
    readonly code: unknown,
  ) {
    super(message)
  }
}

interface Waiting {
  resolve(result: JsonObject): void
  reject(error: RpcError): void
}

/** Requests and responses as lines of JSON, in JSON-RPC 2.0 and similar protocols. */
class Rpc {
  #waiting = new Map<unknown, Waiting>()
  #requestCount = 0

  /** `frame` is merged into every message. */
  constructor(
    private readonly send: Send,
    private readonly listener: Pick<SharedConnection<SharedTurn>, 'onNotification' | 'onRequest'>,
    private readonly frame: JsonObject,
  ) {}

  /** Contract: rejects with an `RpcError`, and never settles if the other side never answers. */
  request(method: string, params: JsonObject = {}): Promise<JsonObject> {
    this.#requestCount += 1
    const id = this.#requestCount
    this.send({ ...this.frame, id, method, params })
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  /** Settles when the other side has answered, even with an error. */
  async ask(method: string): Promise<void> {
    await this.request(method).catch(() => {}) // A refusal is an answer.
  }

  notify(method: string, params: JsonObject = {}): void {
    this.send({ ...this.frame, method, params })
  }

  receive({ id, method, params, result, error }: JsonObject): void {
    if (typeof method !== 'string') return this.#settle(id, result, error)
    const given = isObject(params) ? params : {}
    if (id === undefined) return this.listener.onNotification(method, given)
    void this.#respond(id, method, given)
  }

  /** Always sends a response, since the other side waits for it. Contract: never rejects. */
  async #respond(id: unknown, method: string, params: JsonObject): Promise<void> {
    const answer = await this.listener.onRequest(method, params).catch(() => {})
    this.send({ ...this.frame, id, ...(answer ? { result: answer } : { error: NOT_SUPPORTED }) })
  }

  #settle(id: unknown, result: unknown, error: unknown): void {
    const waiting = this.#waiting.get(id)
    if (!waiting) return
    this.#waiting.delete(id)
    if (isObject(error)) waiting.reject(new RpcError(sentenceOf(error), error['code']))
    else waiting.resolve(isObject(result) ? result : {})
  }
}

const NOT_SUPPORTED = { code: -32_601, message: 'Not supported' }

/** Gemini CLI puts the cause into the details of an "Internal error", followed by lines on where it looked. */
function sentenceOf({ message, data }: JsonObject): string {
  const details = isObject(data) ? data['details'] : undefined
  if (typeof details === 'string') return details.split('\n', 1)[0] ?? ''
  return typeof message === 'string' ? message : 'No reason was given.'
}
