// An event stream that reconnects as often as necessary.

import { backoffMs, wait } from '../core/async.js'
import { AetheelApiError } from './api-error.js'
import type { Connection } from './connection.js'
import { type ServerSentEvent, ServerSentEventsReader } from '../core/server-sent-events.js'

const FIRST_DELAY_MS = 1_000
const MAX_DELAY_MS = 30_000
/** Consecutive failures to connect: a few minutes. */
const MAX_FAILURES = 12
/** The gateway sends something every 15 seconds. After this silence a connection counts as dead. */
const MAX_SILENCE_MS = 45_000

export interface StreamOptions {
  signal?: AbortSignal | undefined
  /** Called when the connection breaks or cannot be made: what was received so far may be stale. */
  onLost?: () => void
}

/**
 * Contract: ends when the gateway says that no more can follow. When the connection breaks, it reconnects from
 * `lastEventId` and calls `onLost`. Throws AetheelApiError if the gateway refuses or is unreachable for minutes.
 */
export async function* streamEvents(
  connection: Connection,
  path: string,
  lastEventId: () => string,
  { signal, onLost }: StreamOptions = {},
): AsyncGenerator<ServerSentEvent, void> {
  let failures = 0
  let retryMs = FIRST_DELAY_MS
  for (;;) {
    try {
      const last = lastEventId()
      const headers = { accept: 'text/event-stream', ...(last !== '' && { 'last-event-id': last }) }
      for await (const batch of openStream(connection, path, headers, signal)) {
        if (batch === 'over') return
        // It answered: if it ends now, retry soon, but not at once, which could loop forever.
        failures = Math.min(failures, 1)
        retryMs = batch.retryMs ?? retryMs
        for (const event of batch.events) {
          failures = 0
          yield event
        }
      }
    } catch (error) {
      if (signal?.aborted || !isTransient(error) || failures >= MAX_FAILURES) throw error
    }
    failures += 1
    onLost?.()
    // The next attempt throws the reason of the signal.
    await wait(delayOf(failures, retryMs), { signal }).catch(() => {})
  }
}

interface Batch {
  events: ServerSentEvent[]
  retryMs?: number
}

/** One connection. Contract: closed when the consumer leaves the loop. */
async function* openStream(
  connection: Connection,
  path: string,
  headers: Record<string, string>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Batch | 'over', void> {
  const closing = new AbortController()
  const close = (): void => closing.abort(signal?.reason)
  signal?.addEventListener('abort', close)
  if (signal?.aborted) close()
  const fallSilent = (): void =>
    closing.abort(new AetheelApiError('unreachable', 0, 'The gateway stopped sending data.'))
  let silence = setTimeout(fallSilent, MAX_SILENCE_MS)
  try {
    const response = await connection.open('GET', path, { headers, signal: closing.signal })
    if (response.status === 204 || !response.body) {
      yield 'over'
      return
    }
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
      throw new AetheelApiError(
        'unexpected_answer',
        response.status,
        'The response is not an event stream. Check the base URL.',
      )
    }
    let batch: Batch = { events: [] }
    const reader = new ServerSentEventsReader({
      onEvent: (event) => {
        batch.events.push(event)
      },
      onRetry: (delayMs) => {
        batch.retryMs = delayMs
      },
    })
    const body = response.body.getReader()
    for (;;) {
      const { done, value } = await body.read()
      if (done) return
      clearTimeout(silence)
      reader.push(value)
      yield batch
      batch = { events: [] }
      silence = setTimeout(fallSilent, MAX_SILENCE_MS)
    }
  } finally {
    clearTimeout(silence)
    signal?.removeEventListener('abort', close)
    closing.abort()
  }
}

/** Whether a retry may help. A response that breaks off midway is not an AetheelApiError. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof AetheelApiError)) return true
  return error.code === 'unreachable' || error.status === 429 || error.status >= 500
}

/** Zero the first time, then doubling, with jitter so that not all clients come back at once. */
function delayOf(failures: number, retryMs: number): number {
  if (failures === 1) return 0
  return backoffMs(failures - 1, { firstMs: retryMs, longestMs: MAX_DELAY_MS }) * (0.5 + Math.random() / 2)
}
