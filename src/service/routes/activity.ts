// Activity in all conversations, as one event stream.
//
// A frame's id holds the client's position in every message it follows, as pairs of message and last event number, so
// it can continue from there. It is sent once per batch, in its own frame.

import type { Scrubber } from '../../credentials/scrubber.js'
import { GatewayError } from '../../errors.js'
import { canSee } from '../../store/visibility.js'
import { type Activity, MAX_FOLLOWED } from '../../streams/activity-hub.js'
import type { NumberedEvent } from '../../streams/numbered-event.js'
import { type ActivityEvent, activityHeaders } from '../api/events.js'
import { streamQuery, streamResponse } from '../api/values.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { projectEvent } from '../event-projection.js'
import { routesOf } from '../route.js'
import { answerWithStream, builtOnce, formatFrame, sendFrames } from '../sse.js'
import { isoTime } from '../wire.js'
import { callerOf } from './changes.js'
import { conversationView } from './conversation-view.js'
import { visibilityOf } from './visibility.js'

const DESCRIPTION = `Server-sent events. \`snapshot\`, first and once: the conversations that run or wait. \
\`conversation\`: one that changed, also when it becomes idle. \`conversation_deleted\`: the id of a deleted one. \
\`event\`: an event of a run. Those of a message come once, in order and without gaps, and end with \`complete\`; \
if it is retried after that, they start again from the first. Reconnect with \`Last-Event-ID\` to get a new snapshot \
and the missing events of what still runs.`

export function registerActivityRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'streams')
  const { store, activity, scrubber } = dependencies.gateway

  route(
    'GET /activity',
    { scope: 'read', allowsProjectTokens: true, isStream: true },
    'Stream the activity in all conversations that the token may see',
    { description: DESCRIPTION, querystring: streamQuery, headers: activityHeaders, response: { 200: streamResponse } },
    async (request, reply) => {
      const positions = readPositions(request.headers['last-event-id'])
      const visibility = await visibilityOf(callerOf(request), store)
      const options = { positions, canSee: canSee.bind(undefined, visibility) }
      const frames = (signal: AbortSignal) => framesOf(activity.watch(options, signal), scrubber)
      await answerWithStream(reply, (response) => sendFrames(response, frames), dependencies)
    },
  )
}

async function* framesOf(activities: AsyncIterable<Activity>, scrubber: Scrubber): AsyncGenerator<Buffer, void> {
  const positions = new Map<string, number>()
  for await (const next of activities) {
    switch (next.type) {
      case 'snapshot': {
        for (const [messageId, number] of next.positions) positions.set(messageId, number)
        const conversations = next.conversations.map((conversation) => ({
          ...conversationView(conversation, scrubber),
          last_event_id: next.positions.get(conversation.head?.messageId ?? '') ?? null,
        }))
        yield Buffer.concat([frame({ name: 'snapshot', data: { conversations } }, scrubber), cursorFrame(positions)])
        break
      }
      case 'conversation':
        yield frame({ name: 'conversation', data: conversationView(next.conversation, scrubber) }, scrubber)
        break
      case 'deleted':
        yield frame({ name: 'conversation_deleted', data: { id: next.conversationId } }, scrubber)
        break
      case 'events': {
        const last = next.events.at(-1)
        if (last?.event.type === 'final') positions.delete(next.messageId)
        else if (last) positions.set(next.messageId, last.number)
        const frames = next.events.map((event) => eventFrame(event, next.conversationId, next.messageId))
        yield Buffer.concat([...frames, cursorFrame(positions)])
        break
      }
    }
  }
}

function frame({ name, data }: ActivityEvent, scrubber: Scrubber): Buffer {
  return Buffer.from(formatFrame(undefined, name, scrubber.scrubJson(JSON.stringify(data))))
}

const eventFrame = builtOnce(({ number: id, event }: NumberedEvent, conversationId: string, messageId: string) => {
  const about = { conversation_id: conversationId, message_id: messageId, id, at: isoTime(event.timestamp) }
  return Buffer.from(formatFrame(undefined, 'event', JSON.stringify({ ...about, ...projectEvent(event) })))
})

/** Without data it is not an event, but clients still keep the id. */
function cursorFrame(positions: ReadonlyMap<string, number>): Buffer {
  return Buffer.from(`id: ${[...positions].map((pair) => pair.join(':')).join(',')}\n\n`)
}

/** Contract: throws `request_invalid` for anything that is not a frame's id. */
function readPositions(header: string | undefined = ''): Map<string, number> {
  const pairs = header === '' ? [] : header.split(',')
  if (pairs.length <= MAX_FOLLOWED * 2 && pairs.every((pair) => /^[\w-]{1,64}:\d{1,15}$/.test(pair))) {
    return new Map(pairs.map((pair) => pair.split(':')).map(([id = '', number]) => [id, Number(number)]))
  }
  const message = 'Last-Event-ID must be the last id received from this stream. Omit it to start over.'
  throw new GatewayError('request_invalid', message)
}
