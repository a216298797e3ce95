// An event stream of the gateway, over as many connections as it takes.

import { backoffMs } from '../core/async.js'
import { AetheelApiError } from './api-error.js'
import type { Connection } from './connection.js'
import { type ServerSentEvent, ServerSentEventsReader } from '../core/server-sent-events.js'

const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 30_000
/** In a row, without a connection: some minutes. */
const MOST_FAILURES = 12
/** The gateway says something every 15 seconds. After this a connection is taken for dead. */
const LONGEST_SILENCE_MS = 45_000

export interface StreamOptions {
  signal?: AbortSignal | undefined
  /** A connection has broken, or could not be made: what was told so far may be old. */
  onLost?: () => void
}

/**
 * Contract: ends when the gateway says that nothing can follow. A connection that breaks is made again, from what
 * `lastEventId` says then; `onLost` hears of each that does. Throws AetheelApiError when the gateway refuses, or stays away for minutes.
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
        // It is there: what ends now is tried again soon, but not at once, or for ever in a circle.
        failures = Math.min(failures, 1)
        retryMs = batch.retryMs ?? retryMs
        for (const event of batch.events) {
          failures = 0
          yield event
        }
      }
    } catch (error) {
      if (signal?.aborted || !isPassing(error) || failures >= MOST_FAILURES) throw error
    }
    failures += 1
    onLost?.()
    await pause(delayOf(failures, retryMs), signal)
  }
}

interface Batch {
  events: ServerSentEvent[]
  retryMs?: number
}

/** One connection. Contract: it is closed when the loop over it is left. */
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
  const fallSilent = (): void => closing.abort(new AetheelApiError('unreachable', 0, 'The gateway fell silent.'))
  let silence = setTimeout(fallSilent, LONGEST_SILENCE_MS)
  try {
    const response = await connection.open('GET', path, { headers, signal: closing.signal })
    if (response.status === 204 || !response.body) {
      yield 'over'
      return
    }
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
      throw new AetheelApiError('unexpected_answer', response.status, 'The answer is no event stream of a gateway.')
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
      silence = setTimeout(fallSilent, LONGEST_SILENCE_MS)
    }
  } finally {
    clearTimeout(silence)
    signal?.removeEventListener('abort', close)
    closing.abort()
  }
}

/** Whether it may be over soon. What breaks in the middle of an answer is no AetheelApiError. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof AetheelApiError)) return true
  return error.code === 'unreachable' || error.status === 429 || error.status >= 500
}

/** None the first time; then twice as long each time, and not the same for all clients of a gateway that was away. */
function delayOf(failures: number, retryMs: number): number {
  if (failures === 1) return 0
  return backoffMs(failures - 1, { firstMs: retryMs, longestMs: LONGEST_DELAY_MS }) * (0.5 + Math.random() / 2)
}

/** Contract: ends early at the signal. */
function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, delayMs)
    signal?.addEventListener('abort', end)
    if (signal?.aborted) end()
  })
}
