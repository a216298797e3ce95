// What claiming a job and claiming a reply have in common. A claim holds until its lease ends, and then anyone may claim
// again.

import { type Expression, expressionBuilder, type Kysely, type QueryResult, type SqlBool } from 'kysely'
import type { Engine } from './engine.js'
import type { Schema } from './schema.js'

/** Restricts what may be claimed. */
export interface ClaimLimits {
  /** Only in this conversation. */
  address?: string
  /** Conversations that we hold already: after a pause of the whole process, our own leases have ended too. */
  except?: string[]
}

export type ClaimRequest = [gatewayId: string, channels: string[], now: number, leaseMs: number, limits?: ClaimLimits]

export type ClaimValues = {
  gatewayId: string
  channels: string[]
  address: string | undefined
  except: string[]
  now: number
  leaseEnd: number
  locksRows: boolean
}

/** Contract: whoever held it before can no longer write. */
export async function claimDue<Row>(
  claim: (db: Kysely<Schema>, values: ClaimValues) => Promise<QueryResult<Row>>,
  db: Kysely<Schema>,
  { locksRows }: Pick<Engine, 'locksRows'>,
  [gatewayId, channels, now, leaseMs, { address, except = [] } = {}]: ClaimRequest,
): Promise<Row | undefined> {
  // PostgreSQL has no empty list.
  if (channels.length === 0) return undefined
  const values = { gatewayId, channels, address, except, now, leaseEnd: now + leaseMs, locksRows }
  return (await claim(db, values)).rows[0]
}

/** Whether a row of the table `due` may be claimed as far as time, channel and conversation go. */
export function isDue({ channels, except, now }: ClaimValues): Expression<SqlBool> {
  const { eb, and } = expressionBuilder<{ due: Schema['jobs'] | Schema['outbox'] }, 'due'>()
  return and([
    eb('due.due_at', '<=', now),
    eb('due.channel', 'in', channels),
    ...(except.length > 0 ? [eb('due.conversation_id', 'not in', except)] : []),
  ])
}
