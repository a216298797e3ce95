// Messages, and the jobs that answer them.
//
// What must stay true, whatever runs at once:
// - A job gets its place while its conversation's row is locked (`Conversations.enter`), so numbers become visible in
//   order.
// - Only the first job of a conversation is `ready` or `active`; a unique index holds it.
// - A worker writes only under the fence of its claim. A claim by anybody else makes that fence stale.
// - A merged message has no job. Whatever ends the message it was merged into ends it, too, or gives it its job back.

import { type Kysely, sql } from 'kysely'
import type { MessageKind, MessageOptions } from '../channels/types.js'
import { compiled, only } from './compiled.js'
import { EVERYTHING, inSight } from './conversation-views.js'
import type { ClaimLimits, ClaimValues, Engine } from './engine.js'
import type { JobState, MessageState, Schema } from './schema.js'

export interface NewMessage {
  id: string
  conversationId: string
  channel: string
  /** The platform's own id: the same message delivered again is recognised by it. */
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
  /** The number of the end that its stream had when it was last taken up again. */
  retriedAfter?: number
  /** The message whose turn answers it, too. */
  mergedInto?: string
  receivedAt: number
  finishedAt?: number
}

/** What a worker holds while it works. */
export interface Claim {
  messageId: string
  conversationId: string
  fence: number
  failures: number
  interruptions: number
  /** It is to end without a turn. */
  isCancelled: boolean
}

export interface QueuedMessage {
  id: string
  conversationId: string
  channel: string
  address: string
  author: string
  text: string
  receivedAt: number
  state: JobState
  /** Of `ready`: when it may run; of `active`: when the lease ends. */
  dueAt: number
  /** Who works on it. */
  gatewayId?: string
  failures: number
  /** How many of its conversation come before it. */
  position: number
}

/** A message that is worked on, or waits for it. */
export interface WaitingMessage {
  id: string
  author: string
  /** Its beginning. */
  text: string
  receivedAt: number
  state: JobState
  /** Of `ready`: when it may run. */
  dueAt: number
}

/** Enough to recognise a message by. */
const BEGINNING_CHARACTERS = 400

export class Inbox {
  constructor(
    private readonly db: Kysely<Schema>,
    private readonly engine: Engine,
    private readonly reads: Kysely<Schema>,
  ) {}

  /** Whether it was new. */
  async add(message: NewMessage, state: 'open' | 'refused', problem: string | null, now: number): Promise<boolean> {
    const options = message.options === undefined ? null : JSON.stringify(message.options)
    const finishedAt = state === 'refused' ? now : null
    const { numAffectedRows } = await add(this.db, { ...message, options, state, problem, now, finishedAt })
    return numAffectedRows === 1n
  }

  /**
   * Puts a message behind the `ahead` others of its conversation.
   *
   * Contract: they were counted while the conversation's row is locked.
   */
  async enqueue(
    { id, conversationId, channel, seq }: Pick<Message, 'id' | 'conversationId' | 'channel' | 'seq'>,
    ahead: number,
    now: number,
    fence = 0,
  ): Promise<void> {
    const state = ahead === 0 ? 'ready' : 'queued'
    const job = { id, conversationId, channel, seq, state, dueAt: now, fence, gatewayId: null } as const
    await enqueue(this.db, job)
    await this.engine.announce(this.db)
  }

  /** Puts a message to work at once. Contract: as of `enqueue`, and there are no others. */
  async enqueueClaimed(
    { id, conversationId, channel, seq }: NewMessage,
    gatewayId: string,
    now: number,
    leaseMs: number,
  ): Promise<Claim> {
    const job = {
      id,
      conversationId,
      channel,
      seq,
      state: 'active',
      dueAt: now + leaseMs,
      fence: 1,
      gatewayId,
    } as const
    await enqueue(this.db, job)
    return { messageId: id, conversationId, fence: 1, failures: 0, interruptions: 0, isCancelled: false }
  }

  /** How many of a conversation are not finished. */
  async countOpen(conversationId: string): Promise<number> {
    return only(await countOpen(this.db, { conversationId })).count
  }

  /**
   * Takes what has been due longest: a first job that may run, or one whose lease has ended.
   *
   * Contract: whoever held it before can no longer write.
   */
  async claim(
    gatewayId: string,
    channels: string[],
    now: number,
    leaseMs: number,
    { address, except = [] }: ClaimLimits = {},
  ): Promise<Claim | undefined> {
    if (channels.length === 0) return undefined
    const { locksRows } = this.engine
    const values = { gatewayId, channels, address, except, now, leaseEnd: now + leaseMs, locksRows }
    const [row] = (await claim(this.db, values)).rows
    return (
      row && {
        messageId: row.message_id,
        conversationId: row.conversation_id,
        fence: row.fence,
        failures: row.failures,
        interruptions: row.interruptions,
        isCancelled: row.is_cancelled === 1,
      }
    )
  }

  /** Keeps a claim. `lost` when somebody else has it now. */
  async renew({ messageId, fence }: Claim, now: number, leaseMs: number): Promise<'held' | 'cancelled' | 'lost'> {
    const row = await this.db
      .updateTable('jobs')
      .set({ due_at: now + leaseMs })
      .where('message_id', '=', messageId)
      .where('fence', '=', fence)
      .where('state', '=', sql.lit('active'))
      .returning('is_cancelled')
      .executeTakeFirst()
    if (!row) return 'lost'
    return row.is_cancelled === 1 ? 'cancelled' : 'held'
  }

  /** Gives a claim back, to be taken up at `dueAt`; it stays the first of its conversation. Whether it still was ours. */
  async release({ messageId, fence }: Claim, dueAt: number, hasFailed: boolean): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('jobs')
      .set(({ eb }) => ({
        state: 'ready',
        due_at: dueAt,
        gateway_id: null,
        fence: eb('fence', '+', 1),
        failures: eb('failures', '+', hasFailed ? 1 : 0),
      }))
      .where('message_id', '=', messageId)
      .where('fence', '=', fence)
      .where('state', '=', sql.lit('active'))
      .executeTakeFirstOrThrow()
    return numUpdatedRows === 1n
  }

  /**
   * Ends a message, with those merged into it, and lets the next of its conversation come. Whether the claim still was ours.
   *
   * Contract: the conversation's row is locked.
   */
  async finish(
    { messageId, conversationId, fence }: Pick<Claim, 'messageId' | 'conversationId' | 'fence'>,
    state: MessageState,
    problem: string | null,
    now: number,
    mayHaveMerged = true,
  ): Promise<boolean> {
    const { numAffectedRows } = await removeJob(this.db, { messageId, fence })
    if (numAffectedRows !== 1n) return false
    await finish(this.db, { messageId, state, problem, fence, now })
    if (mayHaveMerged) await finishMerged(this.db, { messageId, state, problem, now })
    const promoted = await promote(this.db, { conversationId, now })
    if (promoted.numAffectedRows !== 0n) await this.engine.announce(this.db)
    return true
  }

  /** The job of a message, if it has one: its message is open. */
  async job(messageId: string): Promise<{ state: JobState; fence: number } | undefined> {
    let query = this.db.selectFrom('jobs').select(['state', 'fence']).where('message_id', '=', messageId)
    // Else a claim could come between this look and what is done about it.
    if (this.engine.locksRows) query = query.forUpdate()
    return query.executeTakeFirst()
  }

  /** The job of a conversation that is worked on, or comes next. */
  async first(conversationId: string): Promise<{ messageId: string; state: JobState; dueAt: number } | undefined> {
    const row = await this.db
      .selectFrom('jobs')
      .select(['message_id', 'state', 'due_at'])
      .where('conversation_id', '=', conversationId)
      .where('state', '<>', sql.lit('queued'))
      .executeTakeFirst()
    return row && { messageId: row.message_id, state: row.state, dueAt: row.due_at }
  }

  /** What waits in a conversation behind the first, in order. */
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

  /** Lets messages be answered with another of their conversation; those that wait no more are left out.
   *  Contract: that one is the first, and the caller's own. */
  async merge(messageIds: string[], carrierId: string): Promise<void> {
    if (messageIds.length === 0) return
    const rows = await this.db
      .deleteFrom('jobs')
      .where('message_id', 'in', messageIds)
      .where('state', '=', sql.lit('queued'))
      .returning('message_id')
      .execute()
    if (rows.length === 0) return
    const ids = rows.map(({ message_id }) => message_id)
    await this.db.updateTable('messages').set({ merged_into: carrierId }).where('id', 'in', ids).execute()
  }

  /** The open ones that are answered with another, in order. */
  async mergedInto(carrierId: string, state: 'open' | 'failed' = 'open'): Promise<Message[]> {
    const { rows } = await mergedInto(this.db, { carrierId, hasFailed: state === 'failed' })
    return rows.map(toMessage)
  }

  /** Lets a message wait for a turn of its own again, in its old place. Contract: the conversation's row is locked, and the
   *  message it was merged into still has its job. */
  async unmerge(message: Message, now: number): Promise<void> {
    await this.#forgetMerge(message.id)
    await this.enqueue(message, 1, now)
  }

  /** Takes a merged message out. Contract: nobody works on it, and the conversation's row is locked. */
  async dropMerged(messageId: string, now: number): Promise<void> {
    await this.#forgetMerge(messageId)
    await this.db
      .updateTable('messages')
      .set({ state: 'dropped', finished_at: now })
      .where('id', '=', messageId)
      .execute()
  }

  async #forgetMerge(messageId: string): Promise<void> {
    await this.db.updateTable('messages').set({ merged_into: null }).where('id', '=', messageId).execute()
  }

  /** Contract: nobody works on it, and the conversation's row is locked. */
  async changeText(messageId: string, text: string): Promise<void> {
    await this.db.updateTable('messages').set({ text }).where('id', '=', messageId).execute()
  }

  /** Asks whoever works on it to stop; they see it when they renew. */
  async requestCancel(messageId: string): Promise<void> {
    await this.db.updateTable('jobs').set({ is_cancelled: 1 }).where('message_id', '=', messageId).execute()
    await this.engine.announce(this.db, messageId)
  }

  /** Ends the leases of a gateway that is known to be dead. How many there were. */
  async expireLeases(gatewayId: string, now: number): Promise<number> {
    const { numUpdatedRows } = await this.db
      .updateTable('jobs')
      .set({ due_at: now })
      .where('gateway_id', '=', gatewayId)
      .where('state', '=', sql.lit('active'))
      .executeTakeFirstOrThrow()
    return Number(numUpdatedRows)
  }

  /** Takes up a dead letter again, as if it had come now. Contract: the conversation's row is locked. */
  async reopen(message: Message, seq: number, retriedAfter: number, now: number): Promise<void> {
    const { fence } = await this.db
      .updateTable('messages')
      .set({ state: 'open', problem: null, finished_at: null, seq, retried_after: retriedAfter })
      .where('id', '=', message.id)
      .returning('fence')
      .executeTakeFirstOrThrow()
    await this.enqueue({ ...message, seq }, await this.countOpen(message.conversationId), now, fence + 1)
  }

  /** As `reopen`, for one that failed with the message it was merged into. */
  async reopenMerged(messageId: string, seq: number): Promise<void> {
    await this.db
      .updateTable('messages')
      .set({ state: 'open', problem: null, finished_at: null, seq })
      .where('id', '=', messageId)
      .execute()
  }

  /** Lets go of a dead letter, with all that failed with it. */
  async discard(messageId: string, now: number): Promise<void> {
    await this.db
      .updateTable('messages')
      .set({ state: 'dropped', finished_at: now })
      .where(({ or, eb }) => or([eb('id', '=', messageId), eb('merged_into', '=', messageId)]))
      .where('state', '=', sql.lit('failed'))
      .execute()
  }

  async getAll(ids: string[]): Promise<Message[]> {
    // PostgreSQL has no empty list.
    if (ids.length === 0) return []
    const rows = await this.db.selectFrom('messages').selectAll().where('id', 'in', ids).execute()
    return rows.map(toMessage)
  }

  async get(id: string): Promise<Message | undefined> {
    const [row] = (await getOne(this.db, { id })).rows
    return row && toMessage(row)
  }

  /** At most two whose id begins so, as a person would type it. Contract: `prefix` is of hex digits and dashes. */
  async findByPrefix(prefix: string): Promise<Message[]> {
    const rows = await this.db.selectFrom('messages').selectAll().where('id', 'like', `${prefix}%`).limit(2).execute()
    return rows.map(toMessage)
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

  /** The last ones of a conversation after a number, oldest first. */
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

  /** What is worked on and waits in a conversation, in order. */
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
        sql<string>`substr(messages.text, 1, ${BEGINNING_CHARACTERS})`.as('text'),
      ])
      .where('jobs.conversation_id', '=', conversationId)
      .orderBy('jobs.seq')
      .limit(limit)
      .execute()
    return rows.map((row) => ({
      id: row.id,
      author: row.author,
      text: row.text,
      receivedAt: row.received_at,
      state: row.state,
      dueAt: row.due_at,
    }))
  }

  /** What waits or is worked on, in the order in which it came. */
  async listOpen(limit: number, sight = EVERYTHING): Promise<QueuedMessage[]> {
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
      .where(inSight(this.db, sight, 'jobs.conversation_id'))
      .orderBy('messages.received_at')
      .orderBy('messages.id')
      .limit(limit)
      .execute()
    return rows.map((row) => ({
      id: row.id,
      conversationId: row.conversation_id,
      channel: row.channel,
      address: row.address,
      author: row.author,
      text: row.text,
      receivedAt: row.received_at,
      state: row.state,
      dueAt: row.due_at,
      ...(row.gateway_id !== null && { gatewayId: row.gateway_id }),
      failures: row.failures,
      position: row.position,
    }))
  }

  /** The messages in conversations whose address begins so, newest first, before one of them. */
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
      query = query.where(({ or, and, eb }) =>
        or([
          eb('messages.received_at', '<', before.receivedAt),
          and([eb('messages.received_at', '=', before.receivedAt), eb('messages.id', '>', before.id)]),
        ]),
      )
    }
    return (await query.execute()).map(toMessage)
  }

  /** Whether so many messages wait in conversations whose address begins so. */
  async haveWaitingUnder(channel: string, prefix: string, count: number): Promise<boolean> {
    const waiting = this.db
      .selectFrom('jobs')
      .select('jobs.message_id')
      .where('jobs.channel', '=', channel)
      .where('jobs.state', '<>', sql.lit('active'))
      .limit(1)
      .offset(count - 1)
    // Mostly there are not so many in all, and whose they are need not be looked up.
    if (!(await waiting.executeTakeFirst())) return false
    const theirs = waiting
      .innerJoin('conversations', 'conversations.id', 'jobs.conversation_id')
      .where(sql`substr(conversations.address, 1, ${prefix.length})`, '=', prefix)
    return (await theirs.executeTakeFirst()) !== undefined
  }

  /** How many messages wait, are worked on, or have failed. */
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

  /** Dead letters, newest first; what failed with another is part of that. */
  async listFailed(limit: number, sight = EVERYTHING): Promise<Message[]> {
    const rows = await this.db
      .selectFrom('messages')
      .selectAll()
      .where('state', '=', sql.lit('failed'))
      .where('merged_into', 'is', null)
      .where(inSight(this.db, sight, 'messages.conversation_id'))
      .orderBy('finished_at', 'desc')
      .limit(limit)
      .execute()
    return rows.map(toMessage)
  }
}

type AddedMessage = Omit<NewMessage, 'options'> & {
  options: string | null
  state: 'open' | 'refused'
  problem: string | null
  now: number
  finishedAt: number | null
}

const add = compiled((db, message: AddedMessage) =>
  db
    .insertInto('messages')
    .values({
      id: message.id,
      conversation_id: message.conversationId,
      channel: message.channel,
      platform_id: message.platformId,
      seq: message.seq,
      kind: message.kind,
      author: message.author,
      text: message.text,
      options: message.options,
      state: message.state,
      problem: message.problem,
      fence: 0,
      received_at: message.now,
      finished_at: message.finishedAt,
    })
    .onConflict((conflict) => conflict.columns(['channel', 'platform_id']).doNothing()),
)

type AddedJob = {
  id: string
  conversationId: string
  channel: string
  seq: number
  state: JobState
  dueAt: number
  fence: number
  gatewayId: string | null
}

const enqueue = compiled((db, { id, conversationId, channel, seq, state, dueAt, fence, gatewayId }: AddedJob) =>
  db.insertInto('jobs').values({
    message_id: id,
    conversation_id: conversationId,
    channel,
    seq,
    state,
    due_at: dueAt,
    fence,
    failures: 0,
    interruptions: 0,
    gateway_id: gatewayId,
    is_cancelled: 0,
  }),
)

const countOpen = compiled((db, { conversationId }: { conversationId: string }) =>
  db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('conversation_id', '=', conversationId),
)

const claim = compiled((db, { gatewayId, channels, address, except, now, leaseEnd, locksRows }: ClaimValues) => {
  let due = db
    .selectFrom('jobs')
    .select('message_id')
    .where('state', '<>', sql.lit('queued'))
    .where('due_at', '<=', now)
    .where('channel', 'in', channels)
    .orderBy('due_at')
    .limit(1)
  if (except.length > 0) due = due.where('conversation_id', 'not in', except)
  if (address !== undefined) {
    due = due.where('conversation_id', 'in', ({ selectFrom }) =>
      selectFrom('conversations').select('id').where('address', '=', address),
    )
  }
  if (locksRows) due = due.forUpdate().skipLocked()
  return db
    .updateTable('jobs')
    .set(({ eb, case: when }) => ({
      state: 'active',
      gateway_id: gatewayId,
      due_at: leaseEnd,
      fence: eb('fence', '+', 1),
      interruptions: eb('interruptions', '+', when().when('state', '=', 'active').then(1).else(0).end()),
    }))
    .where('message_id', '=', due)
    .returning(['message_id', 'conversation_id', 'fence', 'failures', 'interruptions', 'is_cancelled'])
})

const removeJob = compiled((db, { messageId, fence }: { messageId: string; fence: number }) =>
  db.deleteFrom('jobs').where('message_id', '=', messageId).where('fence', '=', fence),
)

type FinishedMessage = { messageId: string; state: MessageState; problem: string | null; now: number }

const finish = compiled((db, { messageId, state, problem, fence, now }: FinishedMessage & { fence: number }) =>
  db.updateTable('messages').set({ state, problem, fence, finished_at: now }).where('id', '=', messageId),
)

const finishMerged = compiled((db, { messageId, state, problem, now }: FinishedMessage) =>
  db
    .updateTable('messages')
    .set({ state, problem, finished_at: now })
    .where('merged_into', '=', messageId)
    .where('state', '=', sql.lit('open')),
)

const promote = compiled((db, { conversationId, now }: { conversationId: string; now: number }) =>
  db
    .updateTable('jobs')
    .set({ state: 'ready', due_at: now })
    .where('state', '=', sql.lit('queued'))
    .where('message_id', '=', (eb) =>
      eb.selectFrom('jobs').select('message_id').where('conversation_id', '=', conversationId).orderBy('seq').limit(1),
    ),
)

const mergedInto = compiled((db, { carrierId, hasFailed }: { carrierId: string; hasFailed: boolean }) =>
  db
    .selectFrom('messages')
    .selectAll()
    .where('merged_into', '=', carrierId)
    .where('state', '=', sql.lit(hasFailed ? 'failed' : 'open'))
    .orderBy('seq'),
)

const getOne = compiled((db, { id }: { id: string }) => db.selectFrom('messages').selectAll().where('id', '=', id))

type Row = Schema['messages']

function toMessage(row: Row): Message {
  return {
    id: row.id,
    conversationId: row.conversation_id,
    channel: row.channel,
    platformId: row.platform_id,
    seq: row.seq,
    kind: row.kind,
    author: row.author,
    text: row.text,
    ...(row.options !== null && { options: JSON.parse(row.options) as MessageOptions }),
    state: row.state,
    ...(row.problem !== null && { problem: row.problem }),
    ...(row.retried_after !== null && { retriedAfter: row.retried_after }),
    ...(row.merged_into !== null && { mergedInto: row.merged_into }),
    receivedAt: row.received_at,
    ...(row.finished_at !== null && { finishedAt: row.finished_at }),
  }
}
