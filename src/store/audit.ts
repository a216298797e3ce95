import { randomUUID } from 'node:crypto'
import { fromRow, Table } from './table.js'

/** Changes made outside conversations, however they are made. A change made in a conversation is recorded there, as a
 *  command. */
export type AuditAction =
  | `project.${'create' | 'update' | 'remove'}`
  | `credential.${'set' | 'remove' | 'rotate'}`
  | `token.${'create' | 'rotate' | 'revoke'}`
  | `command.${'execute' | 'shell' | 'git' | 'cancel'}`
  | `queue.${'retry' | 'drop'}`
  | `cron.${'add' | 'remove'}`
  | `conversation.${'create' | 'message' | 'update' | 'delete'}`
  | `approval.${'allow' | 'deny'}`
  | `access.${'allow' | 'disallow'}`
  | 'approval-rule.remove'
  | 'session.reset'
  | 'agent.default'

export interface NewAuditEntry {
  at: number
  /** `terminal`, `gateway`, `token:` with its id and name, or the person as the channel knows them. */
  actor: string
  action: string
  /** The id of the changed thing. */
  subject: string
  detail?: string
}

export interface AuditEntry extends NewAuditEntry {
  id: string
}

/** Records a change. Contract: uses the tables of the transaction that makes the change, so that neither exists without the
 *  other. The detail contains no user text and no secrets. */
export type Note = (
  tables: { audit: Audit },
  about: { action: AuditAction; subject: string; detail?: string },
) => Promise<void>

/** Records the changes of one actor. */
export function notesOf(actor: string, now: () => number): Note {
  return ({ audit }, about) => audit.add({ at: now(), actor, ...about })
}

export class Audit extends Table {
  async add(entry: NewAuditEntry): Promise<void> {
    // Sorts what was noted within one millisecond.
    const id = `${String(process.hrtime.bigint()).padStart(20, '0')}-${randomUUID()}`
    await this.db
      .insertInto('audit')
      .values({ ...entry, id })
      .execute()
  }

  /** Newest first; only those before `before`. */
  async list(limit: number, before?: Pick<AuditEntry, 'id' | 'at'>): Promise<AuditEntry[]> {
    let query = this.db.selectFrom('audit').selectAll().orderBy('at', 'desc').orderBy('id', 'desc').limit(limit)
    if (before) {
      const { at, id } = before
      query = query.where(({ or, and, eb }) => or([eb('at', '<', at), and([eb('at', '=', at), eb('id', '<', id)])]))
    }
    return (await query.execute()).map(fromRow)
  }
}
