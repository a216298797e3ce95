import { AetheelApiError, apiErrorOf } from './api-error.js'
import { PageKey } from './page-key.js'

export interface ConnectionOptions {
  /** Such as `http://127.0.0.1:7433`. */
  baseUrl: string
  /** Absent in the gateway's own pages, which log in. */
  token?: string
  /** Default: the platform's. */
  fetch?: typeof fetch
}

export interface RequestOptions {
  /** Sent as JSON. */
  body?: object
  /** Sent as is, instead of `body`. */
  file?: Blob
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** Requests to one gateway, with its token. */
export class Connection {
  readonly #baseUrl: string
  readonly #authorization: () => Record<string, string>
  readonly #fetch: typeof fetch
  readonly pageKey = new PageKey()

  constructor(options: ConnectionOptions) {
    const token = options.token?.trim()
    // A platform that rejects it as a header would quote it in its error.
    if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
      throw new TypeError('The token is empty or has invalid characters. Create one with "aetheel tokens create".')
    }
    this.#baseUrl = options.baseUrl.replace(/\/+$/, '')
    this.#authorization =
      token === undefined ? () => this.pageKey.header() : () => ({ authorization: `Bearer ${token}` })
    this.#fetch = options.fetch ?? fetch
  }

  /** Contract: rejects with AetheelApiError, even for an unsuccessful response, or with the signal's reason. */
  async open(method: string, path: string, options?: RequestOptions): Promise<Response> {
    const response = await this.#send(method, path, options)
    if (response.ok) return response
    throw apiErrorOf(response.status, await response.text())
  }

  /** `isAnswer` recognises an unsuccessful response whose body is still the answer. */
  async json<T>(
    method: string,
    path: string,
    options?: RequestOptions,
    isAnswer: (body: unknown) => boolean = () => false,
  ): Promise<T> {
    const { ok, status, text } = await this.#read(method, path, options)
    const body = parse(text)
    if (body !== undefined && (ok || isAnswer(body))) return body as T
    throw apiErrorOf(status, text)
  }

  async done(method: string, path: string, options?: RequestOptions): Promise<void> {
    const { ok, status, text } = await this.#read(method, path, options)
    if (!ok) throw apiErrorOf(status, text)
  }

  async #read(
    method: string,
    path: string,
    options: RequestOptions | undefined,
  ): Promise<{ ok: boolean; status: number; text: string }> {
    const response = await this.#send(method, path, options)
    const { ok, status } = response
    try {
      return { ok, status, text: await response.text() }
    } catch (cause) {
      throw this.#unreachable(cause)
    }
  }

  async #send(method: string, path: string, { body, file, headers, signal }: RequestOptions = {}): Promise<Response> {
    // Called without `this`: browsers reject their own `fetch` as a method of another object.
    const send = this.#fetch
    try {
      return await send(`${this.#baseUrl}${path}`, {
        method,
        headers: {
          ...this.#authorization(),
          ...(body && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body && { body: JSON.stringify(body) }),
        ...(file && { body: file }),
        ...(signal && { signal }),
      })
    } catch (cause) {
      if (signal?.aborted) throw cause
      throw this.#unreachable(cause)
    }
  }

  #unreachable(cause: unknown): AetheelApiError {
    const message = `No gateway answers at ${this.#baseUrl}. Start one with "aetheel start".`
    return new AetheelApiError('unreachable', 0, message, [], { cause })
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // The caller reports it.
  }
}
