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

/** Either engine takes as many values in a statement. */
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
    // PostgreSQL has no empty list.
    if (ids.length === 0) return []
    const rows = await this.db
      .selectFrom('uploads')
      .selectAll()
      .where('conversation_id', '=', conversationId)
      .where('id', 'in', ids)
      .execute()
    return rows.map(fromRow)
  }

  /** Those of messages, by when they were uploaded. */
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

  /** Gives them to a message. False, with some of them given, unless all of them had none. */
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

  /** How many of a conversation no message has taken. */
  async countUntaken(conversationId: string): Promise<number> {
    const { count } = await this.db
      .selectFrom('uploads')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('conversation_id', '=', conversationId)
      .where('message_id', 'is', null)
      .executeTakeFirstOrThrow()
    return count
  }

  /** Forgets those that no message has taken since then, and returns their ids. */
  async removeUntaken(before: number): Promise<string[]> {
    const rows = await this.db
      .deleteFrom('uploads')
      .where('message_id', 'is', null)
      .where('created_at', '<', before)
      .returning('id')
      .execute()
    return rows.map(({ id }) => id)
  }

  /** Those of the ids that are of none. */
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
