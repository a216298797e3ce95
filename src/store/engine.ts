import type { DatabaseConnection, Dialect, Kysely } from 'kysely'
import type { Schema } from './schema.js'

/** What differs between the two databases. */
export interface Engine {
  name: 'sqlite' | 'postgres'
  dialect: Dialect
  /** For questions that may take long, where those would hold up everything else. It sees what was committed before. */
  reads?: Dialect
  /** Looks for damage in all of it, where it is a file. Contract: rejects with `store_corrupt`. */
  check?(): Promise<void>
  /** Whether several gateways may write at once, so that rows must be locked one by one. */
  locksRows: boolean
  /** Calls back when the transaction of the connection has committed, where that is before it is on the disk. */
  hearCommit?(connection: DatabaseConnection, onCommitted: () => void): void
  /** Tells the other gateways on this database, when the transaction commits, that there is work, or that the work on a
   *  message shall end. */
  announce(db: Kysely<Schema>, cancelledId?: string): Promise<void>
  /** Calls back when a gateway announced something. Contract: a lost connection is taken up again; what was announced
   *  meanwhile is not told. */
  listen(onNews: (cancelledId?: string) => void): Promise<() => Promise<void>>
}

/** Which of what is due may be taken. */
export interface ClaimLimits {
  /** Of this conversation alone. */
  address?: string
  /** Not of these, which are ours already: after a pause of the whole process, our own leases have ended too. */
  except?: string[]
}

/** What such a query is made of. */
export type ClaimValues = {
  gatewayId: string
  channels: string[]
  address: string | undefined
  except: string[]
  now: number
  leaseEnd: number
  locksRows: boolean
}

/** PostgreSQL refuses a text with NUL in it, and SQLite cuts it off there. Nobody has a use for one. */
export function withoutNul(value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll('\0', '') : value
}
