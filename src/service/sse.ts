// Server-sent events, as the HTML standard defines them.
//
// Invariants:
// - A frame is built once, and every client gets the same buffer.
// - Nothing is written to a client that has not taken the previous batch, so each holds at most one.

import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { GatewayError, messageOf } from '../errors.js'
import type { NumberedEvent } from '../streams/numbered-event.js'
import type { ServiceDependencies } from './dependencies.js'
import { projectEvent } from './event-projection.js'

export interface EventStreamOptions {
  /** Ends the stream when the server stops; the client reconnects later. */
  signal?: AbortSignal
  heartbeatMs?: number
  /** A client that reads nothing for this long is disconnected. */
  stallMs?: number
}

const RETRY_MS = 1_000
const HEARTBEAT = Buffer.from(':\n\n')

/**
 * Parses a `Last-Event-ID` header. Contract: 0 if absent; throws `request_invalid` for an id that no stream has issued.
 */
export function readLastEventId(header: string | string[] | undefined): number {
  if (header === undefined) return 0
  const number = typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined
  if (number !== undefined) return number
  throw new GatewayError(
    'request_invalid',
    'Last-Event-ID must be the id of an event. Omit it to start with the first.',
  )
}

/** Answers a request with a stream. Contract: never rejects; the client of a broken stream reconnects and continues. */
export async function answerWithStream(
  reply: FastifyReply,
  send: (response: ServerResponse) => Promise<void>,
  { metrics, log }: Pick<ServiceDependencies, 'metrics' | 'log'>,
  about: Record<string, unknown> = {},
): Promise<void> {
  reply.hijack()
  const closed = metrics.streamOpened()
  try {
    await send(reply.raw)
  } catch (error) {
    log.warn('stream.broken', { requestId: reply.request.id, ...about, error: messageOf(error) })
  } finally {
    closed()
  }
}

/** Sends the events of a stream. Contract: see `sendFrames`. */
export function sendEventStream(
  response: ServerResponse,
  follow: (signal: AbortSignal) => AsyncIterable<NumberedEvent[]>,
  options?: EventStreamOptions,
): Promise<void> {
  return sendFrames(
    response,
    async function* (signal) {
      for await (const batch of follow(signal)) yield framesOf(batch)
    },
    options,
  )
}

/**
 * Sends frames as the response to a request whose headers were not sent yet.
 *
 * Contract: settles when the response has ended: everything was sent, the client left or stalled, or the signal fired.
 * Rejects with the errors of `frames`.
 */
export async function sendFrames(
  response: ServerResponse,
  frames: (signal: AbortSignal) => AsyncIterable<Buffer>,
  { signal, heartbeatMs = 15_000, stallMs = 60_000 }: EventStreamOptions = {},
): Promise<void> {
  const gone = new AbortController()
  const leave = (): void => gone.abort()
  response.once('close', leave)
  signal?.addEventListener('abort', leave)
  if (response.destroyed || signal?.aborted) leave()
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  response.write(`retry: ${RETRY_MS}\n\n`)
  const heartbeat = setInterval(() => {
    if (!response.writableNeedDrain) response.write(HEARTBEAT)
  }, heartbeatMs)
  try {
    for await (const frame of frames(gone.signal)) {
      if (!gone.signal.aborted && !response.write(frame)) await drained(response, stallMs, gone.signal)
      if (gone.signal.aborted) break
    }
  } finally {
    clearInterval(heartbeat)
    signal?.removeEventListener('abort', leave)
    // A stalled client would not read the end either.
    if (response.writableNeedDrain) response.destroy()
    else response.end()
  }
}

async function drained(response: ServerResponse, stallMs: number, gone: AbortSignal): Promise<void> {
  const stalled = setTimeout(() => response.destroy(), stallMs)
  try {
    await once(response, 'drain', { signal: gone })
  } catch (error) {
    if (!gone.aborted) throw error
  } finally {
    clearTimeout(stalled)
  }
}

const framesOf = builtOnce((batch: NumberedEvent[]) => Buffer.concat(batch.map(frameOf)))

const frameOf = builtOnce(({ number, event }: NumberedEvent): Buffer => {
  const { name, data } = projectEvent(event)
  return Buffer.from(formatFrame(String(number), name, JSON.stringify(data)))
})

/** Builds the frame of each event or batch once, for all clients. */
export function builtOnce<Source extends object, Rest extends unknown[]>(
  build: (source: Source, ...rest: Rest) => Buffer,
): typeof build {
  const built = new WeakMap<Source, Buffer>()
  return (source, ...rest) => {
    const known = built.get(source)
    if (known) return known
    const made = build(source, ...rest)
    built.set(source, made)
    return made
  }
}

/** Contract: throws `request_invalid` for an id or a name with line breaks. */
export function formatFrame(id: string | undefined, name: string, data: string): string {
  if (/[\r\n\0]/.test(`${id}${name}`)) {
    throw new GatewayError('request_invalid', 'The id and the name of an event cannot contain line breaks or NUL.')
  }
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\n${lines.join('')}\n`
}
