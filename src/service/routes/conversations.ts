import { z } from 'zod'
import { excerptOf, searchArchive, typedWords } from '../../archive/search.js'
import { GatewayError } from '../../errors.js'
import type { SearchedText } from '../../store/archive-queries.js'
import { CONVERSATION_STATES, type ConversationFilter, type ConversationView } from '../../store/conversation-views.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { projectEvent, STREAM_EVENT_NAMES } from '../event-projection.js'
import { callerOf } from './changes.js'
import { runSchema, runView } from './command-view.js'
import {
  conversationDetails,
  conversationDetailsSchema,
  conversationSchema,
  conversationView,
  transcriptEntrySchema,
  transcriptView,
} from './conversation-view.js'
import { isoTime, nameSchema, pageQuery, timeSchema } from './schemas.js'
import { findConversation, sightOf, visibleOf } from './sight.js'

export const conversationParams = z.object({ id: z.uuid().describe('The id of the conversation.') })

const listQuery = pageQuery.extend({
  before: z
    .string()
    .regex(/^\d{1,15}_[\w-]{1,64}$/, 'invalid before: take `next` of a page')
    .optional()
    .describe('`next` of a page before.'),
  state: z.enum(CONVERSATION_STATES).optional(),
  channel: nameSchema.optional(),
  project: nameSchema.optional().describe('The id of a project.'),
  q: z
    .string()
    .max(500)
    .refine((q) => typedWords(words(q)).length > 0, 'there is no word to look for')
    .optional()
    .describe('Words, each of which must be in the same message or reply. Those with the latest hit come first.'),
})

const foundSchema = conversationSchema.extend({
  match: z
    .object({
      type: z.enum(['message', 'reply']),
      id: z.string(),
      author: z.string().nullable().describe('Null when the gateway itself spoke.'),
      text: z.string().describe('The line with the hit.'),
      at: timeSchema,
    })
    .nullable()
    .describe('The latest hit of a search.'),
})

export const conversationPageSchema = z.object({
  conversations: z.array(foundSchema),
  next: z.string().nullable().describe('For `before`, to see older ones; null when there are none.'),
})

export const transcriptPageSchema = z.object({
  entries: z.array(transcriptEntrySchema),
  next: z.number().nullable().describe('For `before`, to see older ones; null when there are none.'),
})

export const runEventSchema = z.object({
  id: z.number().describe('Counts from 1 without gaps over all runs of its message.'),
  at: timeSchema,
  name: z.enum(STREAM_EVENT_NAMES),
  data: z.record(z.string(), z.unknown()),
})

export const runEventsSchema = z.object({
  run: runSchema,
  conversation_id: z.string(),
  message_id: z.string(),
  events: z.array(runEventSchema),
  next: z.number().nullable().describe('For `after`, to see the next ones; null when there are no more for now.'),
})

const EXCERPT_CHARACTERS = 200
/** Of a transcript or of events, in one answer. */
const PAGE_BYTES = 1_000_000
const CONVERSATIONS_AT_ONCE = 50
/** Of a search: what may hold its words, the newest. */
const MOST_CANDIDATES = 50_000

interface Found {
  conversation: ConversationView
  hit?: SearchedText
}

export function registerConversationRoutes(app: App, dependencies: ServiceDependencies): void {
  const { gateway } = dependencies
  const { store, scrubber } = gateway

  app.route({
    method: 'GET',
    url: '/conversations',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'Conversations of all channels, latest first',
      tags: ['conversations'],
      querystring: listQuery,
      response: { 200: conversationPageSchema },
    },
    handler: async (request) => {
      const { limit, before, state, channel, project, q } = request.query
      const filter = {
        sight: await sightOf(callerOf(request), store),
        ...(state !== undefined && { state }),
        ...(channel !== undefined && { channel }),
        ...(project !== undefined && { projectId: project }),
      }
      const [time, id = ''] = before?.split('_') ?? []
      const last = time === undefined ? undefined : { id, updatedAt: Number(time) }
      const found =
        q === undefined
          ? (await store.conversationViews.list(filter, limit + 1, last)).map((conversation) => ({ conversation }))
          : await search(words(q), filter, limit + 1, last)
      const page = found.slice(0, limit)
      const end = page.at(-1)
      return {
        conversations: page.map((entry) => foundView(entry, q)),
        next: end && found.length > limit ? `${timeOf(end)}_${end.conversation.id}` : null,
      }
    },
  })

  app.route({
    method: 'GET',
    url: '/conversations/:id',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'A conversation: its agent, its session, what waits, what it has used',
      tags: ['conversations'],
      params: conversationParams,
      response: { 200: conversationDetailsSchema },
    },
    handler: async (request) =>
      conversationDetails(await findConversation(request.params.id, callerOf(request), store), dependencies),
  })

  app.route({
    method: 'GET',
    url: '/conversations/:id/messages',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'What was said in a conversation, latest first',
      tags: ['conversations'],
      params: conversationParams,
      querystring: pageQuery.extend({
        before: z.coerce
          .number()
          .int()
          .min(1)
          .optional()
          .describe('The number of an entry: only older ones are listed.'),
      }),
      response: { 200: transcriptPageSchema },
    },
    handler: async (request) => {
      const { limit, before } = request.query
      const { id } = await findConversation(request.params.id, callerOf(request), store)
      const limits = { entries: limit, bytes: PAGE_BYTES }
      const { entries, isLast } = await store.conversationViews.transcript(id, limits, before)
      return { entries: await transcriptView(entries, store), next: isLast ? null : (entries.at(-1)?.seq ?? null) }
    },
  })

  app.route({
    method: 'GET',
    url: '/runs/:id/events',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'The events of a run as they are stored, in order',
      tags: ['conversations'],
      params: z.object({ id: z.uuid().describe('The id of the run.') }),
      querystring: z.object({
        after: z.coerce.number().int().min(0).default(0).describe('The id of an event: only later ones are listed.'),
        limit: z.coerce.number().int().min(1).max(1000).default(200).describe('How many at most.'),
      }),
      response: { 200: runEventsSchema },
    },
    handler: async (request) => {
      const { after, limit } = request.query
      const found = await store.runs.get(request.params.id)
      const [run] = await visibleOf(found ? [found] : [], callerOf(request), store)
      if (!run) throw new GatewayError('not_found', `There is no run ${request.params.id} that this token may see.`)
      const { firstSeq, messageId, conversationId } = run
      const limits = { events: limit, bytes: PAGE_BYTES }
      const page = await store.runs.page(run.id, Math.max(0, after - firstSeq), limits)
      const events = page.events.map(({ seq, event }) => ({
        id: firstSeq + seq,
        at: isoTime(event.timestamp),
        ...projectEvent(event),
      }))
      return {
        run: runView(run),
        conversation_id: conversationId,
        message_id: messageId,
        events,
        next: page.isLast ? null : (events.at(-1)?.id ?? null),
      }
    },
  })

  /** Conversations with a hit, those with the latest first, after `last`. */
  async function search(
    wanted: string[],
    filter: ConversationFilter,
    limit: number,
    last: Pick<ConversationView, 'id' | 'updatedAt'> | undefined,
  ): Promise<Found[]> {
    const { channel, sight } = filter
    const looked = { sight, limit: MOST_CANDIDATES, ...(channel !== undefined && { channel }) }
    const found: Found[] = []
    const seen = new Set<string>()
    let batch: SearchedText[] = []
    const look = async (): Promise<void> => {
      const ids = batch.map(({ conversationId }) => conversationId)
      const visible = await store.conversationViews.list({ ...filter, ids }, ids.length)
      for (const hit of batch) {
        const conversation = visible.find(({ id }) => id === hit.conversationId)
        if (conversation) found.push({ conversation, hit })
      }
      batch = []
    }
    for await (const hit of searchArchive(store, wanted, looked)) {
      if (seen.has(hit.conversationId)) continue
      seen.add(hit.conversationId)
      if (last && (hit.at > last.updatedAt || (hit.at === last.updatedAt && hit.conversationId <= last.id))) continue
      batch.push(hit)
      if (batch.length === CONVERSATIONS_AT_ONCE) await look()
      if (found.length >= limit) return found.slice(0, limit)
    }
    await look()
    return found.slice(0, limit)
  }

  function foundView({ conversation, hit }: Found, q = ''): z.output<typeof foundSchema> {
    return {
      ...conversationView(conversation, scrubber),
      match: hit
        ? {
            type: hit.type,
            id: hit.id,
            author: hit.author ?? null,
            // Before it is cut: half a secret would not be known for one.
            text: excerptOf(scrubber.scrub(hit.text), words(q), EXCERPT_CHARACTERS),
            at: isoTime(hit.at),
          }
        : null,
    }
  }
}

function words(q: string): string[] {
  return q.split(/\s+/)
}

/** By which it stands in its list. */
function timeOf({ conversation, hit }: Found): number {
  return hit?.at ?? conversation.updatedAt
}
