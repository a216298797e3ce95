import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Schema } from './schema.js'

/** Who changed what by hand. */
export interface AuditEntry {
  at: number
  /** `terminal`, or the person as the channel knows them. */
  actor: string
  action: string
  /** The id of what was changed. */
  subject: string
  detail?: string
}

export class Audit {
  constructor(private readonly db: Kysely<Schema>) {}

  async add(entry: AuditEntry): Promise<void> {
    await this.db
      .insertInto('audit')
      .values({ ...entry, id: randomUUID(), detail: entry.detail ?? null })
      .execute()
  }

  /** Newest first. */
  async list(limit: number): Promise<AuditEntry[]> {
    const rows = await this.db.selectFrom('audit').selectAll().orderBy('at', 'desc').limit(limit).execute()
    return rows.map(({ at, actor, action, subject, detail }) => ({
      at,
      actor,
      action,
      subject,
      ...(detail !== null && { detail }),
    }))
  }
}
