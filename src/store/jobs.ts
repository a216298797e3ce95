// What still has to be done about messages: a job waits, is claimed by a worker, and is removed when its message is
// finished.
//
// What must stay true, whatever runs at once:
// - A job gets its place while its conversation's row is locked (`Conversations.enter`), so that numbers become visible in
//   order.
// - Only the first job of a conversation is `ready` or `active`; a unique index enforces it.
// - A worker writes only under the fence of its claim. A claim by anyone else makes that fence stale.
// - A merged message has no job. Whatever ends the message it was merged into ends it too, or gives it its job back.

import { sql } from 'kysely'
import { type Message, toMessage } from './inbox.js'
import type { JobState, MessageState } from './schema.js'
import {
  type ClaimRequest,
  type ClaimValues,
  type Columns,
  compiled,
  fromRow,
  isDue,
  only,
  Table,
  toRow,
} from './table.js'

/** What a worker holds while it works. */
export interface Claim {
  messageId: string
  conversationId: string
  fence: number
  failures: number
  interruptions: number
  /** To be ended without a turn. */
  isCancelled: boolean
}

type EnqueuedMessage = Pick<Message, 'id' | 'conversationId' | 'channel' | 'seq'>

export class Jobs extends Table {
  /**
   * Puts a message behind the `ahead` others of its conversation.
   *
   * Contract: they were counted while the conversation's row is locked.
   */
  async enqueue(message: EnqueuedMessage, ahead: number, now: number, fence = 0): Promise<void> {
    const { id: messageId, conversationId, channel, seq } = message
    const state = ahead === 0 ? 'ready' : 'queued'
    await enqueue(this.db, { messageId, conversationId, channel, seq, state, dueAt: now, fence, gatewayId: null })
    await this.engine.announce(this.db)
  }

  /** Enqueues a message and claims it at once. Contract: as for `enqueue`, with nothing ahead. */
  async enqueueClaimed(message: EnqueuedMessage, gatewayId: string, now: number, leaseMs: number): Promise<Claim> {
    const { id: messageId, conversationId, channel, seq } = message
    const dueAt = now + leaseMs
    await enqueue(this.db, { messageId, conversationId, channel, seq, state: 'active', dueAt, fence: 1, gatewayId })
    return { messageId, conversationId, fence: 1, failures: 0, interruptions: 0, isCancelled: false }
  }

  /** How many messages of a conversation are not finished. */
  async countOpen(conversationId: string): Promise<number> {
    return only(await countOpen(this.db, { conversationId })).count
  }

  /** Claims the job that has been due longest: one that is ready, or one whose lease has ended. */
  async claim(...request: ClaimRequest): Promise<Claim | undefined> {
    const row = await this.claimDue(claim, request)
    return row && { ...fromRow(row), isCancelled: row.is_cancelled === 1 }
  }

  /** Extends the lease of a claim. `lost` if someone else has claimed the job since. */
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

  /** Gives a claim back, to be claimed again from `dueAt` on; the job stays the first of its conversation. False if the claim
   *  was lost. */
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
   * Finishes a message, with those merged into it, and makes the next of its conversation ready. False if the claim was
   * lost.
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

  /** The job of a message; only open ones have one. */
  async get(messageId: string): Promise<{ state: JobState; fence: number } | undefined> {
    let query = this.db.selectFrom('jobs').select(['state', 'fence']).where('message_id', '=', messageId)
    // Otherwise it could be claimed before the caller acts on what was read.
    if (this.engine.locksRows) query = query.forUpdate()
    return query.executeTakeFirst()
  }

  /** The job of a conversation that is active, or comes next. */
  async first(conversationId: string): Promise<{ messageId: string; state: JobState; dueAt: number } | undefined> {
    const row = await this.db
      .selectFrom('jobs')
      .select(['message_id', 'state', 'due_at'])
      .where('conversation_id', '=', conversationId)
      .where('state', '<>', sql.lit('queued'))
      .executeTakeFirst()
    return row && fromRow(row)
  }

  /** Asks whoever works on it to stop; they see it when they renew their claim. */
  async requestCancel(messageId: string): Promise<void> {
    await this.db.updateTable('jobs').set({ is_cancelled: 1 }).where('message_id', '=', messageId).execute()
    await this.engine.announce(this.db, messageId)
  }

  /** Ends the leases of a gateway that is known to be dead. Returns how many there were. */
  async expireLeases(gatewayId: string, now: number): Promise<number> {
    const { numUpdatedRows } = await this.db
      .updateTable('jobs')
      .set({ due_at: now })
      .where('gateway_id', '=', gatewayId)
      .where('state', '=', sql.lit('active'))
      .executeTakeFirstOrThrow()
    return Number(numUpdatedRows)
  }

  /** Merges messages into the lead message of their conversation, whose turn then answers them too; skips those that no
   *  longer wait. Contract: the lead message is the first, and the caller has claimed it. */
  async merge(messageIds: string[], leadId: string): Promise<void> {
    if (messageIds.length === 0) return
    const rows = await this.db
      .deleteFrom('jobs')
      .where('message_id', 'in', messageIds)
      .where('state', '=', sql.lit('queued'))
      .returning('message_id')
      .execute()
    if (rows.length === 0) return
    const ids = rows.map(({ message_id }) => message_id)
    await this.db.updateTable('messages').set({ merged_into: leadId }).where('id', 'in', ids).execute()
  }

  /** The messages that are merged into another, in order. */
  async mergedInto(leadId: string, state: 'open' | 'failed' = 'open'): Promise<Message[]> {
    const { rows } = await mergedInto(this.db, { leadId, hasFailed: state === 'failed' })
    return rows.map(toMessage)
  }

  /** Gives a message its own job back, in its old place. Contract: the conversation's row is locked, and the lead message
   *  still has its job. */
  async unmerge(message: Message, now: number): Promise<void> {
    await this.db.updateTable('messages').set({ merged_into: null }).where('id', '=', message.id).execute()
    await this.enqueue(message, 1, now)
  }

  /** Drops a merged message. Contract: nobody works on it, and the conversation's row is locked. */
  async dropMerged(messageId: string, now: number): Promise<void> {
    await this.db
      .updateTable('messages')
      .set({ merged_into: null, state: 'dropped', finished_at: now })
      .where('id', '=', messageId)
      .execute()
  }

  /** Reopens a dead letter, as if it had just been received. Contract: the conversation's row is locked. */
  async reopen(message: Message, seq: number, retriedAfter: number, now: number): Promise<void> {
    const { fence } = await this.db
      .updateTable('messages')
      .set({ state: 'open', problem: null, finished_at: null, seq, retried_after: retriedAfter })
      .where('id', '=', message.id)
      .returning('fence')
      .executeTakeFirstOrThrow()
    await this.enqueue({ ...message, seq }, await this.countOpen(message.conversationId), now, fence + 1)
  }

  /** As `reopen`, for a message that failed together with its lead message. */
  async reopenMerged(messageId: string, seq: number): Promise<void> {
    await this.db
      .updateTable('messages')
      .set({ state: 'open', problem: null, finished_at: null, seq })
      .where('id', '=', messageId)
      .execute()
  }

  /** Drops a dead letter, with all messages that failed together with it. */
  async discard(messageId: string, now: number): Promise<void> {
    await this.db
      .updateTable('messages')
      .set({ state: 'dropped', finished_at: now })
      .where(({ or, eb }) => or([eb('id', '=', messageId), eb('merged_into', '=', messageId)]))
      .where('state', '=', sql.lit('failed'))
      .execute()
  }
}

type AddedJob = Omit<Columns<'jobs'>, 'failures' | 'interruptions' | 'isCancelled'>

const enqueue = compiled((db, job: AddedJob) =>
  db.insertInto('jobs').values({ ...toRow(job), failures: 0, interruptions: 0, is_cancelled: 0 }),
)

const countOpen = compiled((db, { conversationId }: { conversationId: string }) =>
  db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('conversation_id', '=', conversationId),
)

const claim = compiled((db, values: ClaimValues) => {
  const { gatewayId, address, leaseEnd, locksRows } = values
  let due = db
    .selectFrom('jobs as due')
    .select('due.message_id')
    .where('due.state', '<>', sql.lit('queued'))
    .where(isDue(values))
    .orderBy('due.due_at')
    .limit(1)
  if (address !== undefined) {
    due = due.where('due.conversation_id', 'in', ({ selectFrom }) =>
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

const mergedInto = compiled((db, { leadId, hasFailed }: { leadId: string; hasFailed: boolean }) =>
  db
    .selectFrom('messages')
    .selectAll()
    .where('merged_into', '=', leadId)
    .where('state', '=', sql.lit(hasFailed ? 'failed' : 'open'))
    .orderBy('seq'),
)
