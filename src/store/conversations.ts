import type { Kysely } from 'kysely'
import type { Schema } from './schema.js'

/** A thread, a direct message, a chat: the unit of order. */
export interface Conversation {
  id: string
  channel: string
  address: string
  /** What this conversation has of its own; the rest comes from its project and the configuration. */
  projectId?: string
  backend?: string
  model?: string
}

export interface ConversationSettings {
  projectId?: string | null
  backend?: string | null
  model?: string | null
}

export class Conversations {
  constructor(private readonly db: Kysely<Schema>) {}

  /** Finds or makes the conversation, and gives the next number in it. Nobody else gets one until we commit. */
  async enter(channel: string, address: string, newId: string, now: number): Promise<{ id: string; seq: number }> {
    const { id, last_seq: seq } = await this.db
      .insertInto('conversations')
      .values({ id: newId, channel, address, last_seq: 1, created_at: now, updated_at: now })
      .onConflict((conflict) =>
        conflict
          .columns(['channel', 'address'])
          .doUpdateSet(({ ref, eb }) => ({ last_seq: eb(ref('conversations.last_seq'), '+', 1), updated_at: now })),
      )
      .returning(['id', 'last_seq'])
      .executeTakeFirstOrThrow()
    return { id, seq }
  }

  /** As `enter`, for a conversation that is there. */
  async nextSeq(id: string, now: number): Promise<number> {
    const { last_seq: seq } = await this.db
      .updateTable('conversations')
      .set(({ eb }) => ({ last_seq: eb('last_seq', '+', 1), updated_at: now }))
      .where('id', '=', id)
      .returning('last_seq')
      .executeTakeFirstOrThrow()
    return seq
  }

  async get(id: string): Promise<Conversation | undefined> {
    const row = await this.db.selectFrom('conversations').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toConversation(row)
  }

  async find(channel: string, address: string): Promise<Conversation | undefined> {
    const row = await this.db
      .selectFrom('conversations')
      .selectAll()
      .where('channel', '=', channel)
      .where('address', '=', address)
      .executeTakeFirst()
    return row && toConversation(row)
  }

  /** `null` takes a setting back. */
  async configure(id: string, { projectId, backend, model }: ConversationSettings): Promise<void> {
    const settings = {
      ...(projectId !== undefined && { project_id: projectId }),
      ...(backend !== undefined && { backend }),
      ...(model !== undefined && { model }),
    }
    if (Object.keys(settings).length === 0) return
    await this.db.updateTable('conversations').set(settings).where('id', '=', id).execute()
  }
}

type Row = Schema['conversations']

export function toConversation(row: Row): Conversation {
  return {
    id: row.id,
    channel: row.channel,
    address: row.address,
    ...(row.project_id !== null && { projectId: row.project_id }),
    ...(row.backend !== null && { backend: row.backend }),
    ...(row.model !== null && { model: row.model }),
  }
}
