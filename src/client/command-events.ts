import { STREAM_EVENT_NAMES } from '../core/wire-names.js'
import type { CommandEvent } from '../service/api/events.js'
import type { Connection } from './connection.js'
import { streamEvents } from './event-stream.js'

export interface EventsOptions {
  /** The id of the last event seen; absent, starts from the first. */
  after?: number
  /** Ends the stream: the loop throws the reason. */
  signal?: AbortSignal
}

const KNOWN_EVENTS: ReadonlySet<string> = new Set(STREAM_EVENT_NAMES)

/**
 * Contract: each event once and in order; ends after `complete`, or at once if that was already seen. Reconnects after
 * the last event. Throws AetheelApiError if the gateway refuses or is unreachable for minutes.
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
