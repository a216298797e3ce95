import type { DatabaseConnection, Dialect, Kysely } from 'kysely'
import type { Schema } from './schema.js'

/** What differs between the two databases. */
export interface Engine {
  name: 'sqlite' | 'postgres'
  dialect: Dialect
  /** For slow queries, where they would block everything else. They see what is already committed. */
  reads?: Dialect
  /** Checks the whole file for damage, where there is one. Contract: rejects with `store_corrupt`. */
  check?(): Promise<void>
  /** Whether several gateways may write at once, so that rows must be locked one by one. */
  locksRows: boolean
  /** Calls back when the transaction of the connection has committed, where that happens before it is on disk. */
  onCommit?(connection: DatabaseConnection, onCommitted: () => void): void
  /** Notifies the other gateways on this database, when the transaction commits, that there is work, or that a message was
   *  cancelled. */
  announce(db: Kysely<Schema>, cancelledId?: string): Promise<void>
  /** Calls back when a gateway announces something. Contract: reconnects; what is announced meanwhile is not reported. */
  listen(onNews: (cancelledId?: string) => void): Promise<() => Promise<void>>
}
