import { z } from 'zod'
import { timeSchema } from './values.js'

export const entryParams = z.object({ id: z.uuid().describe('The id of a message or a reply.') })

export const waitingSchema = z.object({
  id: z.string(),
  state: z.enum(['queued', 'ready', 'active']).describe('See docs/queue-states.md.'),
  channel: z.string(),
  conversation: z.string().describe("The channel's own name for it."),
  conversation_id: z.string(),
  author: z.string(),
  text: z.string().describe('The beginning of the message.'),
  position: z.number().describe('The number of messages before it in its conversation.'),
  failures: z.number(),
  received_at: timeSchema,
  due_at: timeSchema.describe('For `ready`: when it may run; for `active`: when its lease expires.'),
})
export type WaitingMessage = z.output<typeof waitingSchema>

export const messageSchema = z.object({
  id: z.string(),
  kind: z.literal('message'),
  state: z.enum(['open', 'answered', 'failed', 'cancelled', 'dropped', 'refused']),
  job: z.enum(['queued', 'ready', 'active']).nullable().describe('For an open message: the state of its job.'),
  channel: z.string(),
  conversation_id: z.string(),
  author: z.string(),
  text: z.string().describe('The beginning of the message.'),
  problem: z.string().nullable(),
  received_at: timeSchema,
  finished_at: timeSchema.nullable(),
})
export type QueuedMessage = z.output<typeof messageSchema>

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
export type QueuedReply = z.output<typeof replySchema>

export const entrySchema = z.union([messageSchema, replySchema])
export type QueueEntry = z.output<typeof entrySchema>

export const overviewSchema = z.object({
  open: z.array(waitingSchema),
  failed: z.array(messageSchema).describe('Dead letters, newest first.'),
  undelivered: z.array(replySchema).describe('Replies that could not be delivered, newest first.'),
})
export type QueueOverview = z.output<typeof overviewSchema>
