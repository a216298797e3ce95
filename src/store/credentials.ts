import { sql } from 'kysely'
import type { Schema } from './schema.js'
import { compiled, fromRow, Table } from './table.js'

export type CredentialKind = Schema['credentials']['kind']

/** An encrypted secret. */
export interface CredentialRecord {
  /** The id of a project, or empty for all. */
  owner: string
  name: string
  kind: CredentialKind
  keyId: string
  sealed: string
  createdAt: number
  updatedAt: number
}

type NewCredential = Omit<CredentialRecord, 'createdAt' | 'updatedAt'>

export class Credentials extends Table {
  /** Keeps others from writing until the transaction ends, as every SQLite transaction does anyway. */
  async lock(): Promise<void> {
    if (this.engine.locksRows) await sql`lock table credentials in share row exclusive mode`.execute(this.db)
  }

  /** Creates or replaces it. */
  async put({ owner, name, kind, keyId, sealed }: NewCredential, now: number): Promise<void> {
    const values = { kind, key_id: keyId, sealed, updated_at: now }
    await this.db
      .insertInto('credentials')
      .values({ owner, name, created_at: now, ...values })
      .onConflict((conflict) => conflict.columns(['owner', 'name']).doUpdateSet(values))
      .execute()
  }

  /** Stores the same value, encrypted with another key. */
  async reseal({ owner, name, keyId, sealed }: Omit<NewCredential, 'kind'>): Promise<void> {
    await this.db
      .updateTable('credentials')
      .set({ key_id: keyId, sealed })
      .where('owner', '=', owner)
      .where('name', '=', name)
      .execute()
  }

  /** False if there was no such credential. */
  async remove(owner: string, name: string): Promise<boolean> {
    const { numDeletedRows } = await this.db
      .deleteFrom('credentials')
      .where('owner', '=', owner)
      .where('name', '=', name)
      .executeTakeFirstOrThrow()
    return numDeletedRows === 1n
  }

  async removeAllOf(owner: string): Promise<void> {
    await this.db.deleteFrom('credentials').where('owner', '=', owner).execute()
  }

  /** Those of these owners, or all; sorted by owner and name. */
  async list(owners?: string[]): Promise<CredentialRecord[]> {
    const records = (await list(this.db, { owners })).rows.map(fromRow)
    // Not in SQL, since the engines sort text differently.
    return records.toSorted((a, b) => compare(a.owner, b.owner) || compare(a.name, b.name))
  }
}

const list = compiled((db, { owners }: { owners: string[] | undefined }) => {
  const all = db.selectFrom('credentials').selectAll()
  return owners ? all.where('owner', 'in', owners) : all
})

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
