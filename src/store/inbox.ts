// The messages received, and the lists of them that people see. The work they cause is in `jobs.ts`.

import { sql } from 'kysely'
import type { MessageKind, MessageOptions } from '../channels/types.js'
import type { JobState, MessageState, Schema } from './schema.js'
import { type Columns, compiled, fromJson, fromRow, isBehind, Table, toJson, toRow } from './table.js'
import { EVERYTHING, inVisibleConversation } from './visibility.js'

export interface NewMessage {
  id: string
  conversationId: string
  channel: string
  /** The platform's own id: identifies the same message if it is delivered again. */
  platformId: string
  seq: number
  kind: MessageKind
  author: string
  text: string
  options?: MessageOptions
}

export interface Message extends NewMessage {
  state: MessageState
  problem?: string
  /** The number of the last event of its stream when it was last retried. */
  retriedAfter?: number
  /** The lead message, whose turn also answers this one. */
  mergedInto?: string
  receivedAt: number
  finishedAt?: number
}

/** An open message. */
export interface WaitingMessage {
  id: string
  author: string
  text: string
  receivedAt: number
  state: JobState
  /** When it may run if `ready`; when the lease ends if `active`. */
  dueAt: number
}

export interface QueuedMessage extends WaitingMessage {
  conversationId: string
  channel: string
  address: string
  /** The gateway that works on it. */
  gatewayId?: string
  failures: number
  /** How many messages of its conversation are ahead of it. */
  position: number
}

/** Enough of a message to recognise it. */
export const BEGINNING = sql<string>`substr(messages.text, 1, 400)`

export class Inbox extends Table {
  /** False if the message was received before. */
  async add(message: NewMessage, state: 'open' | 'refused', problem: string | null, now: number): Promise<boolean> {
    const { id, conversationId, channel, platformId, seq, kind, author, text } = message
    const sent = { id, conversationId, channel, platformId, seq, kind, author, text, options: toJson(message.options) }
    const finishedAt = state === 'refused' ? now : null
    const { numAffectedRows } = await add(this.db, { ...sent, state, problem, receivedAt: now, finishedAt })
    return numAffectedRows === 1n
  }

  /** The messages that wait behind the first of a conversation, in order. */
  async behindFirst(conversationId: string, limit: number): Promise<Message[]> {
    const rows = await this.db
      .selectFrom('jobs')
      .innerJoin('messages', 'messages.id', 'jobs.message_id')
      .selectAll('messages')
      .where('jobs.conversation_id', '=', conversationId)
      .where('jobs.state', '=', sql.lit('queued'))
      .orderBy('jobs.seq')
      .limit(limit)
      .execute()
    return rows.map(toMessage)
  }

  /** Contract: nobody works on the message, and the conversation's row is locked. */
  async changeText(messageId: string, text: string): Promise<void> {
    await this.db.updateTable('messages').set({ text }).where('id', '=', messageId).execute()
  }

  async getAll(ids: string[]): Promise<Message[]> {
    // `in ()` is an error on PostgreSQL.
    if (ids.length === 0) return []
    const rows = await this.db.selectFrom('messages').selectAll().where('id', 'in', ids).execute()
    return rows.map(toMessage)
  }

  async get(id: string): Promise<Message | undefined> {
    const [row] = (await getOne(this.db, { id })).rows
    return row && toMessage(row)
  }

  /** At most two whose ids begin with what a person typed. Contract: `prefix` has only hex digits and dashes. */
  async findByPrefix(prefix: string): Promise<Message[]> {
    const rows = await this.db.selectFrom('messages').selectAll().where('id', 'like', `${prefix}%`).limit(2).execute()
    return rows.map(toMessage)
  }

  /** The platform's ids of all messages of a conversation. */
  async platformIds(conversationId: string): Promise<string[]> {
    const messages = this.db.selectFrom('messages').select('platform_id').where('conversation_id', '=', conversationId)
    return (await messages.execute()).map(({ platform_id: platformId }) => platformId)
  }

  /** The platform's ids of the messages that were answered together with another. */
  async mergedInto(leadId: string): Promise<string[]> {
    const rows = await this.db
      .selectFrom('messages')
      .select('platform_id')
      .where('merged_into', '=', leadId)
      .orderBy('seq')
      .execute()
    return rows.map(({ platform_id: platformId }) => platformId)
  }

  /** The latest message of a person in a conversation. Refused ones do not count, nor those merged into another. */
  async latest(conversationId: string): Promise<Message | undefined> {
    const row = await this.db
      .selectFrom('messages')
      .selectAll()
      .where('conversation_id', '=', conversationId)
      .where('kind', '=', sql.lit('message'))
      .where('state', '<>', sql.lit('refused'))
      .where('merged_into', 'is', null)
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst()
    return row && toMessage(row)
  }

  async findByPlatformId(channel: string, platformId: string): Promise<Message | undefined> {
    const row = await this.db
      .selectFrom('messages')
      .selectAll()
      .where('channel', '=', channel)
      .where('platform_id', '=', platformId)
      .executeTakeFirst()
    return row && toMessage(row)
  }

  /** The latest messages of a conversation after a number, oldest first. */
  async history(conversationId: string, limit: number, afterSeq = 0): Promise<Message[]> {
    const rows = await this.db
      .selectFrom('messages')
      .selectAll()
      .where('conversation_id', '=', conversationId)
      .where('seq', '>', afterSeq)
      .orderBy('seq', 'desc')
      .limit(limit)
      .execute()
    return rows.map(toMessage).toReversed()
  }

  /** The open messages of a conversation, in order, each with the beginning of its text. */
  async waiting(conversationId: string, limit: number): Promise<WaitingMessage[]> {
    const rows = await this.db
      .selectFrom('jobs')
      .innerJoin('messages', 'messages.id', 'jobs.message_id')
      .select([
        'messages.id',
        'messages.author',
        'messages.received_at',
        'jobs.state',
        'jobs.due_at',
        BEGINNING.as('text'),
      ])
      .where('jobs.conversation_id', '=', conversationId)
      .orderBy('jobs.seq')
      .limit(limit)
      .execute()
    return rows.map(fromRow)
  }

  /** All open messages, in the order in which they were received. */
  async listOpen(limit: number, visibility = EVERYTHING): Promise<QueuedMessage[]> {
    const rows = await this.db
      .selectFrom('jobs')
      .innerJoin('messages', 'messages.id', 'jobs.message_id')
      .innerJoin('conversations', 'conversations.id', 'jobs.conversation_id')
      .select([
        'messages.id',
        'messages.conversation_id',
        'messages.channel',
        'conversations.address',
        'messages.author',
        'messages.text',
        'messages.received_at',
        'jobs.state',
        'jobs.due_at',
        'jobs.gateway_id',
        'jobs.failures',
        sql<number>`row_number() over (partition by jobs.conversation_id order by jobs.seq) - 1`.as('position'),
      ])
      .where(inVisibleConversation(this.db, visibility, 'jobs.conversation_id'))
      .orderBy('messages.received_at')
      .orderBy('messages.id')
      .limit(limit)
      .execute()
    return rows.map(fromRow)
  }

  /** The messages in conversations whose address has the prefix, newest first; only those before `before`. */
  async listUnder(
    channel: string,
    prefix: string,
    limit: number,
    before?: Pick<Message, 'id' | 'receivedAt'>,
  ): Promise<Message[]> {
    let query = this.reads
      .selectFrom('messages')
      .innerJoin('conversations', 'conversations.id', 'messages.conversation_id')
      .selectAll('messages')
      .where('messages.channel', '=', channel)
      .where(sql`substr(conversations.address, 1, ${prefix.length})`, '=', prefix)
      .orderBy('messages.received_at', 'desc')
      .orderBy('messages.id')
      .limit(limit)
    if (before) {
      const last = { at: before.receivedAt, id: before.id }
      query = query.where(isBehind({ at: 'messages.received_at', id: 'messages.id' }, last))
    }
    return (await query.execute()).map(toMessage)
  }

  /** Whether at least `count` messages wait in conversations whose address has the prefix. */
  async haveWaitingUnder(channel: string, prefix: string, count: number): Promise<boolean> {
    const waiting = this.db
      .selectFrom('jobs')
      .select('jobs.message_id')
      .where('jobs.channel', '=', channel)
      .where('jobs.state', '<>', sql.lit('active'))
      .limit(1)
      .offset(count - 1)
    // Usually there are fewer in total, and no conversation needs to be looked up.
    if (!(await waiting.executeTakeFirst())) return false
    const theirs = waiting
      .innerJoin('conversations', 'conversations.id', 'jobs.conversation_id')
      .where(sql`substr(conversations.address, 1, ${prefix.length})`, '=', prefix)
    return (await theirs.executeTakeFirst()) !== undefined
  }

  /** How many messages are open, by the states of their jobs, and how many have failed. */
  async countByState(): Promise<Record<JobState | 'failed', number>> {
    const open = await this.db
      .selectFrom('jobs')
      .select(({ fn }) => ['state', fn.countAll<number>().as('count')] as const)
      .groupBy('state')
      .execute()
    const { count: failed } = await this.db
      .selectFrom('messages')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('state', '=', sql.lit('failed'))
      .where('merged_into', 'is', null)
      .executeTakeFirstOrThrow()
    return {
      queued: 0,
      ready: 0,
      active: 0,
      failed,
      ...Object.fromEntries(open.map(({ state, count }) => [state, count])),
    }
  }

  /** Dead letters, newest first; a message that failed with its lead message is not listed separately. */
  async listFailed(limit: number, visibility = EVERYTHING): Promise<Message[]> {
    const rows = await this.db
      .selectFrom('messages')
      .selectAll()
      .where('state', '=', sql.lit('failed'))
      .where('merged_into', 'is', null)
      .where(inVisibleConversation(this.db, visibility, 'messages.conversation_id'))
      .orderBy('finished_at', 'desc')
      .limit(limit)
      .execute()
    return rows.map(toMessage)
  }
}

type AddedMessage = Omit<Columns<'messages'>, 'fence' | 'retriedAfter' | 'mergedInto'>

const add = compiled((db, message: AddedMessage) =>
  db
    .insertInto('messages')
    .values({ ...toRow(message), fence: 0 })
    .onConflict((conflict) => conflict.columns(['channel', 'platform_id']).doNothing()),
)

const getOne = compiled((db, { id }: { id: string }) => db.selectFrom('messages').selectAll().where('id', '=', id))

export function toMessage({ fence: _fence, ...row }: Schema['messages']): Message {
  return fromRow({ ...row, options: fromJson(row.options) as MessageOptions | null })
}
