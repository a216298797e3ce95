import type { Scrubber } from '../../credentials/scrubber.js'
import { GatewayError } from '../../errors.js'
import type { Message, QueuedMessage } from '../../store/inbox.js'
import type { Delivery } from '../../store/outbox.js'
import * as api from '../api/queue.js'
import { pageQuery } from '../api/values.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'
import { beginningOf } from './beginning-of.js'
import { callerOf, auditFor } from './changes.js'
import { visibilityOf, visibleOf } from './visibility.js'

export function registerQueueRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'queue')
  const { gateway, now } = dependencies
  const { store, queue, scrubber } = gateway

  route(
    'GET /queue',
    { scope: 'read' },
    'List messages that wait, run or failed, and undelivered replies',
    { querystring: pageQuery, response: { 200: api.overviewSchema } },
    async (request) => {
      const { limit } = request.query
      const visibility = await visibilityOf(callerOf(request), store)
      const open = await store.inbox.listOpen(limit, visibility)
      const failed = await store.inbox.listFailed(limit, visibility)
      const undelivered = await store.outbox.list('undelivered', limit, visibility)
      return {
        open: open.map((message) => waitingView(message, scrubber)),
        failed: failed.map((message) => messageView(message, null, scrubber)),
        undelivered: undelivered.map(replyView),
      }
    },
  )

  route(
    'GET /queue/:id',
    { scope: 'read' },
    'Show a message or reply',
    { params: api.entryParams, response: { 200: api.entrySchema } },
    async (request) => show(request.params.id, callerOf(request)),
  )

  route(
    'POST /queue/:id/retry',
    { scope: 'admin' },
    'Retry a dead letter, or send an undelivered reply again',
    { params: api.entryParams, response: { 200: api.entrySchema } },
    async (request) => {
      const { id } = request.params
      await queue.retry(id, auditFor(request, now))
      gateway.wake()
      return show(id, callerOf(request))
    },
  )

  route(
    'DELETE /queue/:id',
    { scope: 'admin' },
    'Discard a message that is not running, or a reply',
    { params: api.entryParams, response: { 200: api.entrySchema } },
    async (request) => {
      const { id } = request.params
      const outcome = await queue.drop(id, auditFor(request, now))
      if (outcome === 'active') {
        const advice = 'Cancel its command, or send /stop in its conversation.'
        throw new GatewayError('conflict', `Message ${id} is running. ${advice}`)
      }
      if (outcome === 'finished') throw new GatewayError('conflict', `${id} is finished. There is nothing to discard.`)
      gateway.wake()
      return show(id, callerOf(request))
    },
  )

  async function show(id: string, caller: Caller): Promise<api.QueueEntry> {
    const [message] = await visibleOf(await store.inbox.getAll([id]), caller, store)
    if (message) return messageView(message, (await store.jobs.get(id))?.state ?? null, scrubber)
    const [reply] = await visibleOf(await store.outbox.getAll([id], []), caller, store)
    if (reply) return replyView(reply)
    throw new GatewayError('not_found', `There is no message or reply ${id}. List them with GET /queue.`)
  }
}

function waitingView(message: QueuedMessage, scrubber: Scrubber): api.WaitingMessage {
  const { address: conversation } = message
  return toWire(api.waitingSchema, { ...message, conversation, text: beginningOf(message.text, scrubber) })
}

function messageView(message: Message, job: api.QueuedMessage['job'], scrubber: Scrubber): api.QueuedMessage {
  return toWire(api.messageSchema, { ...message, kind: 'message', job, text: beginningOf(message.text, scrubber) })
}

function replyView(reply: Delivery): api.QueuedReply {
  return toWire(api.replySchema, { ...reply, kind: 'reply' })
}
