// Replies to be delivered by a channel. Those of one conversation are delivered in order: only its oldest pending one can be
// claimed.

import { sql } from 'kysely'
import type { Reply } from '../channels/types.js'
import type { DeliveryState, Schema } from './schema.js'
import { type ClaimRequest, type ClaimValues, type Columns, compiled, fromRow, isDue, Table, toRow } from './table.js'
import { EVERYTHING, inVisibleConversation } from './visibility.js'

export interface NewDelivery {
  /** The idempotency key: the same for every attempt, so that a channel can detect a repetition. */
  id: string
  conversationId: string
  channel: string
  address: string
  seq: number
  messageId?: string
  runId?: string
  reply: Reply
  expiresAt: number
}

export interface Delivery extends NewDelivery {
  state: DeliveryState
  attempts: number
  fence: number
  createdAt: number
  settledAt?: number
  problem?: string
}

const CUT_OFF = 'The gateway ended while sending this reply. It may have been delivered.'

export class Outbox extends Table {
  async add(delivery: NewDelivery, now: number): Promise<void> {
    const { id, conversationId, channel, address, seq, messageId = null, runId = null, expiresAt } = delivery
    const target = { id, conversationId, channel, address, seq, messageId, runId }
    const body = JSON.stringify(delivery.reply)
    await add(this.db, { ...target, body, dueAt: now, createdAt: now, expiresAt })
    await this.engine.announce(this.db)
  }

  /** Claims the reply that has been due longest. */
  async claim(...request: ClaimRequest): Promise<Delivery | undefined> {
    const row = await this.claimDue(claim, request)
    return row && toDelivery(row)
  }

  /** False if the claim was lost. */
  async settle(
    { id, fence }: Pick<Delivery, 'id' | 'fence'>,
    state: DeliveryState,
    problem: string | null,
    now: number,
  ): Promise<boolean> {
    const { numAffectedRows } = await settle(this.db, { id, fence, state, problem, now })
    return numAffectedRows === 1n
  }

  /** Releases a claim, to be tried again at `dueAt`. */
  async retry({ id, fence }: Delivery, problem: string, dueAt: number): Promise<void> {
    await this.db
      .updateTable('outbox')
      .set({ due_at: dueAt, problem, gateway_id: null })
      .where('id', '=', id)
      .where('fence', '=', fence)
      .where('state', '=', sql.lit('pending'))
      .execute()
  }

  /** Ends the leases of a gateway that is known to be dead. */
  async expireLeases(gatewayId: string, now: number): Promise<void> {
    await this.db
      .updateTable('outbox')
      .set({ due_at: now, gateway_id: null, problem: CUT_OFF })
      .where('gateway_id', '=', gatewayId)
      .where('state', '=', sql.lit('pending'))
      .execute()
  }

  /** Gives up what was not delivered in time, including replies of channels that are no longer served. */
  async expire(now: number): Promise<Delivery[]> {
    const rows = await this.db
      .updateTable('outbox')
      .set(({ eb, fn, ref, val }) => ({
        state: 'undelivered',
        settled_at: now,
        problem: eb
          .case()
          .when('gateway_id', 'is not', null)
          .then(val(CUT_OFF))
          .else(fn.coalesce(ref('problem'), val('The reply was not sent in time.')))
          .end(),
      }))
      .where('state', '=', sql.lit('pending'))
      .where('due_at', '<=', now)
      .where('expires_at', '<=', now)
      .returningAll()
      .execute()
    return rows.map(toDelivery)
  }

  /** Makes an undelivered reply pending again. */
  async reopen(id: string, now: number, expiresAt: number): Promise<void> {
    await this.db
      .updateTable('outbox')
      .set({ state: 'pending', due_at: now, expires_at: expiresAt, settled_at: null, problem: null, gateway_id: null })
      .where('id', '=', id)
      .where('state', '=', sql.lit('undelivered'))
      .execute()
    await this.engine.announce(this.db)
  }

  /** Marks a delivered reply as undelivered. Undefined if it was not delivered. */
  async fail(id: string, problem: string, now: number): Promise<Delivery | undefined> {
    const row = await this.db
      .updateTable('outbox')
      .set({ state: 'undelivered', problem, settled_at: now })
      .where('id', '=', id)
      .where('state', '=', sql.lit('delivered'))
      .returningAll()
      .executeTakeFirst()
    return row && toDelivery(row)
  }

  /** Drops those that are still pending and not being sent. */
  async takeBack(ids: string[]): Promise<void> {
    if (ids.length === 0) return
    await this.db
      .updateTable('outbox')
      .set({ state: 'dropped' })
      .where('id', 'in', ids)
      .where('state', '=', sql.lit('pending'))
      .where('gateway_id', 'is', null)
      .execute()
  }

  /** Drops an undelivered reply. */
  async discard(id: string): Promise<void> {
    await this.db
      .updateTable('outbox')
      .set({ state: 'dropped' })
      .where('id', '=', id)
      .where('state', '=', sql.lit('undelivered'))
      .execute()
  }

  /** Those with these ids and those that answer these messages, in order. */
  async getAll(ids: string[], messageIds: string[]): Promise<Delivery[]> {
    const rows = await this.db
      .selectFrom('outbox')
      .selectAll()
      // `in ()` is an error on PostgreSQL.
      .where(({ or, eb }) => or([eb('id', 'in', [...ids, '']), eb('message_id', 'in', [...messageIds, ''])]))
      .orderBy('seq')
      .execute()
    return rows.map(toDelivery)
  }

  async get(id: string): Promise<Delivery | undefined> {
    const row = await this.db.selectFrom('outbox').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toDelivery(row)
  }

  /** At most two whose ids begin with what a person typed. Contract: `prefix` has only hex digits and dashes. */
  async findByPrefix(prefix: string): Promise<Delivery[]> {
    const rows = await this.db.selectFrom('outbox').selectAll().where('id', 'like', `${prefix}%`).limit(2).execute()
    return rows.map(toDelivery)
  }

  /** Undelivered ones newest first, pending ones oldest first. */
  async list(state: 'pending' | 'undelivered', limit: number, visibility = EVERYTHING): Promise<Delivery[]> {
    const rows = await this.db
      .selectFrom('outbox')
      .selectAll()
      .where('state', '=', sql.lit(state))
      .where(inVisibleConversation(this.db, visibility, 'outbox.conversation_id'))
      .orderBy('settled_at', 'desc')
      .orderBy('created_at')
      .limit(limit)
      .execute()
    return rows.map(toDelivery)
  }

  /** The latest replies of a conversation after a number, oldest first. */
  async history(conversationId: string, limit: number, afterSeq = 0): Promise<Delivery[]> {
    const rows = await this.db
      .selectFrom('outbox')
      .selectAll()
      .where('conversation_id', '=', conversationId)
      .where('seq', '>', afterSeq)
      .orderBy('seq', 'desc')
      .limit(limit)
      .execute()
    return rows.map(toDelivery).toReversed()
  }
}

type AddedDelivery = Omit<Columns<'outbox'>, 'state' | 'attempts' | 'fence' | 'gatewayId' | 'settledAt' | 'problem'>

const add = compiled((db, delivery: AddedDelivery) =>
  db.insertInto('outbox').values({ ...toRow(delivery), state: 'pending', attempts: 0, fence: 0 }),
)

const claim = compiled((db, values: ClaimValues) => {
  const { gatewayId, address, leaseEnd, locksRows } = values
  let due = db
    .selectFrom('outbox as due')
    .select('due.id')
    .where('due.state', '=', sql.lit('pending'))
    .where(isDue(values))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('outbox as earlier')
            .select('earlier.id')
            .where('earlier.state', '=', sql.lit('pending'))
            .whereRef('earlier.conversation_id', '=', 'due.conversation_id')
            .whereRef('earlier.seq', '<', 'due.seq'),
        ),
      ),
    )
    .orderBy('due.due_at')
    .limit(1)
  if (address !== undefined) due = due.where('due.address', '=', address)
  if (locksRows) due = due.forUpdate().skipLocked()
  return db
    .updateTable('outbox')
    .set(({ eb }) => ({
      gateway_id: gatewayId,
      due_at: leaseEnd,
      fence: eb('fence', '+', 1),
      attempts: eb('attempts', '+', 1),
    }))
    .where('id', '=', due)
    .returningAll()
})

type SettledDelivery = { id: string; fence: number; state: DeliveryState; problem: string | null; now: number }

const settle = compiled((db, { id, fence, state, problem, now }: SettledDelivery) =>
  db
    .updateTable('outbox')
    .set({ state, problem, settled_at: now })
    .where('id', '=', id)
    .where('fence', '=', fence)
    .where('state', '=', sql.lit('pending')),
)

function toDelivery({ body, due_at: _dueAt, gateway_id: _gatewayId, ...row }: Schema['outbox']): Delivery {
  return { ...fromRow(row), reply: JSON.parse(body) as Reply }
}
