import { excerptOf, searchArchive } from '../../archive/search.js'
import type { Scrubber } from '../../credentials/scrubber.js'
import { GatewayError } from '../../errors.js'
import type { SearchedText } from '../../store/archive-queries.js'
import type { ConversationFilter, ConversationView } from '../../store/conversation-views.js'
import type { Store } from '../../store/store.js'
import * as api from '../api/conversations.js'
import { runEventsQuery, runEventsSchema, runParams } from '../api/events.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { projectEvent } from '../event-projection.js'
import { routesOf } from '../route.js'
import { definedFields, isoTime, toWire } from '../wire.js'
import { callerOf } from './changes.js'
import { runView } from './command-view.js'
import { conversationDetails, conversationView, transcriptView } from './conversation-view.js'
import { findConversation, visibilityOf, visibleOf } from './visibility.js'

const EXCERPT_CHARACTERS = 200
/** Limit of a transcript or event page. */
const PAGE_BYTES = 1_000_000
const BATCH_CONVERSATIONS = 50
/** How many of the newest candidates a search reads. */
const MAX_CANDIDATES = 50_000

interface Found {
  conversation: ConversationView
  hit?: SearchedText
}

export function registerConversationRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'conversations')
  const { gateway } = dependencies
  const { store, scrubber } = gateway

  route(
    'GET /conversations',
    { scope: 'read', allowsProjectTokens: true },
    'List the conversations of all channels, latest first',
    { querystring: api.conversationQuery, response: { 200: api.conversationPageSchema } },
    async (request) => {
      const { limit, before, state, channel, project, pinned, archived, q } = request.query
      const visibility = await visibilityOf(callerOf(request), store)
      const label = { isPinned: pinned, isArchived: archived }
      const filter = definedFields({ visibility, state, channel, projectId: project, ...label })
      const [time, id = ''] = before?.split('_') ?? []
      const last = time === undefined ? undefined : { id, updatedAt: Number(time) }
      const found =
        q === undefined
          ? (await store.conversationViews.list(filter, limit + 1, last)).map((conversation) => ({ conversation }))
          : await search(api.wordsOf(q), filter, limit + 1, last, store)
      const page = found.slice(0, limit)
      const end = page.at(-1)
      return {
        conversations: page.map((entry) => foundView(entry, q ?? '', scrubber)),
        next: end && found.length > limit ? `${timeOf(end)}_${end.conversation.id}` : null,
      }
    },
  )

  route(
    'GET /conversations/:id',
    { scope: 'read', allowsProjectTokens: true },
    'Show a conversation, with its agent, session, queue and usage',
    { params: api.conversationParams, response: { 200: api.conversationDetailsSchema } },
    async (request) =>
      conversationDetails(await findConversation(request.params.id, callerOf(request), store), dependencies),
  )

  route(
    'GET /conversations/:id/messages',
    { scope: 'read', allowsProjectTokens: true },
    'List the messages and replies of a conversation, latest first',
    { params: api.conversationParams, querystring: api.transcriptQuery, response: { 200: api.transcriptPageSchema } },
    async (request) => {
      const { limit, before } = request.query
      const { id } = await findConversation(request.params.id, callerOf(request), store)
      const limits = { entries: limit, bytes: PAGE_BYTES }
      const { entries, isLast } = await store.conversationViews.transcript(id, limits, before)
      return { entries: await transcriptView(entries, store), next: isLast ? null : (entries.at(-1)?.seq ?? null) }
    },
  )

  route(
    'GET /runs/:id/events',
    { scope: 'read', allowsProjectTokens: true },
    'List the stored events of a run, in order',
    { params: runParams, querystring: runEventsQuery, response: { 200: runEventsSchema } },
    async (request) => {
      const { after, limit } = request.query
      const found = await store.runs.get(request.params.id)
      const [run] = await visibleOf(found ? [found] : [], callerOf(request), store)
      if (!run) throw new GatewayError('not_found', `There is no run ${request.params.id} that this token may see.`)
      const { firstSeq, messageId, conversationId } = run
      const limits = { events: limit, bytes: PAGE_BYTES }
      const page = await store.events.page(run.id, Math.max(0, after - firstSeq), limits)
      const events = page.events.map(({ seq, event }) => ({
        id: firstSeq + seq,
        at: isoTime(event.timestamp),
        ...projectEvent(event),
      }))
      return {
        run: runView(run, await store.inbox.get(messageId)),
        conversation_id: conversationId,
        message_id: messageId,
        events,
        next: page.isLast ? null : (events.at(-1)?.id ?? null),
      }
    },
  )
}

/** Conversations with a match, latest match first, after `last`. */
async function search(
  words: string[],
  filter: ConversationFilter,
  limit: number,
  last: Pick<ConversationView, 'id' | 'updatedAt'> | undefined,
  store: Store,
): Promise<Found[]> {
  const { channel, visibility } = filter
  const found: Found[] = []
  const seen = new Set<string>()
  let batch: SearchedText[] = []
  const lookUpBatch = async (): Promise<void> => {
    const ids = batch.map(({ conversationId }) => conversationId)
    const visible = await store.conversationViews.list({ ...filter, ids }, ids.length)
    for (const hit of batch) {
      const conversation = visible.find(({ id }) => id === hit.conversationId)
      if (conversation) found.push({ conversation, hit })
    }
    batch = []
  }
  for await (const hit of searchArchive(store, words, definedFields({ visibility, limit: MAX_CANDIDATES, channel }))) {
    if (seen.has(hit.conversationId)) continue
    seen.add(hit.conversationId)
    if (last && (hit.at > last.updatedAt || (hit.at === last.updatedAt && hit.conversationId <= last.id))) continue
    batch.push(hit)
    if (batch.length === BATCH_CONVERSATIONS) await lookUpBatch()
    if (found.length >= limit) return found.slice(0, limit)
  }
  await lookUpBatch()
  return found.slice(0, limit)
}

function foundView({ conversation, hit }: Found, q: string, scrubber: Scrubber): api.FoundConversation {
  const view = conversationView(conversation, scrubber)
  if (!hit) return { ...view, match: null }
  // Scrub before cutting: half a secret would not be recognised.
  const text = excerptOf(scrubber.scrub(hit.text), api.wordsOf(q), EXCERPT_CHARACTERS)
  return { ...view, match: toWire(api.matchSchema, { ...hit, text }) }
}

/** Its sort key. */
function timeOf({ conversation, hit }: Found): number {
  return hit?.at ?? conversation.updatedAt
}
