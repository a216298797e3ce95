import { sql } from 'kysely'
import type { AgentEvent, AgentResult, TokenUsage } from '../backends/types.js'
import type { MessageKind, MessageOptions } from '../channels/types.js'
import { PROJECT_ID, withParent } from './conversations.js'
import { BEGINNING } from './inbox.js'
import type { EndedState, RunState, Schema } from './schema.js'
import { type Columns, compiled, fromJson, fromRow, Table, toJson, toRow } from './table.js'
import { EVERYTHING, inVisibleConversation, type Visibility } from './visibility.js'

export interface NewRun {
  id: string
  messageId: string
  conversationId: string
  gatewayId: string
  backend: string
  model?: string
  /** Where the agent works. */
  directory?: string
  /** Set by the caller, for their own use. */
  metadata?: Record<string, string>
}

/** A run that was still going when another gateway took over its message. */
export interface CutOffRun {
  id: string
  gatewayId: string
}

/** One turn of an agent. */
export interface RunRecord extends NewRun {
  sessionId?: string
  firstSeq: number
  state: RunState
  startedAt: number
  endedAt?: number
  result?: AgentResult
}

/** Whether the agent stopped at its turn limit and can be continued. `kind` is that of its message. */
export function isPaused({ state, sessionId, result }: RunRecord, kind: MessageKind | undefined): boolean {
  const isAtLimit = state === 'answered' && result?.failure?.reason === 'max_turns'
  return isAtLimit && sessionId !== undefined && kind === 'message'
}

/** Which message and conversation a run belongs to. */
export type BegunRun = Pick<RunRecord, 'id' | 'messageId' | 'conversationId'>

/** What lists show of a message's last run. */
export type LastRun = Pick<RunRecord, 'backend' | 'state' | 'sessionId'>

/** A session of an agent that runs have used. */
export interface UsedSession {
  backend: string
  sessionId: string
  /** When the last run in it started. */
  usedAt: number
  /** The beginning of the last message in it. */
  question: string
  /** What it has used in total, if the agent reports that. */
  usage?: TokenUsage
}

export interface SessionFilter {
  /** Its sessions are always listed; those of other conversations only if they are not private. */
  conversationId: string | undefined
  /** Where they were used: most agents find a session only from there. */
  directory: string
  since: number
  /** A prefix of the id. */
  prefix?: string
  /** Excludes sessions also used in a conversation that must not be seen. */
  visibility?: Visibility
}

export class Runs extends Table {
  /** `isFirst`: the message is known to have had no run before. */
  async begin(run: NewRun, now: number, isFirst = false): Promise<void> {
    const earlier = isFirst ? undefined : await this.#last(run.messageId)
    const firstSeq = isFirst ? 0 : await this.#lastNumber(run.messageId, earlier)
    // In order even if the clocks of gateways differ.
    const startedAt = Math.max(now, (earlier?.started_at ?? 0) + 1)
    const { id, messageId, conversationId, gatewayId, backend, model = null, directory = null } = run
    const planned = { id, messageId, conversationId, gatewayId, backend, model, directory }
    await begin(this.db, { ...planned, metadata: toJson(run.metadata), firstSeq, startedAt })
  }

  /** The number of the last event in a message's stream, which a retry may have moved past the last recorded one. */
  async lastNumber(messageId: string): Promise<number> {
    return this.#lastNumber(messageId, await this.#last(messageId))
  }

  async #lastNumber(messageId: string, last: { id: string; first_seq: number } | undefined): Promise<number> {
    const message = await this.db
      .selectFrom('messages')
      .select('retried_after')
      .where('id', '=', messageId)
      .executeTakeFirst()
    const ofLast = last ? last.first_seq + (await this.#countEvents(last.id)) : 0
    return Math.max(ofLast, message?.retried_after ?? 0)
  }

  async #last(messageId: string) {
    const [row] = (await latest(this.db, { messageId })).rows
    return row
  }

  async #countEvents(runId: string): Promise<number> {
    const { last } = await this.db
      .selectFrom('events')
      .select(({ fn }) => fn.max('seq').as('last'))
      .where('run_id', '=', runId)
      .executeTakeFirstOrThrow()
    return last ?? 0
  }

  async end(id: string, state: EndedState, result: AgentResult | undefined, now: number): Promise<void> {
    const { sessionId = null } = result ?? {}
    await end(this.db, { id, state, now, sessionId, result: toJson(result) })
    await this.#addFigures(id, state, result, now)
  }

  /** Ends the runs of a message that are still recorded as running although nobody works on them. Returns those. */
  async interrupt(messageId: string, now: number): Promise<CutOffRun[]> {
    const ended = await this.db
      .updateTable('runs')
      .set({ state: 'interrupted', ended_at: now })
      .where('message_id', '=', messageId)
      .where('state', '=', 'running')
      .returning(['id', 'gateway_id'])
      .execute()
    for (const { id } of ended) await this.#addFigures(id, 'interrupted', undefined, now)
    return ended.map(fromRow)
  }

  /** What it took and used. Contract: may be repeated if it is not known whether it was written. */
  async #addFigures(runId: string, state: EndedState, result: AgentResult | undefined, now: number): Promise<void> {
    const [run] = (await countedRun(this.db, { runId })).rows
    if (!run) return
    const { projectId = run.project_id } = (run.options === null ? {} : JSON.parse(run.options)) as MessageOptions
    const first = run.first_output === null ? undefined : (JSON.parse(run.first_output) as AgentEvent)
    const { usage, costUsd = null, failure } = result ?? {}
    await addFigures(this.db, {
      run_id: runId,
      conversation_id: run.conversation_id,
      project_id: projectId,
      backend: run.backend,
      state,
      started_at: run.started_at,
      duration_ms: now - run.started_at,
      first_text_ms: first ? first.timestamp - run.started_at : null,
      input_tokens: usage?.inputTokens ?? null,
      output_tokens: usage?.outputTokens ?? null,
      cache_read_tokens: usage?.cacheReadTokens ?? null,
      cache_write_tokens: usage?.cacheWriteTokens ?? null,
      cost_usd: costUsd,
      reason: failure?.reason ?? null,
    })
  }

  /** The conversations whose runs used a session. */
  async conversationsIn({ backend, sessionId }: { backend: string; sessionId: string }): Promise<string[]> {
    const rows = await this.db
      .selectFrom('runs')
      .select('conversation_id')
      .distinct()
      .where('session_id', '=', sessionId)
      .where('backend', '=', backend)
      .execute()
    return rows.map(({ conversation_id: id }) => id)
  }

  /** Where the runs of a conversation took place. */
  async directories(conversationId: string): Promise<string[]> {
    const rows = await this.db
      .selectFrom('runs')
      .select('directory')
      .distinct()
      .where('conversation_id', '=', conversationId)
      .execute()
    return rows.flatMap(({ directory }) => directory ?? [])
  }

  /** Whether the latest run of a message was interrupted. */
  async wasInterrupted(messageId: string): Promise<boolean> {
    return (await this.#last(messageId))?.state === 'interrupted'
  }

  async get(id: string): Promise<RunRecord | undefined> {
    const row = await this.db.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toRun(row)
  }

  /** At most two whose ids begin with what a person typed. Contract: `prefix` has only hex digits and dashes. */
  async findByPrefix(prefix: string): Promise<RunRecord[]> {
    const rows = await this.db.selectFrom('runs').selectAll().where('id', 'like', `${prefix}%`).limit(2).execute()
    return rows.map(toRun)
  }

  /** The runs of a message, in order. */
  async ofMessage(messageId: string): Promise<RunRecord[]> {
    return this.ofMessages([messageId])
  }

  /** The runs of messages, in order. */
  async ofMessages(messageIds: string[]): Promise<RunRecord[]> {
    if (messageIds.length === 0) return []
    const rows = await this.db
      .selectFrom('runs')
      .selectAll()
      .where('message_id', 'in', messageIds)
      .orderBy('first_seq')
      .orderBy('started_at')
      .execute()
    return rows.map(toRun)
  }

  /** The last run of each message, by the id of the message. */
  async lastOf(messageIds: string[]): Promise<Map<string, LastRun>> {
    if (messageIds.length === 0) return new Map()
    const rows = await this.db
      .selectFrom('runs')
      .select(['message_id', 'backend', 'session_id', 'state'])
      .where('message_id', 'in', messageIds)
      .orderBy('first_seq')
      .orderBy('started_at')
      .execute()
    return new Map(rows.map(({ message_id: messageId, ...run }) => [messageId, fromRow(run)]))
  }

  /** Of the last run of a message, what numbers its events. */
  async latest(messageId: string): Promise<Pick<RunRecord, 'id' | 'firstSeq' | 'state'> | undefined> {
    const last = await this.#last(messageId)
    return last && { id: last.id, firstSeq: last.first_seq, state: last.state }
  }

  /** The current run of a message. */
  async running(messageId: string): Promise<RunRecord | undefined> {
    const row = await this.db
      .selectFrom('runs')
      .selectAll()
      .where('message_id', '=', messageId)
      .where('state', '=', 'running')
      .orderBy('started_at', 'desc')
      .limit(1)
      .executeTakeFirst()
    return row && toRun(row)
  }

  /** The sessions that were used in a directory, most recently used first. */
  async sessions(filter: SessionFilter, limit: number): Promise<UsedSession[]> {
    const { conversationId, directory, since, prefix = '', visibility = EVERYTHING } = filter
    const latestFirst = sql<number>`row_number() over (
      partition by runs.backend, runs.session_id order by runs.started_at desc, runs.id desc
    )`
    const ranked = this.reads
      .selectFrom('runs')
      .innerJoin('conversations', 'conversations.id', 'runs.conversation_id')
      .select(['runs.id', 'runs.backend', 'runs.session_id', 'runs.started_at', latestFirst.as('rank')])
      .where('runs.session_id', 'is not', null)
      .where(sql`substr(runs.session_id, 1, ${prefix.length})`, '=', prefix)
      .where('runs.started_at', '>=', since)
      .where('runs.directory', '=', directory)
      .where(({ or, eb }) =>
        or([eb('conversations.id', '=', conversationId ?? ''), eb('conversations.is_private', '=', 0)]),
      )
    const listed = this.reads
      .selectFrom(ranked.as('ranked'))
      .select('ranked.id')
      .where('ranked.rank', '=', 1)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('runs as other')
              .select('other.id')
              .whereRef('other.session_id', '=', 'ranked.session_id')
              .whereRef('other.backend', '=', 'ranked.backend')
              .where(not(inVisibleConversation(this.reads, visibility, 'other.conversation_id'))),
          ),
        ),
      )
      .orderBy('ranked.started_at', 'desc')
      .limit(limit)
    const rows = await this.reads
      .selectFrom(listed.as('listed'))
      .innerJoin('runs', 'runs.id', 'listed.id')
      .innerJoin('messages', 'messages.id', 'runs.message_id')
      .select(['runs.backend', 'runs.session_id', 'runs.started_at', 'runs.result', BEGINNING.as('text')])
      .$narrowType<{ session_id: string }>()
      .orderBy('runs.started_at', 'desc')
      .execute()
    return rows.map(({ backend, session_id: sessionId, started_at: usedAt, text: question, result }) => {
      const usage = result === null ? undefined : (JSON.parse(result) as AgentResult).sessionUsage
      return { backend, sessionId, usedAt, question, ...(usage && { usage }) }
    })
  }

  /** The models that were asked for and answered since then, most recently used first. */
  async models(backend: string, since: number, limit: number): Promise<string[]> {
    const rows = await this.reads
      .selectFrom('runs')
      .select('model')
      .where('backend', '=', backend)
      .where('model', 'is not', null)
      .$narrowType<{ model: string }>()
      // A mistyped name never answered.
      .where('state', '=', 'answered')
      .where('started_at', '>=', since)
      .groupBy('model')
      .orderBy(({ fn }) => fn.max('started_at'), 'desc')
      .limit(limit)
      .execute()
    return rows.map(({ model }) => model)
  }

  /** The latest run of an agent that answered in a conversation. */
  async latestAnswer(conversationId: string, backend: string): Promise<string | undefined> {
    const row = await this.db
      .selectFrom('runs')
      .select('id')
      .where('conversation_id', '=', conversationId)
      .where('backend', '=', backend)
      .where('state', '=', 'answered')
      .orderBy('started_at', 'desc')
      .limit(1)
      .executeTakeFirst()
    return row?.id
  }

  /** Those that started since then, newest first. */
  async begunSince(since: number, limit: number): Promise<BegunRun[]> {
    return this.db
      .selectFrom('runs')
      .select(['id', 'message_id as messageId', 'conversation_id as conversationId'])
      .where('started_at', '>=', since)
      .orderBy('started_at', 'desc')
      .limit(limit)
      .execute()
  }

  /** Newest first. */
  async list(limit: number): Promise<RunRecord[]> {
    const rows = await this.db.selectFrom('runs').selectAll().orderBy('started_at', 'desc').limit(limit).execute()
    return rows.map(toRun)
  }
}

type BegunRow = Omit<Columns<'runs'>, 'state' | 'sessionId' | 'endedAt' | 'result'>

const begin = compiled((db, run: BegunRow) => db.insertInto('runs').values({ ...toRow(run), state: 'running' }))

type EndedValues = { id: string; state: EndedState; now: number; sessionId: string | null; result: string | null }

const end = compiled((db, { id, state, now, sessionId, result }: EndedValues) =>
  db.updateTable('runs').set({ state, ended_at: now, session_id: sessionId, result }).where('id', '=', id),
)

const latest = compiled((db, { messageId }: { messageId: string }) =>
  db
    .selectFrom('runs')
    .select(['id', 'first_seq', 'state', 'started_at'])
    .where('message_id', '=', messageId)
    .orderBy('first_seq', 'desc')
    .orderBy('started_at', 'desc')
    .limit(sql.lit(1)),
)

const countedRun = compiled((db, { runId }: { runId: string }) =>
  withParent(db)
    .innerJoin('runs', 'runs.conversation_id', 'conversations.id')
    .innerJoin('messages', 'messages.id', 'runs.message_id')
    .select(['runs.conversation_id', 'runs.backend', 'runs.started_at', 'messages.options'])
    .select(PROJECT_ID.as('project_id'))
    .select(({ selectFrom }) =>
      selectFrom('events')
        .select('events.body')
        .whereRef('events.run_id', '=', 'runs.id')
        .where('events.type', '=', 'output')
        .orderBy('events.seq')
        .limit(1)
        .as('first_output'),
    )
    .where('runs.id', '=', runId),
)

const addFigures = compiled((db, { run_id, ...values }: Schema['run_figures']) =>
  db
    .insertInto('run_figures')
    .values({ run_id, ...values })
    .onConflict((conflict) => conflict.column('run_id').doUpdateSet(values)),
)

function toRun(row: Schema['runs']): RunRecord {
  const metadata = fromJson(row.metadata) as Record<string, string> | null
  return fromRow({ ...row, metadata, result: fromJson(row.result) as AgentResult | null })
}
