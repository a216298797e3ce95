// The events of one server, for all its runs, over one connection: opened before the first prompt and kept for a while
// after the last. If it breaks, it is reopened, and listeners are told that they may have missed events.

import { backoffMs, wait } from '../../../core/async.js'
import { type ServerSentEvent, ServerSentEventsReader } from '../../../core/server-sent-events.js'
import { isObject, type JsonObject, parseJson } from '../../engine/jsonl.js'
import { type OpenCodeClient, OpenCodeServerError, retryUntilAnswered } from './client.js'

/** The server sends a heartbeat every ten seconds. */
const LONGEST_SILENCE_MS = 35_000
const CHECK_SILENCE_MS = 5_000
const CONNECT_MS = 10_000
/** How long to keep reconnecting. If nothing listens there, the turn is lost; a proxy may just need a moment. */
const PATIENCE_MS: Partial<Record<OpenCodeServerError['kind'], number>> = {
  refused: 3_000,
  unreachable: 30_000,
  silent: 30_000,
}
const BACKOFF = { firstMs: 50, longestMs: 2_000 }
const KEEP_MS = 60_000
/** The agent waits for an answer to these. */
const AWAITS_ANSWER = new Set(['permission.asked', 'question.asked'])

export interface ServerEvent {
  type: string
  properties: JsonObject
  /** The project's directory on the server. */
  directory?: string
  /** Its size as received, in characters. */
  size: number
}

export interface EventListener {
  onEvent(event: ServerEvent): void
  /** An event was dropped. */
  onTooLong(): void
  /** Events may have been missed. All later ones are newer than this moment. */
  onReconnected(): void
  /** There will be no more events. */
  onLost(error: OpenCodeServerError): void
}

export interface EventLink {
  /** Subscribes to the events of this session and of its subagents' sessions. */
  follow(sessionId: string): void
  /** Whether the session, or an ancestor, is followed; if so, it is from now on. Contract: rejects if the server does not
   *  answer. */
  isFollowed(sessionId: string): Promise<boolean>
  close(): void
}

export class EventStream {
  readonly #listeners = new Set<EventListener>()
  readonly #bySession = new Map<string, EventListener>()
  #connected: Promise<void> | undefined
  #connection: AbortController | undefined
  #keepTimer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(
    private readonly client: OpenCodeClient,
    private readonly options: { maxCharacters: number; onClosed(): void },
  ) {}

  /** Contract: settles when events flow; rejects with an `OpenCodeServerError`. */
  async open(listener: EventListener): Promise<EventLink> {
    clearTimeout(this.#keepTimer)
    this.#listeners.add(listener)
    try {
      await (this.#connected ?? this.#begin(this.#connect()))
    } catch (error) {
      this.#leave(listener)
      throw error
    }
    return {
      follow: (sessionId) => void this.#bySession.set(sessionId, listener),
      isFollowed: async (sessionId) => (await this.#lookUp(sessionId)) === listener,
      close: () => this.#leave(listener),
    }
  }

  close(): void {
    clearTimeout(this.#keepTimer)
    this.#isClosed = true
    this.#connection?.abort()
    this.options.onClosed()
  }

  get #isAbandoned(): boolean {
    return this.#listeners.size === 0 || this.#isClosed
  }

  #leave(listener: EventListener): void {
    this.#listeners.delete(listener)
    for (const [sessionId, of] of this.#bySession) if (of === listener) this.#bySession.delete(sessionId)
    if (this.#listeners.size > 0 || this.#isClosed) return
    this.#keepTimer = setTimeout(() => this.close(), KEEP_MS).unref()
  }

  /** Settles when the server confirms that events flow. */
  async #connect(onConnected = () => {}): Promise<void> {
    const connection = new AbortController()
    this.#connection = connection
    let tooLate: NodeJS.Timeout | undefined
    try {
      const chunks = await this.client.subscribeEvents(connection.signal)
      tooLate = setTimeout(() => connection.abort(), CONNECT_MS)
      await new Promise<void>((resolve, reject) => {
        const begun = (): void => {
          onConnected()
          resolve()
        }
        void this.#read(chunks, connection, begun).then(reject)
      })
    } catch (error) {
      connection.abort()
      throw error
    } finally {
      clearTimeout(tooLate)
    }
  }

  /** Contract: never rejects; settles at the end of the connection, with an error for whoever still waits for it. */
  async #read(
    chunks: AsyncIterable<Uint8Array>,
    connection: AbortController,
    onConnected: () => void,
  ): Promise<OpenCodeServerError> {
    let isConnected = false
    let lastSignOfLife = Date.now()
    const timer = setInterval(() => {
      if (Date.now() - lastSignOfLife > LONGEST_SILENCE_MS) connection.abort()
    }, CHECK_SILENCE_MS).unref()
    const onEvent = (received: ServerSentEvent): void => {
      const event = readEvent(received)
      if (event?.type !== 'server.connected') {
        if (event) this.#dispatch(event)
        return
      }
      if (!isConnected) onConnected()
      isConnected = true
    }
    const onTooLong = (beginning: string): void => {
      const [, sessionId = ''] = /"sessionID":"(ses_[\w-]+)"/.exec(beginning) ?? []
      this.#bySession.get(sessionId)?.onTooLong()
    }
    const reader = new ServerSentEventsReader({ onEvent, onTooLong }, this.options.maxCharacters)
    try {
      for await (const chunk of chunks) {
        lastSignOfLife = Date.now()
        reader.push(chunk)
      }
    } catch {
      // How the connection ended does not matter: reconnecting shows whether the server is still there.
    }
    clearInterval(timer)
    if (isConnected && !this.#isClosed) void this.#begin(this.#reconnect())
    return this.client.fault('silent', 'accepts connections but sends no events')
  }

  /** After a failure, the next caller tries again. */
  #begin(connecting: Promise<void>): Promise<void> {
    this.#connected = connecting
    connecting.catch(() => {
      if (this.#connected === connecting) this.#connected = undefined
    })
    return connecting
  }

  /** Contract: rejects with an `OpenCodeServerError`. */
  async #reconnect(): Promise<void> {
    const brokenAt = Date.now()
    for (let failures = 1; ; failures += 1) {
      try {
        // Before the first event of the new connection.
        return await this.#connect(() => this.#listeners.forEach((listener) => listener.onReconnected()))
      } catch (error) {
        const lost = error as OpenCodeServerError
        const patienceMs = PATIENCE_MS[lost.kind] ?? 0
        if (this.#isAbandoned || Date.now() - brokenAt >= patienceMs) {
          for (const listener of this.#listeners) listener.onLost(lost)
          throw lost
        }
      }
      await wait(backoffMs(failures, BACKOFF))
    }
  }

  #dispatch(event: ServerEvent): void {
    const sessionId = sessionOf(event.properties)
    if (sessionId === undefined) return
    const listener = this.#bySession.get(sessionId) ?? this.#adopt(sessionId, event)
    if (listener) {
      this.#adoptSubagent(event, listener)
      listener.onEvent(event)
    } else if (AWAITS_ANSWER.has(event.type)) void this.#dispatchToOwner(sessionId, event)
  }

  /** A subagent's new session belongs to the listener of its parent session. */
  #adopt(sessionId: string, { type, properties }: ServerEvent): EventListener | undefined {
    if (type !== 'session.created' || !isObject(properties['info'])) return undefined
    const listener = this.#bySession.get(String(properties['info']['parentID']))
    if (listener) this.#bySession.set(sessionId, listener)
    return listener
  }

  /** A subagent may reuse a session from an earlier turn, which only its tool call names. */
  #adoptSubagent({ properties: { part } }: ServerEvent, listener: EventListener): void {
    const state = isObject(part) && part['type'] === 'tool' ? part['state'] : undefined
    const metadata = isObject(state) ? state['metadata'] : undefined
    const sessionId = isObject(metadata) ? metadata['sessionId'] : undefined
    if (typeof sessionId === 'string' && !this.#bySession.has(sessionId)) this.#bySession.set(sessionId, listener)
  }

  /** An agent waits for an answer, and its session may be one of ours. Contract: never rejects. */
  async #dispatchToOwner(sessionId: string, event: ServerEvent): Promise<void> {
    const dispatch = async (): Promise<void> => (await this.#lookUp(sessionId))?.onEvent(event)
    await retryUntilAnswered(dispatch, () => this.#isAbandoned)
  }

  /** The listener that follows the session or one of its ancestors. */
  async #lookUp(sessionId: string): Promise<EventListener | undefined> {
    const seen = new Set<string>()
    for (let id: string | undefined = sessionId; id !== undefined && !seen.has(id);) {
      const listener = this.#bySession.get(id)
      if (listener) {
        for (const one of seen) this.#bySession.set(one, listener)
        return listener
      }
      seen.add(id)
      id = await this.#parentOf(id)
    }
    return undefined
  }

  async #parentOf(sessionId: string): Promise<string | undefined> {
    try {
      return (await this.client.getSession(sessionId)).parentID
    } catch (error) {
      if (error instanceof OpenCodeServerError && error.status === 404) return undefined
      throw error
    }
  }
}

/** Accepts `{type, properties}`, also wrapped with a directory, or with the type as the name of the server-sent event. */
function readEvent({ name, data }: ServerSentEvent): ServerEvent | undefined {
  const value = parseJson(data.trim())
  if (!isObject(value)) return undefined
  const { directory } = value
  const event = isObject(value['payload']) ? value['payload'] : value
  const type = typeof event['type'] === 'string' ? event['type'] : name
  const properties = isObject(event['properties']) ? event['properties'] : event
  return { type, properties, ...(typeof directory === 'string' && { directory }), size: data.length }
}

function sessionOf({ sessionID, session_id, part, info }: JsonObject): string | undefined {
  const below = isObject(part) ? part : isObject(info) ? info : {}
  const named = sessionID ?? session_id ?? below['sessionID']
  return typeof named === 'string' ? named : undefined
}
