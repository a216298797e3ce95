// The parts of the HTTP API of `opencode serve`, 1.18.33, that are used here.
//
// - A server accepts connections before it can answer, and never answers those requests: each needs its own time limit.
// - It answers unknown paths with a web page and 200: only JSON counts as an answer.
// - `directory` selects a project on the server; requests about a session do not need it.

import { backoffMs, eitherSignal, startDeadline, wait, withDeadline } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import { isObject, parseJson } from '../../engine/jsonl.js'
import type { OpenCodeEndpoint } from './servers.js'

const REQUEST_MS = 30_000
/** Before it accepts a prompt, the server may have to start everything for the directory. */
export const PROMPT_MS = 120_000
/** Fetch itself gives up after five minutes. */
const ANSWER_MS = 300_000
const HEALTH_MS = 5_000
const CONNECT_MS = 10_000
const ERROR_CHARACTERS = 500
const START_IT = 'Start it with "opencode serve", or set OPENCODE_URL to its address.'
const START_IT_AGAIN = 'Check its log, or restart it.'
const SET_PASSWORD = 'Set OPENCODE_USERNAME and OPENCODE_PASSWORD to the values it was started with.'

/** A rule of a session. The last matching one wins. */
export interface PermissionRule {
  permission: string
  pattern: string
  action: 'allow' | 'ask' | 'deny'
}

export interface Session {
  id: string
  directory: string
  /** Set if a subagent works in it. */
  parentID?: string
  permission?: PermissionRule[]
}

export interface SessionOptions {
  directory: string
  title: string
  permission?: PermissionRule[]
}

export interface Model {
  providerID: string
  modelID: string
}

export interface Prompt {
  parts: Array<{ type: 'text'; id?: string; text: string }>
  model?: Model
  /** Appended to OpenCode's own system prompt. */
  system?: string
  /** Replaces all previous rules of the session, for this turn and later ones. */
  tools?: Record<string, boolean>
}

/** A message with its parts. The shape is not validated. */
export interface SessionMessage {
  info: { id: string; role: string; model?: Model }
  parts: Array<{ id: string; type: string }>
}

export type SessionStatus = { type: 'idle' | 'busy' } | { type: 'retry'; attempt: number; message: string }

/** A request by the agent, which waits for the answer. */
export interface PendingRequest {
  id: string
  sessionID: string
}

export interface PermissionRequest extends PendingRequest {
  permission: string
  patterns: string[]
  metadata?: Record<string, unknown>
  tool?: { callID: string }
}

export interface QuestionRequest extends PendingRequest {
  questions: Array<{ question: string }>
}

/**
 * - `refused`: nothing listens there
 * - `unreachable`: no route, or the connection broke
 * - `silent`: no answer in time
 * - `status`: an error status of the server
 * - `strange`: not an answer of OpenCode
 * - `too_large`: larger than `maxBytes`
 */
type ErrorKind = 'refused' | 'unreachable' | 'silent' | 'status' | 'strange' | 'too_large'

export class OpenCodeServerError extends Error {
  override readonly name = 'OpenCodeServerError'

  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly status?: number,
  ) {
    super(message)
  }
}

export interface ClientOptions {
  /** Hides secrets. Applied before the text is truncated. */
  scrub?: (text: string) => string
  /** The largest response. */
  maxBytes?: number
}

interface Call {
  directory?: string
  body?: unknown
  query?: Record<string, string>
  timeoutMs?: number
  signal?: AbortSignal | undefined
  /** Must not be sent twice. */
  isOnce?: boolean
}

/** Contract: every method rejects with an `OpenCodeServerError`, or with its signal's reason. */
export class OpenCodeClient {
  readonly url: string
  readonly #headers: Record<string, string>
  readonly #advice: string | undefined
  readonly #scrub: (text: string) => string
  readonly #maxBytes: number

  constructor(
    { url, username, password, advice }: OpenCodeEndpoint,
    { scrub = same, maxBytes = Infinity }: ClientOptions = {},
  ) {
    this.url = url
    this.#advice = advice
    const credentials = Buffer.from(`${username}:${password}`).toString('base64')
    this.#headers = password === undefined ? {} : { authorization: `Basic ${credentials}` }
    this.#scrub = scrub
    this.#maxBytes = maxBytes
  }

  async health(): Promise<{ version?: string }> {
    const route = 'GET /global/health'
    const answer = await this.#call<unknown>(route, { timeoutMs: HEALTH_MS })
    // Many web servers have such a page.
    if (!isObject(answer) || answer['healthy'] !== true) throw this.#strange(route)
    const { version } = answer
    return typeof version === 'string' ? { version } : {}
  }

  createSession({ directory, ...body }: SessionOptions, signal?: AbortSignal): Promise<Session> {
    return this.#call('POST /session', { directory, body, timeoutMs: PROMPT_MS, signal })
  }

  getSession(id: string, signal?: AbortSignal): Promise<Session> {
    return this.#call(`GET ${sessionPath(id)}`, { signal })
  }

  /** Contract: appended to the session's rules. */
  async addRules(id: string, permission: PermissionRule[], signal?: AbortSignal): Promise<void> {
    await this.#call(`PATCH ${sessionPath(id)}`, { body: { permission }, signal })
  }

  /** Contract: settles when the tools have been told to stop. An idle or unknown session is not an error. */
  async abortSession(id: string): Promise<void> {
    await this.#call(`POST ${sessionPath(id)}/abort`)
  }

  /** Waits up to five minutes for the last message of the turn. Giving up does not end the turn. */
  sendMessage(id: string, prompt: Prompt, signal?: AbortSignal): Promise<SessionMessage> {
    return this.#call(`POST ${sessionPath(id)}/message`, {
      body: prompt,
      timeoutMs: ANSWER_MS,
      signal,
      isOnce: true,
    })
  }

  /** Contract: settles when the server has accepted the prompt; the outcome is among the events. */
  async sendPromptAsync(id: string, prompt: Prompt): Promise<void> {
    await this.#request(`POST ${sessionPath(id)}/prompt_async`, { body: prompt, timeoutMs: PROMPT_MS, isOnce: true })
  }

  /** Replaces what was said so far by a summary of it. Waits up to five minutes; giving up does not end it. */
  async summarize(id: string, model: Model, signal?: AbortSignal): Promise<void> {
    const call = { body: model, timeoutMs: ANSWER_MS, signal, isOnce: true }
    await this.#call(`POST ${sessionPath(id)}/summarize`, call)
  }

  /** The latest messages, oldest first. */
  messages(id: string, limit: number): Promise<SessionMessage[]> {
    return this.#call(`GET ${sessionPath(id)}/message`, { query: { limit: String(limit) } })
  }

  /** The status of each session that is not idle, by id. */
  statuses(directory: string): Promise<Record<string, SessionStatus>> {
    return this.#call('GET /session/status', { directory })
  }

  permissionRequests(directory: string): Promise<PermissionRequest[]> {
    return this.#call('GET /permission', { directory })
  }

  /** After `reject`, the turn continues if there is a message for the agent, and ends otherwise. */
  async replyToPermission(id: string, reply: 'once' | 'reject', directory: string, message?: string): Promise<void> {
    const body = { reply, ...(message !== undefined && { message }) }
    await this.#call(`POST /permission/${encodeURIComponent(id)}/reply`, { directory, body })
  }

  questionRequests(directory: string): Promise<QuestionRequest[]> {
    return this.#call('GET /question', { directory })
  }

  async rejectQuestion(id: string, directory: string): Promise<void> {
    await this.#call(`POST /question/${encodeURIComponent(id)}/reject`, { directory })
  }

  /** The server-sent events of all directories, until the signal. */
  async subscribeEvents(signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const route = 'GET /global/event'
    const tooLate = startDeadline(CONNECT_MS)
    try {
      const response = await this.#fetch(route, {}, eitherSignal(signal, tooLate.signal), tooLate.signal)
      if (!response.ok) throw await this.#refusal(route, response)
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
      if (isStream && response.body) return response.body
      await response.body?.cancel()
      throw this.#strange(route)
    } finally {
      tooLate.clear()
    }
  }

  /** An error that says what is wrong with the server, and what to do. */
  fault(kind: ErrorKind, what: string, advice = START_IT_AGAIN, status?: number): OpenCodeServerError {
    return new OpenCodeServerError(
      kind,
      `The OpenCode server at ${this.url} ${what}. ${this.#advice ?? advice}`,
      status,
    )
  }

  /** Contract: trusts the server about the shape of its answer. */
  async #call<Answer>(route: string, call: Call = {}): Promise<Answer> {
    const text = await this.#request(route, call)
    try {
      return JSON.parse(text) as Answer
    } catch {
      throw this.#strange(route)
    }
  }

  /** Retries once: the server may close a kept-alive connection just as it is reused. */
  async #request(route: string, call: Call): Promise<string> {
    try {
      return await this.#try(route, call)
    } catch (error) {
      const isBroken = error instanceof OpenCodeServerError && error.kind === 'unreachable'
      if (!isBroken || call.isOnce) throw error
      return await this.#try(route, call)
    }
  }

  async #try(route: string, call: Call): Promise<string> {
    return withDeadline(call.timeoutMs ?? REQUEST_MS, undefined, async (tooLate) => {
      const signal = call.signal ? eitherSignal(call.signal, tooLate) : tooLate
      const response = await this.#fetch(route, call, signal, tooLate)
      if (!response.ok) throw await this.#refusal(route, response)
      return this.#read(route, response, tooLate)
    })
  }

  async #fetch(
    route: string,
    { directory, body, query }: Call,
    signal: AbortSignal,
    tooLate: AbortSignal,
  ): Promise<Response> {
    const [method = '', path = ''] = route.split(' ')
    const search = new URLSearchParams({ ...query, ...(directory !== undefined && { directory }) }).toString()
    const init: RequestInit = { method, signal, redirect: 'manual', headers: this.#headers }
    if (body !== undefined) {
      init.body = JSON.stringify(body)
      init.headers = { ...this.#headers, 'content-type': 'application/json' }
    }
    try {
      return await fetch(`${this.url}${path}${search === '' ? '' : `?${search}`}`, init)
    } catch (error) {
      throw this.#broken(route, error, signal, tooLate)
    }
  }

  async #read(route: string, response: Response, tooLate: AbortSignal): Promise<string> {
    const chunks: Uint8Array[] = []
    let bytes = 0
    try {
      for await (const chunk of response.body ?? []) {
        bytes += chunk.length
        if (bytes > this.#maxBytes) break
        chunks.push(chunk)
      }
    } catch (error) {
      throw this.#broken(route, error, tooLate, tooLate)
    }
    if (bytes <= this.#maxBytes) return Buffer.concat(chunks).toString('utf8')
    throw new OpenCodeServerError('too_large', `The OpenCode server's answer to ${route} is too large.`)
  }

  #broken(route: string, error: unknown, signal: AbortSignal, tooLate: AbortSignal): unknown {
    if (tooLate.aborted) return this.fault('silent', `accepts connections but does not answer (${route})`)
    if (signal.aborted) return error
    const reason = reasonOf(error)
    return this.fault(reason === 'ECONNREFUSED' ? 'refused' : 'unreachable', `cannot be reached (${reason})`, START_IT)
  }

  async #refusal(route: string, response: Response): Promise<OpenCodeServerError> {
    const { status } = response
    if (status === 401 || status === 403) {
      await response.body?.cancel()
      return this.fault('status', `rejected the user name or password (${status})`, SET_PASSWORD, status)
    }
    const text = await withDeadline(REQUEST_MS, undefined, (tooLate) =>
      this.#read(route, response, tooLate).catch(() => ''),
    )
    const said = this.#scrub(messageIn(text)).slice(0, ERROR_CHARACTERS)
    if (said === '' && status === 404) return this.#strange(route)
    return new OpenCodeServerError('status', said || `The OpenCode server answered ${route} with ${status}.`, status)
  }

  #strange(route: string): OpenCodeServerError {
    const message = `${this.url} is not an OpenCode server (${route}).`
    return new OpenCodeServerError('strange', `${message} Set OPENCODE_URL to the address of "opencode serve".`)
  }
}

const RETRY = { firstMs: 250, longestMs: 10_000 }

/** Asks the server until it answers, with back-off. Contract: never rejects; gives up on a 4xx status, or when the answer is
 *  no longer needed. */
export async function retryUntilAnswered(ask: () => Promise<void>, isAbandoned: () => boolean): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask()
    } catch (error) {
      const { status = 0 } = error instanceof OpenCodeServerError ? error : {}
      if (status >= 400 && status < 500) return
    }
    if (isAbandoned()) return
    await wait(backoffMs(failures, RETRY), { ref: false })
    if (isAbandoned()) return
  }
}

const same = (text: string): string => text

function sessionPath(id: string): string {
  return `/session/${encodeURIComponent(id)}`
}

/** Fetch hides the actual cause behind "fetch failed". */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: string; message?: string } }
  return cause?.code ?? cause?.message ?? messageOf(error)
}

/** The human-readable message in an error response. */
function messageIn(text: string): string {
  // It may be a page from a proxy.
  const { message, data } = (parseJson(text.trim()) ?? {}) as { message?: unknown; data?: { message?: unknown } }
  const said = data?.message ?? message
  return typeof said === 'string' ? said : ''
}
