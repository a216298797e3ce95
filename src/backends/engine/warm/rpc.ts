// Requests and responses as lines of JSON, in JSON-RPC 2.0 and similar protocols.

import { isObject, type JsonObject } from '../jsonl.js'

export interface RpcListener {
  onNotification(method: string, params: JsonObject): void
  /** Answers a request from the other side; without an answer it gets a "not supported" error. */
  onRequest(method: string, params: JsonObject): Promise<JsonObject | undefined>
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

export class Rpc {
  #waiting = new Map<unknown, Waiting>()
  #requestCount = 0

  /** `frame` is merged into every message. */
  constructor(
    private readonly send: (message: JsonObject) => void,
    private readonly listener: RpcListener,
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
