import { type Kysely, sql } from 'kysely'
import type { Place, QueueMode } from '../channels/types.js'
import type { Schema } from './schema.js'
import { compiled, fromRow, only, Table } from './table.js'

export interface ConversationPlace extends Place {
  channel: string
}

/** A thread, a direct message or a chat: the unit of order. */
export interface Conversation {
  id: string
  channel: string
  address: string
  /** These were chosen for it or for its parent; the rest comes from its project and the configuration. */
  projectId?: string
  backend?: string
  model?: string
  queueMode?: QueueMode
}

export interface ConversationSettings {
  projectId?: string | null
  backend?: string | null
  model?: string | null
  queueMode?: QueueMode | null
}

/** How it is shown in lists. */
export interface ConversationLabel {
  /** Null for the beginning of its first message. */
  title?: string | null
  isPinned?: boolean
  isArchived?: boolean
}

export class Conversations extends Table {
  /**
   * Finds or creates the conversation, and returns the next number in it. Nobody else gets one before we commit.
   * `isWritten`: somebody writes to it, which unarchives it.
   */
  async enter(
    place: ConversationPlace,
    newId: string,
    now: number,
    isWritten = false,
  ): Promise<Conversation & { seq: number }> {
    const { channel, address, parent = null, projectId = null, isPrivate = false } = place
    const values = { newId, channel, address, parent, projectId, isPrivate, isWritten, now }
    const row = only(await enter(this.db, values))
    const found = row.parent === null ? toConversation({ ...row, ...NO_PARENT }) : await this.get(row.id)
    if (!found) throw new Error(`Conversation ${row.id} not found`)
    return { ...found, seq: row.last_seq }
  }

  /** As `enter`, for a conversation that exists. */
  async nextSeq(id: string, now: number): Promise<number> {
    return only(await nextSeq(this.db, { id, now })).last_seq
  }

  async get(id: string): Promise<Conversation | undefined> {
    const [row] = (await getOne(this.db, { id })).rows
    return row && toConversation(row)
  }

  /** Where it takes place, as its channel last reported. Contract: it exists. */
  async place(id: string): Promise<Place> {
    const {
      address,
      parent,
      given_project_id: projectId,
    } = await this.db
      .selectFrom('conversations')
      .select(['address', 'parent', 'given_project_id'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    return { address, ...(parent !== null && { parent }), ...(projectId !== null && { projectId }) }
  }

  async find(channel: string, address: string): Promise<Conversation | undefined> {
    const row = await withSettings(this.db)
      .where('conversations.channel', '=', channel)
      .where('conversations.address', '=', address)
      .executeTakeFirst()
    return row && toConversation(row)
  }

  /** The addresses of those active since then, latest first. */
  async addresses(channel: string, since: number): Promise<string[]> {
    const rows = await this.db
      .selectFrom('conversations')
      .select('address')
      .where('channel', '=', channel)
      .where('updated_at', '>=', since)
      .orderBy('updated_at', 'desc')
      .execute()
    return rows.map(({ address }) => address)
  }

  /** `null` clears a setting. */
  async configure(id: string, { projectId, backend, model, queueMode }: ConversationSettings): Promise<void> {
    const settings = { project_id: projectId, backend, model, queue_mode: queueMode }
    if (Object.values(settings).every((setting) => setting === undefined)) return
    await this.db.updateTable('conversations').set(settings).where('id', '=', id).execute()
  }

  async label(id: string, { title, isPinned, isArchived }: ConversationLabel, now: number): Promise<void> {
    const changes = {
      title,
      ...(isPinned !== undefined && { is_pinned: Number(isPinned) }),
      ...(isArchived !== undefined && { is_archived: Number(isArchived) }),
    }
    await this.db
      .updateTable('conversations')
      .set({ ...changes, edited_at: now })
      .where('id', '=', id)
      .execute()
  }

  /**
   * Removes it with all its content. A later message at its address begins a new one.
   *
   * Contract: its row is locked, and none of its messages is open.
   */
  async delete({ id, channel, address, projectId, isPrivate }: DeletedConversation, now: number): Promise<void> {
    const runs = this.db.selectFrom('runs').select('id').where('conversation_id', '=', id)
    for (const table of ['events', 'run_figures'] as const) {
      await this.db.deleteFrom(table).where('run_id', 'in', runs).execute()
    }
    for (const table of CONTENTS) await this.db.deleteFrom(table).where('conversation_id', '=', id).execute()
    await this.db.deleteFrom('conversations').where('id', '=', id).execute()
    const left = { id, channel, address, project_id: projectId ?? null, is_private: Number(isPrivate) }
    await this.db
      .insertInto('deleted_conversations')
      .values({ ...left, deleted_at: now })
      .execute()
    await this.db
      .deleteFrom('deleted_conversations')
      .where('deleted_at', '<', now - DELETION_KNOWN_MS)
      .execute()
  }
}

/** A deleted conversation, and who could see it. */
export interface DeletedConversation extends Conversation {
  isPrivate: boolean
}

/** In this order, since each may refer to later ones. */
const CONTENTS = ['uploads', 'approvals', 'outbox', 'runs', 'messages', 'sessions'] as const

/** Watchers learn of it much sooner. */
const DELETION_KNOWN_MS = 24 * 3_600_000

/** The columns of the parent that `toConversation` reads, in a query `withParent`. */
export const PARENT_COLUMNS = [
  'parent.project_id as parent_project_id',
  'parent.backend as parent_backend',
  'parent.model as parent_model',
  'parent.queue_mode as parent_queue_mode',
] as const

/** The project of a conversation, in a query `withParent`: its own choice, that of its parent, or the operator's. */
export const PROJECT_ID = sql<
  string | null
>`coalesce(conversations.project_id, parent.project_id, conversations.given_project_id)`

/** Conversations, each with its parent if it has one. */
export function withParent(db: Kysely<Schema>) {
  return db
    .selectFrom('conversations')
    .leftJoin('conversations as parent', (join) =>
      join.onRef('parent.address', '=', 'conversations.parent').onRef('parent.channel', '=', 'conversations.channel'),
    )
}

/** As `toConversation` reads them. */
function withSettings(db: Kysely<Schema>) {
  return withParent(db).selectAll('conversations').select(PARENT_COLUMNS)
}

const getOne = compiled((db, { id }: { id: string }) => withSettings(db).where('conversations.id', '=', id))

type Entry = {
  newId: string
  channel: string
  address: string
  parent: string | null
  projectId: string | null
  isPrivate: boolean
  isWritten: boolean
  now: number
}

const enter = compiled((db, { newId, channel, address, parent, projectId, isPrivate, isWritten, now }: Entry) => {
  const values = {
    parent,
    given_project_id: projectId,
    updated_at: now,
    // A private conversation stays private.
    ...(isPrivate && { is_private: 1 }),
    ...(isWritten && { is_archived: 0 }),
  }
  return db
    .insertInto('conversations')
    .values({
      ...{ id: newId, channel, address, last_seq: 1, created_at: now, is_private: 0, is_pinned: 0, is_archived: 0 },
      ...values,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['channel', 'address'])
        .doUpdateSet(({ ref, eb }) => ({ last_seq: eb(ref('conversations.last_seq'), '+', 1), ...values })),
    )
    .returningAll()
})

const nextSeq = compiled((db, { id, now }: { id: string; now: number }) =>
  db
    .updateTable('conversations')
    .set(({ eb }) => ({ last_seq: eb('last_seq', '+', 1), updated_at: now }))
    .where('id', '=', id)
    .returning('last_seq'),
)

type Row = Schema['conversations'] & {
  parent_project_id: string | null
  parent_backend: string | null
  parent_model: string | null
  parent_queue_mode: QueueMode | null
}

const NO_PARENT = { parent_project_id: null, parent_backend: null, parent_model: null, parent_queue_mode: null }

export function toConversation(row: Row): Conversation {
  const projectId = row.project_id ?? row.parent_project_id ?? row.given_project_id
  // Both or neither: one agent does not know the models of another.
  const isOwn = row.backend !== null || row.model !== null
  const backend = isOwn ? row.backend : row.parent_backend
  const model = isOwn ? row.model : row.parent_model
  const queueMode = row.queue_mode ?? row.parent_queue_mode
  return fromRow({ id: row.id, channel: row.channel, address: row.address, projectId, backend, model, queueMode })
}
