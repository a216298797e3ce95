// Requests and their answers in lines of JSON, as JSON-RPC 2.0 and its relatives have them.

import { isObject, type JsonObject } from '../jsonl.js'

export interface RpcListener {
  notified(method: string, params: JsonObject): void
  /** The answer to what the other side asks; without one it is told that nobody answers such a thing. */
  asked?(method: string, params: JsonObject): Promise<JsonObject | undefined>
}

/** What the other side answered in place of a result. */
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

  /** `frame` is part of every message. */
  constructor(
    private readonly send: (message: JsonObject) => void,
    private readonly listener: RpcListener,
    private readonly frame: JsonObject = {},
  ) {}

  /** Contract: rejects with an `RpcError`, and never settles when the other side never answers. */
  request(method: string, params: JsonObject = {}): Promise<JsonObject> {
    this.#requestCount += 1
    const id = this.#requestCount
    this.send({ ...this.frame, id, method, params })
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  /** Settles when the other side has answered, whatever it says. */
  async ask(method: string): Promise<void> {
    await this.request(method).catch(() => {}) // That it refuses is an answer.
  }

  notify(method: string, params: JsonObject = {}): void {
    this.send({ ...this.frame, method, params })
  }

  receive({ id, method, params, result, error }: JsonObject): void {
    if (typeof method !== 'string') return this.#answered(id, result, error)
    const given = isObject(params) ? params : {}
    if (id === undefined) return this.listener.notified(method, given)
    void this.#asked(id, method, given)
  }

  /** Contract: never rejects. It is answered in any case: the other side waits. */
  async #asked(id: unknown, method: string, params: JsonObject): Promise<void> {
    const answer = await this.listener.asked?.(method, params).catch(() => {})
    this.send({ ...this.frame, id, ...(answer ? { result: answer } : { error: NOT_SUPPORTED }) })
  }

  #answered(id: unknown, result: unknown, error: unknown): void {
    const waiting = this.#waiting.get(id)
    if (!waiting) return
    this.#waiting.delete(id)
    if (isObject(error)) waiting.reject(new RpcError(sentenceOf(error), error['code']))
    else waiting.resolve(isObject(result) ? result : {})
  }
}

const NOT_SUPPORTED = { code: -32_601, message: 'Not supported' }

/** Gemini CLI says what went wrong in the details of an "Internal error", and on further lines where it has looked. */
function sentenceOf({ message, data }: JsonObject): string {
  const details = isObject(data) ? data['details'] : undefined
  if (typeof details === 'string') return details.split('\n', 1)[0] ?? ''
  return typeof message === 'string' ? message : 'No reason was given.'
}
