// Files that were uploaded for messages. Their content is beside the database.

import { fromRow, Table, toRow } from './table.js'

export interface Upload {
  id: string
  conversationId: string
  /** The message that it was sent with. */
  messageId?: string
  /** As its sender named it; never trust it as a path. */
  name: string
  mediaType: string
  bytes: number
  createdAt: number
}

/** Either engine takes at least this many values in a statement. */
const IDS_AT_ONCE = 500

export class Uploads extends Table {
  async add(upload: Upload): Promise<void> {
    await this.db.insertInto('uploads').values(toRow(upload)).execute()
  }

  async get(conversationId: string, id: string): Promise<Upload | undefined> {
    const [found] = await this.getAll(conversationId, [id])
    return found
  }

  async getAll(conversationId: string, ids: string[]): Promise<Upload[]> {
    // `in ()` is an error on PostgreSQL.
    if (ids.length === 0) return []
    const rows = await this.db
      .selectFrom('uploads')
      .selectAll()
      .where('conversation_id', '=', conversationId)
      .where('id', 'in', ids)
      .execute()
    return rows.map(fromRow)
  }

  /** Those of these messages, in the order of upload. */
  async ofMessages(messageIds: string[]): Promise<Upload[]> {
    if (messageIds.length === 0) return []
    const rows = await this.db
      .selectFrom('uploads')
      .selectAll()
      .where('message_id', 'in', messageIds)
      .orderBy('created_at')
      .orderBy('id')
      .execute()
    return rows.map(fromRow)
  }

  /** Assigns them to a message. False, with only some assigned, unless all of them were unassigned. */
  async take(ids: string[], messageId: string): Promise<boolean> {
    if (ids.length === 0) return true
    const { numUpdatedRows } = await this.db
      .updateTable('uploads')
      .set({ message_id: messageId })
      .where('id', 'in', ids)
      .where('message_id', 'is', null)
      .executeTakeFirstOrThrow()
    return Number(numUpdatedRows) === ids.length
  }

  /** How many of a conversation are assigned to no message. */
  async countUntaken(conversationId: string): Promise<number> {
    const { count } = await this.db
      .selectFrom('uploads')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('conversation_id', '=', conversationId)
      .where('message_id', 'is', null)
      .executeTakeFirstOrThrow()
    return count
  }

  /** Removes unassigned ones from before then, and returns their ids. */
  async removeUntaken(before: number): Promise<string[]> {
    const rows = await this.db
      .deleteFrom('uploads')
      .where('message_id', 'is', null)
      .where('created_at', '<', before)
      .returning('id')
      .execute()
    return rows.map(({ id }) => id)
  }

  /** Those of the ids that no upload has. */
  async unknown(ids: string[]): Promise<string[]> {
    const known = new Set<string>()
    for (let start = 0; start < ids.length; start += IDS_AT_ONCE) {
      const some = ids.slice(start, start + IDS_AT_ONCE)
      const rows = await this.db.selectFrom('uploads').select('id').where('id', 'in', some).execute()
      for (const { id } of rows) known.add(id)
    }
    return ids.filter((id) => !known.has(id))
  }

  async idsOf(conversationId: string): Promise<string[]> {
    const uploads = this.db.selectFrom('uploads').select('id').where('conversation_id', '=', conversationId)
    return (await uploads.execute()).map(({ id }) => id)
  }
}
