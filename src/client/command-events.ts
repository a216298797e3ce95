import { STREAM_EVENT_NAMES } from '../core/event-names.js'
import type { CommandEvent } from '../service/api/events.js'
import type { Connection } from './connection.js'
import { streamEvents } from './event-stream.js'

export interface EventsOptions {
  /** The id of the last event that was seen; left out, from the first one. */
  after?: number
  /** Ends it: the loop gets the reason. */
  signal?: AbortSignal
}

const KNOWN_EVENTS: ReadonlySet<string> = new Set(STREAM_EVENT_NAMES)

/**
 * Contract: each event once and in order; ends after `complete`, or at once when that had been seen. A connection that
 * breaks is made again from the last event. Throws AetheelApiError when the gateway refuses, or stays away for minutes.
 */
export async function* commandEvents(
  connection: Connection,
  path: string,
  { after = 0, signal }: EventsOptions = {},
): AsyncGenerator<CommandEvent, void> {
  let last = after
  const lastEventId = (): string => (last > 0 ? String(last) : '')
  for await (const { id, name, data } of streamEvents(connection, path, lastEventId, { signal })) {
    const event = { id: Number(id), name, data: JSON.parse(data) } as CommandEvent
    if (event.id <= last) continue
    last = event.id
    if (KNOWN_EVENTS.has(event.name)) yield event
    if (event.name === 'complete') return
  }
}
