import { ACTIVITY_EVENT_NAMES } from '../core/wire-names.js'
import type { ActivityEvent } from '../service/api/events.js'
import type { Connection } from './connection.js'
import { type StreamOptions, streamEvents } from './event-stream.js'

const KNOWN: ReadonlySet<string> = new Set(ACTIVITY_EVENT_NAMES)

/**
 * Contract: a `snapshot` after each connection, and each event of a message once; if a message is retried after its
 * `complete`, its events start again from the first. Ends with the signal; throws AetheelApiError if the gateway refuses
 * or is unreachable for minutes.
 */
export async function* activity(
  connection: Connection,
  options: StreamOptions = {},
): AsyncGenerator<ActivityEvent, void> {
  /** The id of each message's last event. */
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
