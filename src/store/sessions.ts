import type { TokenUsage } from '../backends/types.js'
import type { Schema } from './schema.js'
import { compiled, fromJson, fromRow, Table, toJson } from './table.js'

/** The agent's own memory of a conversation. */
export interface Session {
  conversationId: string
  backend: string
  sessionId: string
  /** Where it began; most agents find it only from there. */
  directory: string
  /** What it has used in total, if the agent reports that. */
  usage?: TokenUsage
  /** When it was last used, if not now. */
  usedAt?: number
}

export interface SessionRecord extends Session {
  usedAt: number
}

/** One session per conversation: that of another agent replaces it. */
export class Sessions extends Table {
  async get(conversationId: string): Promise<SessionRecord | undefined> {
    const [row] = (await getOne(this.db, { conversationId })).rows
    return row && toSession(row)
  }

  /** Does nothing if the conversation was reset after `begunAt`: the person no longer wants that session. */
  async set(session: Session, now: number, begunAt: number = now): Promise<void> {
    await set(this.db, { conversationId: session.conversationId, begunAt, ...valuesOf(session, now) })
  }

  /** Sets the session that a person has chosen. As after `reset`, turns that began before do not replace it. */
  async choose(session: Session, now: number): Promise<void> {
    const values = { ...valuesOf(session, now), reset_at: now }
    await this.db
      .insertInto('sessions')
      .values({ conversation_id: session.conversationId, ...values })
      .onConflict((conflict) => conflict.column('conversation_id').doUpdateSet(values))
      .execute()
  }

  /** The conversations that continue in a session. */
  async conversationsIn({ backend, sessionId }: Pick<Session, 'backend' | 'sessionId'>): Promise<string[]> {
    const rows = await this.db
      .selectFrom('sessions')
      .select('conversation_id')
      .where('session_id', '=', sessionId)
      .where('backend', '=', backend)
      .execute()
    return rows.map(({ conversation_id: id }) => id)
  }

  /** Removes this session, but not one that has replaced it meanwhile. Keeps the time of the last reset. */
  async delete(conversationId: string, sessionId: string): Promise<void> {
    await this.db
      .updateTable('sessions')
      .set({ session_id: null })
      .where('conversation_id', '=', conversationId)
      .where('session_id', '=', sessionId)
      .execute()
  }

  /** Records the time, so that turns that began before do not bring the session back. False if there was no session. */
  async reset(conversationId: string, now: number): Promise<boolean> {
    const hadSession = (await this.get(conversationId)) !== undefined
    const values = { session_id: null, reset_at: now }
    await this.db
      .insertInto('sessions')
      .values({ conversation_id: conversationId, backend: '', directory: '', used_at: now, ...values })
      .onConflict((conflict) => conflict.column('conversation_id').doUpdateSet(values))
      .execute()
    return hadSession
  }

  /** Most recently used first. */
  async list(limit: number): Promise<(SessionRecord & { channel: string; address: string })[]> {
    const rows = await this.db
      .selectFrom('sessions')
      .innerJoin('conversations', 'conversations.id', 'sessions.conversation_id')
      .selectAll('sessions')
      .select(['conversations.channel', 'conversations.address'])
      .where('sessions.session_id', 'is not', null)
      .$narrowType<{ session_id: string }>()
      .orderBy('sessions.used_at', 'desc')
      .limit(limit)
      .execute()
    return rows.map(({ channel, address, ...row }) => ({ ...toSession(row), channel, address }))
  }
}

function valuesOf(session: Session, now: number) {
  return {
    backend: session.backend,
    session_id: session.sessionId,
    directory: session.directory,
    usage: toJson(session.usage),
    used_at: session.usedAt ?? now,
  }
}

const getOne = compiled((db, { conversationId }: { conversationId: string }) =>
  db
    .selectFrom('sessions')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .where('session_id', 'is not', null)
    .$narrowType<{ session_id: string }>(),
)

type SetValues = ReturnType<typeof valuesOf> & { conversationId: string; begunAt: number }

const set = compiled((db, { conversationId, begunAt, ...values }: SetValues) =>
  db
    .insertInto('sessions')
    .values({ conversation_id: conversationId, reset_at: 0, ...values })
    .onConflict((conflict) =>
      conflict.column('conversation_id').doUpdateSet(values).where('sessions.reset_at', '<=', begunAt),
    ),
)

function toSession({ reset_at: _resetAt, ...row }: Schema['sessions'] & { session_id: string }): SessionRecord {
  return fromRow({ ...row, usage: fromJson(row.usage) as TokenUsage | null })
}
