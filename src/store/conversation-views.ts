// Conversations as people see them from outside. Read-only.

import { sql } from 'kysely'
import {
  type Conversation,
  type DeletedConversation,
  PARENT_COLUMNS,
  PROJECT_ID,
  toConversation,
  withParent,
} from './conversations.js'
import { BEGINNING } from './inbox.js'
import type { JobState } from './schema.js'
import { fromRow, isBehind, Table } from './table.js'
import { isVisible, type Visibility } from './visibility.js'

export const CONVERSATION_STATES = ['running', 'waiting', 'idle'] as const

export type ConversationState = (typeof CONVERSATION_STATES)[number]

export interface ConversationView extends Conversation {
  isPrivate: boolean
  /** Set by a person. */
  title?: string
  /** The beginning of the first message. */
  beginning?: string
  isPinned: boolean
  isArchived: boolean
  /** Whether the latest message is a dead letter. */
  hasFailed: boolean
  state: ConversationState
  /** How many messages are open. */
  open: number
  /** The number of the last message or reply. */
  lastSeq: number
  createdAt: number
  updatedAt: number
  /** The beginning of the latest message. */
  question?: string
  /** How many approvals its agent is waiting for. */
  asked: number
  /** The job that is active, or comes next. */
  head?: { messageId: string; state: JobState; dueAt: number }
  /** The current run. */
  run?: { id: string; backend: string; model?: string; startedAt: number }
}

export interface ConversationFilter {
  visibility: Visibility
  ids?: string[]
  state?: ConversationState
  channel?: string
  projectId?: string
  isPinned?: boolean
  isArchived?: boolean
}

/** An entry of a transcript. */
export interface TranscriptPlace {
  /** `reply` is one that answers no message. */
  type: 'message' | 'reply'
  id: string
  seq: number
}

export class ConversationViews extends Table {
  /** Most recently used first; only those before `before`. */
  async list(
    filter: ConversationFilter,
    limit: number,
    before?: Pick<ConversationView, 'id' | 'updatedAt'>,
  ): Promise<ConversationView[]> {
    const { visibility, ids, state, channel, projectId, isPinned, isArchived } = filter
    // `in ()` is an error on PostgreSQL.
    if (ids?.length === 0 || visibility.projects?.length === 0) return []
    let query = withParent(ids ? this.db : this.reads)
      .leftJoin('jobs as head', (join) =>
        join.onRef('head.conversation_id', '=', 'conversations.id').on('head.state', '<>', 'queued'),
      )
      .leftJoin('runs as run', (join) =>
        join.onRef('run.message_id', '=', 'head.message_id').on('run.state', '=', 'running'),
      )
      .selectAll('conversations')
      .select(PARENT_COLUMNS)
      .select([
        'head.message_id as head_message_id',
        'head.state as head_state',
        'head.due_at as head_due_at',
        'run.id as run_id',
        'run.backend as run_backend',
        'run.model as run_model',
        'run.started_at as run_started_at',
      ])
      .select(({ selectFrom }) => [
        selectFrom('jobs')
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .whereRef('jobs.conversation_id', '=', 'conversations.id')
          .as('open'),
        selectFrom('approvals')
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .whereRef('approvals.message_id', '=', 'head.message_id')
          .where('approvals.state', '=', sql.lit('asked'))
          .as('asked'),
        selectFrom('messages')
          .select(BEGINNING.as('text'))
          .whereRef('messages.conversation_id', '=', 'conversations.id')
          .orderBy('messages.seq', 'desc')
          .limit(1)
          .as('question'),
        selectFrom('messages')
          .select(BEGINNING.as('text'))
          .whereRef('messages.conversation_id', '=', 'conversations.id')
          .orderBy('messages.seq')
          .limit(1)
          .as('beginning'),
        selectFrom('messages')
          .select('messages.state')
          .whereRef('messages.conversation_id', '=', 'conversations.id')
          .orderBy('messages.seq', 'desc')
          .limit(1)
          .as('last_state'),
      ])
      .where((eb) => isVisible(eb, visibility))
      .orderBy('conversations.updated_at', 'desc')
      .orderBy('conversations.id')
      .limit(limit)
    if (ids) query = query.where('conversations.id', 'in', ids)
    if (state === 'idle') query = query.where('head.state', 'is', null)
    if (state === 'running') query = query.where('head.state', '=', sql.lit('active'))
    if (state === 'waiting') query = query.where('head.state', '=', sql.lit('ready'))
    if (channel !== undefined) query = query.where('conversations.channel', '=', channel)
    if (projectId !== undefined) query = query.where(PROJECT_ID, '=', projectId)
    // A literal, or the index could not be used.
    if (isPinned !== undefined) query = query.where('conversations.is_pinned', '=', sql.lit(Number(isPinned)))
    if (isArchived !== undefined) query = query.where('conversations.is_archived', '=', Number(isArchived))
    if (before) {
      const last = { at: before.updatedAt, id: before.id }
      query = query.where(isBehind({ at: 'conversations.updated_at', id: 'conversations.id' }, last))
    }
    const rows = await query.execute()
    return rows.map((row) => ({
      ...toConversation(row),
      isPrivate: row.is_private === 1,
      isPinned: row.is_pinned === 1,
      isArchived: row.is_archived === 1,
      hasFailed: row.last_state === 'failed',
      state: row.head_state === null ? 'idle' : row.head_state === 'active' ? 'running' : 'waiting',
      open: row.open ?? 0,
      asked: row.asked ?? 0,
      lastSeq: row.last_seq,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      ...(row.question !== null && { question: row.question }),
      ...(row.title !== null && { title: row.title }),
      ...(row.beginning !== null && { beginning: row.beginning }),
      ...(row.head_message_id !== null &&
        row.head_state !== null &&
        row.head_due_at !== null && {
          head: { messageId: row.head_message_id, state: row.head_state, dueAt: row.head_due_at },
        }),
      ...(row.run_id !== null &&
        row.run_backend !== null &&
        row.run_started_at !== null && {
          run: fromRow({
            id: row.run_id,
            backend: row.run_backend,
            model: row.run_model,
            startedAt: row.run_started_at,
          }),
        }),
    }))
  }

  /** Those with open messages, or with activity or edits since then. */
  async activeIds(since: number, limit: number): Promise<string[]> {
    const open = this.db.selectFrom('jobs').select('conversation_id as id').where('state', '<>', sql.lit('queued'))
    const changed = this.db.selectFrom('conversations').select('id').where('updated_at', '>=', since)
    const edited = this.db.selectFrom('conversations').select('id').where('edited_at', '>=', since)
    const rows = await open.union(changed).union(edited).limit(limit).execute()
    return rows.map(({ id }) => id)
  }

  /** Those deleted since then, at most a day ago. */
  async deletedSince(since: number): Promise<DeletedConversation[]> {
    const rows = await this.db
      .selectFrom('deleted_conversations')
      .select(['id', 'channel', 'address', 'project_id', 'is_private'])
      .where('deleted_at', '>=', since)
      .execute()
    return rows.map(({ is_private: isPrivate, ...row }) => ({ ...fromRow(row), isPrivate: isPrivate === 1 }))
  }

  /** Also undefined if it exists but must not be seen. */
  async get(id: string, visibility: Visibility): Promise<ConversationView | undefined> {
    const [found] = await this.list({ visibility, ids: [id] }, 1)
    return found
  }

  /** The entries before a number, latest first: as many as one reader should hold at once, and at least one. */
  async transcript(
    conversationId: string,
    limits: { entries: number; bytes: number },
    before?: number,
  ): Promise<{ entries: TranscriptPlace[]; isLast: boolean }> {
    const last = before ?? Number.MAX_SAFE_INTEGER
    const answers = sql<
      number | null
    >`(select sum(octet_length(outbox.body)) from outbox where outbox.message_id = messages.id)`
    const messages = await this.reads
      .selectFrom('messages')
      .select(['id', 'seq', sql<number>`octet_length(text)`.as('bytes'), answers.as('more')])
      .where('conversation_id', '=', conversationId)
      .where('seq', '<', last)
      .orderBy('seq', 'desc')
      .limit(limits.entries + 1)
      .execute()
    const replies = await this.reads
      .selectFrom('outbox')
      .select(['id', 'seq', sql<number>`octet_length(body)`.as('bytes')])
      .where('conversation_id', '=', conversationId)
      .where('message_id', 'is', null)
      .where('seq', '<', last)
      .orderBy('seq', 'desc')
      .limit(limits.entries + 1)
      .execute()
    const found = [
      ...messages.map(({ id, seq, bytes, more }) => ({
        type: 'message' as const,
        id,
        seq,
        bytes: bytes + Number(more),
      })),
      ...replies.map((reply) => ({ type: 'reply' as const, ...reply })),
    ].toSorted((a, b) => b.seq - a.seq)
    const entries: TranscriptPlace[] = []
    let bytes = 0
    for (const { type, id, seq, bytes: size } of found) {
      bytes += size
      if (entries.length === limits.entries || (bytes > limits.bytes && entries.length > 0)) break
      entries.push({ type, id, seq })
    }
    return { entries, isLast: entries.length === found.length }
  }
}
