import { ACTIVITY_EVENT_NAMES } from '../core/event-names.js'
import type { ActivityEvent } from '../service/api/events.js'
import type { Connection } from './connection.js'
import { type StreamOptions, streamEvents } from './event-stream.js'

const KNOWN: ReadonlySet<string> = new Set(ACTIVITY_EVENT_NAMES)

/**
 * Contract: a `snapshot` after each connection, and the events of a message each once, from the first again when it is
 * taken up again after its `complete`. Ends with the signal; throws AetheelApiError when the gateway refuses, or stays
 * away for minutes.
 */
export async function* activity(
  connection: Connection,
  options: StreamOptions = {},
): AsyncGenerator<ActivityEvent, void> {
  /** By message, the id of its last event. */
  let positions = new Map<string, number>()
  const lastEventId = (): string => [...positions].map((pair) => pair.join(':')).join(',')
  for await (const { name, data } of streamEvents(connection, '/activity', lastEventId, options)) {
    if (!KNOWN.has(name)) continue
    const next = { name, data: JSON.parse(data) } as ActivityEvent
    if (next.name === 'snapshot') positions = positionsOf(next)
    if (next.name === 'event') {
      const { message_id: messageId, id, name: event } = next.data
      if (id <= (positions.get(messageId) ?? 0)) continue
      if (event === 'complete') positions.delete(messageId)
      else positions.set(messageId, id)
    }
    yield next
  }
}

function positionsOf({ data }: Extract<ActivityEvent, { name: 'snapshot' }>): Map<string, number> {
  return new Map(
    data.conversations.flatMap(({ message_id: id, last_event_id: last }) =>
      id === null || last === null ? [] : [[id, last] as const],
    ),
  )
}
