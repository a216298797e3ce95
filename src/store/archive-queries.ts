// What was said, for the archive and for search. Read-only.

import { expressionBuilder, sql } from 'kysely'
import type { MessageKind, Reply } from '../channels/types.js'
import type { Conversation } from './conversations.js'
import type { DeliveryState, MessageState, Schema } from './schema.js'
import { fromRow, Table } from './table.js'
import { EVERYTHING, inVisibleConversation, type Visibility } from './visibility.js'

export const DAY_MS = 24 * 3_600_000

export interface ArchivedConversation extends Pick<Conversation, 'id' | 'channel' | 'address'> {
  updatedAt: number
}

/** What a reader needs to know of a run. */
export interface RunReference {
  id: string
  backend: string
  model?: string
}

export interface ArchivedMessage {
  type: 'message'
  at: number
  seq: number
  author: string
  kind: MessageKind
  text: string
  state: MessageState
  /** The runs of a message that ended without a reply. */
  runs: RunReference[]
}

export interface ArchivedReply {
  type: 'reply'
  at: number
  seq: number
  reply: Reply
  state: DeliveryState
  run?: RunReference
}

export type ArchiveEntry = ArchivedMessage | ArchivedReply

export interface SearchFilter {
  /** Each must be in the text, ignoring case. Contract: only ASCII. The caller compares whole words in the candidates. */
  fragments: string[]
  channel?: string
  address?: string
  /** Milliseconds since the epoch. */
  since?: number
  visibility?: Visibility
  /** At most this many candidates, the newest ones. */
  limit?: number
}

export interface SearchCandidate {
  type: ArchiveEntry['type']
  id: string
  conversationId: string
  at: number
}

export interface SearchedText extends SearchCandidate {
  channel: string
  address: string
  /** The person or the agent; absent for what the gateway itself said. */
  author?: string
  text: string
}

const ARCHIVED_COLUMNS = ['id', 'channel', 'address', 'updated_at as updatedAt'] as const

export class ArchiveQueries extends Table {
  async conversation(id: string): Promise<ArchivedConversation | undefined> {
    return this.db.selectFrom('conversations').select(ARCHIVED_COLUMNS).where('id', '=', id).executeTakeFirst()
  }

  /** By id, after the given one. */
  async conversations(afterId: string, limit: number): Promise<ArchivedConversation[]> {
    return this.db
      .selectFrom('conversations')
      .select(ARCHIVED_COLUMNS)
      .where('id', '>', afterId)
      .orderBy('id')
      .limit(limit)
      .execute()
  }

  /** The starts of the UTC days with entries that were added or changed since then, in order. */
  async changedDays(conversationId: string, since: number): Promise<number[]> {
    const messages = this.db
      .selectFrom('messages')
      .select(sql<number>`received_at / ${sql.lit(DAY_MS)}`.as('day'))
      .where('conversation_id', '=', conversationId)
      .where(({ or, eb }) => or([eb('received_at', '>=', since), eb('finished_at', '>=', since)]))
    const replies = this.db
      .selectFrom('outbox')
      .select(sql<number>`created_at / ${sql.lit(DAY_MS)}`.as('day'))
      .where('conversation_id', '=', conversationId)
      .where(({ or, eb }) => or([eb('created_at', '>=', since), eb('settled_at', '>=', since)]))
    const rows = await messages.union(replies).orderBy('day').execute()
    return rows.map(({ day }) => day * DAY_MS)
  }

  /** What was said from `from` on and before `to`, in order. */
  async entries(conversationId: string, from: number, to: number): Promise<ArchiveEntry[]> {
    const messages = await this.db
      .selectFrom('messages')
      .select(['id', 'seq', 'author', 'kind', 'text', 'state', 'received_at'])
      .where('conversation_id', '=', conversationId)
      .where('received_at', '>=', from)
      .where('received_at', '<', to)
      .execute()
    const runs = await this.db
      .selectFrom('messages')
      .innerJoin('runs', 'runs.message_id', 'messages.id')
      .select(['runs.message_id', 'runs.id', 'runs.backend', 'runs.model'])
      .where('messages.conversation_id', '=', conversationId)
      .where('messages.received_at', '>=', from)
      .where('messages.received_at', '<', to)
      .where('messages.state', 'in', ['cancelled', 'dropped'])
      .orderBy('runs.started_at')
      .execute()
    const replies = await this.db
      .selectFrom('outbox')
      .leftJoin('runs', 'runs.id', 'outbox.run_id')
      .select([
        'outbox.seq',
        'outbox.body',
        'outbox.state',
        'outbox.created_at',
        'runs.id',
        'runs.backend',
        'runs.model',
      ])
      .where('outbox.conversation_id', '=', conversationId)
      .where('outbox.created_at', '>=', from)
      .where('outbox.created_at', '<', to)
      .execute()
    const entries: ArchiveEntry[] = [
      ...messages.map(({ id, seq, author, kind, text, state, received_at: at }): ArchivedMessage => ({
        type: 'message',
        at,
        seq,
        author,
        kind,
        text,
        state,
        runs: runs.filter((run) => run.message_id === id).map(({ message_id: _messageId, ...run }) => fromRow(run)),
      })),
      ...replies.map(({ seq, body, state, created_at: at, id, backend, model }): ArchivedReply => ({
        type: 'reply',
        at,
        seq,
        reply: JSON.parse(body) as Reply,
        state,
        ...(id !== null && backend !== null && { run: fromRow({ id, backend, model }) }),
      })),
    ]
    return entries.toSorted((a, b) => a.at - b.at || a.seq - b.seq)
  }

  /** Entries that may contain the fragments, newest first. */
  async candidates(filter: SearchFilter): Promise<SearchCandidate[]> {
    const { fragments, channel, address, since, visibility = EVERYTHING, limit } = filter
    const contains = (column: string): ReturnType<typeof sql<boolean>>[] =>
      fragments.map((fragment) => sql<boolean>`lower(${sql.ref(column)}) like ${pattern(fragment)} escape '\\'`)
    const { eb, and } = expressionBuilder<Schema, 'conversations'>()
    const isThere = [
      ...(channel === undefined ? [] : [eb('conversations.channel', '=', channel)]),
      ...(address === undefined ? [] : [eb('conversations.address', '=', address)]),
    ]
    let messages = this.reads
      .selectFrom('messages')
      .innerJoin('conversations', 'conversations.id', 'messages.conversation_id')
      .select([
        sql<ArchiveEntry['type']>`'message'`.as('type'),
        'messages.id as id',
        'messages.conversation_id as conversationId',
        'messages.received_at as at',
      ])
      .where(inVisibleConversation(this.reads, visibility, 'messages.conversation_id'))
      .where(and([...contains('messages.text'), ...isThere]))
    let replies = this.reads
      .selectFrom('outbox')
      .innerJoin('conversations', 'conversations.id', 'outbox.conversation_id')
      .select([
        sql<ArchiveEntry['type']>`'reply'`.as('type'),
        'outbox.id as id',
        'outbox.conversation_id as conversationId',
        'outbox.created_at as at',
      ])
      .where(inVisibleConversation(this.reads, visibility, 'outbox.conversation_id'))
      .where(and([...contains('outbox.body'), ...isThere]))
    if (since !== undefined) {
      messages = messages.where('messages.received_at', '>=', since)
      replies = replies.where('outbox.created_at', '>=', since)
    }
    return messages
      .unionAll(replies)
      .orderBy('at', 'desc')
      .orderBy('conversationId')
      .orderBy('type', 'desc')
      .orderBy('id')
      .$if(limit !== undefined, (candidates) => candidates.limit(limit ?? 0))
      .execute()
  }

  /** The texts of candidates, in their order. */
  async texts(candidates: SearchCandidate[]): Promise<SearchedText[]> {
    const found = new Map([
      ...(await this.#messageTexts(idsOf(candidates, 'message'))),
      ...(await this.#replyTexts(idsOf(candidates, 'reply'))),
    ])
    return candidates.flatMap((candidate) => {
      const text = found.get(candidate.id)
      return text ? [{ ...candidate, ...text }] : []
    })
  }

  async #messageTexts(ids: string[]): Promise<[string, FoundText][]> {
    // `in ()` is an error on PostgreSQL.
    if (ids.length === 0) return []
    const rows = await this.reads
      .selectFrom('messages')
      .innerJoin('conversations', 'conversations.id', 'messages.conversation_id')
      .select(['messages.id', 'messages.author', 'messages.text', 'conversations.channel', 'conversations.address'])
      .where('messages.id', 'in', ids)
      .execute()
    return rows.map(({ id, ...text }) => [id, text])
  }

  async #replyTexts(ids: string[]): Promise<[string, FoundText][]> {
    if (ids.length === 0) return []
    const rows = await this.reads
      .selectFrom('outbox')
      .innerJoin('conversations', 'conversations.id', 'outbox.conversation_id')
      .leftJoin('runs', 'runs.id', 'outbox.run_id')
      .select(['outbox.id', 'outbox.body', 'runs.backend', 'conversations.channel', 'conversations.address'])
      .where('outbox.id', 'in', ids)
      .execute()
    return rows.map(({ id, body, backend, channel, address }) => {
      const { text, notes } = JSON.parse(body) as Reply
      return [id, { channel, address, ...(backend !== null && { author: backend }), text: [text, ...notes].join('\n') }]
    })
  }
}

type FoundText = Omit<SearchedText, keyof SearchCandidate>

function idsOf(candidates: SearchCandidate[], type: SearchCandidate['type']): string[] {
  return candidates.filter((candidate) => candidate.type === type).map(({ id }) => id)
}

function pattern(fragment: string): string {
  return `%${fragment.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
}
