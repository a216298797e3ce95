import { z } from 'zod'
import type { Scrubber } from '../../credentials/scrubber.js'
import { GatewayError } from '../../errors.js'
import type { Message, QueuedMessage } from '../../store/inbox.js'
import type { Delivery } from '../../store/outbox.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { callerOf, noteOf } from './changes.js'
import { beginningOf, isoTime, pageQuery, timeSchema } from './schemas.js'
import { sightOf, visibleOf } from './sight.js'

export const waitingSchema = z.object({
  id: z.string(),
  state: z.enum(['queued', 'ready', 'active']).describe('As docs/queue-states.md draws them.'),
  channel: z.string(),
  conversation: z.string().describe('What the channel calls it.'),
  conversation_id: z.string(),
  author: z.string(),
  text: z.string().describe('Its beginning.'),
  position: z.number().describe('How many of its conversation come before it.'),
  failures: z.number(),
  received_at: timeSchema,
  due_at: timeSchema.describe('Of `ready`: when it may run; of `active`: when its lease ends.'),
})

export const messageSchema = z.object({
  id: z.string(),
  kind: z.literal('message'),
  state: z.enum(['open', 'answered', 'failed', 'cancelled', 'dropped', 'refused']),
  job: z.enum(['queued', 'ready', 'active']).nullable().describe('Of an open one: where it stands.'),
  channel: z.string(),
  conversation_id: z.string(),
  author: z.string(),
  text: z.string().describe('Its beginning.'),
  problem: z.string().nullable(),
  received_at: timeSchema,
  finished_at: timeSchema.nullable(),
})

export const replySchema = z.object({
  id: z.string(),
  kind: z.literal('reply'),
  state: z.enum(['pending', 'delivered', 'undelivered', 'dropped']),
  channel: z.string(),
  conversation_id: z.string(),
  message_id: z.string().nullable(),
  attempts: z.number(),
  problem: z.string().nullable(),
  created_at: timeSchema,
})

export const entrySchema = z.union([messageSchema, replySchema])

export const overviewSchema = z.object({
  open: z.array(waitingSchema),
  failed: z.array(messageSchema).describe('Dead letters, newest first.'),
  undelivered: z.array(replySchema).describe('Replies that could not be brought to their channel, newest first.'),
})

const entryParams = z.object({ id: z.uuid().describe('The id of a message or a reply.') })

export function registerQueueRoutes(app: App, dependencies: ServiceDependencies): void {
  const { gateway, now } = dependencies
  const { store, queue, scrubber } = gateway

  app.route({
    method: 'GET',
    url: '/queue',
    config: { scope: 'read' },
    schema: {
      summary: 'What waits, is worked on, has failed or could not be delivered',
      tags: ['queue'],
      querystring: pageQuery,
      response: { 200: overviewSchema },
    },
    handler: async (request) => {
      const { limit } = request.query
      const sight = await sightOf(callerOf(request), store)
      const open = await store.inbox.listOpen(limit, sight)
      const failed = await store.inbox.listFailed(limit, sight)
      const undelivered = await store.outbox.list('undelivered', limit, sight)
      return {
        open: open.map((message) => waitingView(message, scrubber)),
        failed: failed.map((message) => messageView(message, null, scrubber)),
        undelivered: undelivered.map(replyView),
      }
    },
  })

  app.route({
    method: 'GET',
    url: '/queue/:id',
    config: { scope: 'read' },
    schema: {
      summary: 'One message or reply',
      tags: ['queue'],
      params: entryParams,
      response: { 200: entrySchema },
    },
    handler: async (request) => show(request.params.id, callerOf(request)),
  })

  app.route({
    method: 'POST',
    url: '/queue/:id/retry',
    config: { scope: 'admin' },
    schema: {
      summary: 'Take up a dead letter, or send an undelivered reply again',
      tags: ['queue'],
      params: entryParams,
      response: { 200: entrySchema },
    },
    handler: async (request) => {
      const { id } = request.params
      await queue.retry(id, noteOf(request, now))
      gateway.wake()
      return show(id, callerOf(request))
    },
  })

  app.route({
    method: 'DELETE',
    url: '/queue/:id',
    config: { scope: 'admin' },
    schema: {
      summary: 'Take a message out that nobody works on, or let go of a reply',
      tags: ['queue'],
      params: entryParams,
      response: { 200: entrySchema },
    },
    handler: async (request) => {
      const { id } = request.params
      const outcome = await queue.drop(id, noteOf(request, now))
      if (outcome === 'active') {
        const advice = 'Cancel its command, or stop it in its conversation with /stop.'
        throw new GatewayError('conflict', `${id} is worked on. ${advice}`)
      }
      if (outcome === 'finished') throw new GatewayError('conflict', `${id} is finished: there is nothing to drop.`)
      gateway.wake()
      return show(id, callerOf(request))
    },
  })

  async function show(id: string, caller: Caller): Promise<z.output<typeof entrySchema>> {
    const [message] = await visibleOf(await store.inbox.getAll([id]), caller, store)
    if (message) return messageView(message, (await store.inbox.job(id))?.state ?? null, scrubber)
    const [reply] = await visibleOf(await store.outbox.getAll([id], []), caller, store)
    if (reply) return replyView(reply)
    throw new GatewayError('not_found', `There is no message or reply ${id}. GET /queue shows those there are.`)
  }
}

function waitingView(message: QueuedMessage, scrubber: Scrubber): z.output<typeof waitingSchema> {
  return {
    id: message.id,
    state: message.state,
    channel: message.channel,
    conversation: message.address,
    conversation_id: message.conversationId,
    author: message.author,
    text: beginningOf(message.text, scrubber),
    position: message.position,
    failures: message.failures,
    received_at: isoTime(message.receivedAt),
    due_at: isoTime(message.dueAt),
  }
}

function messageView(
  message: Message,
  job: z.output<typeof messageSchema>['job'],
  scrubber: Scrubber,
): z.output<typeof messageSchema> {
  return {
    id: message.id,
    kind: 'message',
    state: message.state,
    job,
    channel: message.channel,
    conversation_id: message.conversationId,
    author: message.author,
    text: beginningOf(message.text, scrubber),
    problem: message.problem ?? null,
    received_at: isoTime(message.receivedAt),
    finished_at: message.finishedAt === undefined ? null : isoTime(message.finishedAt),
  }
}

function replyView(reply: Delivery): z.output<typeof replySchema> {
  return {
    id: reply.id,
    kind: 'reply',
    state: reply.state,
    channel: reply.channel,
    conversation_id: reply.conversationId,
    message_id: reply.messageId ?? null,
    attempts: reply.attempts,
    problem: reply.problem ?? null,
    created_at: isoTime(reply.createdAt),
  }
}
