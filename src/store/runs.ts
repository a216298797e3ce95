import { type Expression, expressionBuilder, type Kysely, sql, type SqlBool } from 'kysely'
import type { AgentEvent, AgentResult, FailureReason, TokenUsage } from '../backends/types.js'
import type { MessageKind, MessageOptions } from '../channels/types.js'
import { compiled } from './compiled.js'
import { EVERYTHING, inSight, type Sight } from './conversation-views.js'
import { PROJECT_ID, withParent } from './conversations.js'
import type { Engine } from './engine.js'
import type { RunState, Schema } from './schema.js'

export interface NewRun {
  id: string
  messageId: string
  conversationId: string
  gatewayId: string
  backend: string
  model?: string
  /** Where the agent works. */
  directory?: string
  /** What whoever asked for it wants to find again. */
  metadata?: Record<string, string>
}

/** A run that was under way when somebody else took its message over. */
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

type EndedState = Exclude<RunState, 'running'>

/** Of a run, where it belongs. */
export type BegunRun = Pick<RunRecord, 'id' | 'messageId' | 'conversationId'>

/** Of a run, what a list tells. */
export type LastRun = Pick<RunRecord, 'backend' | 'state' | 'sessionId'>

/** `seq` counts from 1 without gaps within its run. */
export interface RecordedEvent {
  seq: number
  event: AgentEvent
}

export interface PageLimits {
  events: number
  bytes: number
}

export interface EventPage {
  events: RecordedEvent[]
  /** Whether nothing comes after it for now. */
  isLast: boolean
}

/** A tool that an agent used. */
export interface UsedTool {
  name: string
  input: Record<string, unknown>
  /** Whether it has not come to its end. */
  isRunning: boolean
}

/** A session in which an agent has worked. */
export interface UsedSession {
  backend: string
  sessionId: string
  /** When it was last worked in. */
  usedAt: number
  /** The beginning of the last message to it. */
  question: string
  /** What it has used in all, of an agent that counts that way. */
  usage?: TokenUsage
}

/** Where sessions are looked for. */
export interface SessionFilter {
  /** Whose sessions are listed in any case; of others those that are not private. */
  conversationId: string | undefined
  /** Where they were used: most agents find a session only there. */
  directory: string
  since: number
  /** How the id begins. */
  prefix?: string
  /** Only those of which nothing was said where it must not be seen. */
  sight?: Sight
}

/** Whose runs are counted: those of one conversation, of all with that project or without any, or of what came so. */
export type UsageScope = { conversationId: string } | { projectId: string | undefined } | { kind: MessageKind }

/** What turns have used, as far as their agents told. */
export interface Usage {
  turns: number
  workedMs: number
  tokens?: Omit<TokenUsage, 'reasoningTokens' | 'totalTokens'>
  costUsd?: number
  /** How many of the turns have told their cost. */
  pricedTurns: number
  /** How many may have used tokens, and did not tell. */
  uncountedTurns: number
}

/** A statement of either engine takes at least this many rows of four values. */
const ROWS_AT_ONCE = 500
/** Of a message, enough to recognise it by. */
const BEGINNING = sql<string>`substr(messages.text, 1, 400)`.as('text')
/** An agent does not use more tools at once. */
const LATEST_TOOL_EVENTS = 20

export class Runs {
  constructor(
    private readonly db: Kysely<Schema>,
    private readonly engine: Pick<Engine, 'locksRows'>,
    private readonly reads: Kysely<Schema>,
  ) {}

  /** `isFirst` when the message is known to have had none before. */
  async begin(run: NewRun, now: number, isFirst = false): Promise<void> {
    const earlier = isFirst ? undefined : await this.#last(run.messageId)
    const firstSeq = isFirst ? 0 : await this.#lastNumber(run.messageId, earlier)
    // In order also when the clock of another gateway is behind.
    const startedAt = Math.max(now, (earlier?.started_at ?? 0) + 1)
    const { model = null, directory = null } = run
    const metadata = run.metadata === undefined ? null : JSON.stringify(run.metadata)
    await begin(this.db, { ...run, model, directory, metadata, firstSeq, startedAt })
  }

  /** The number of the last event of a message, or of the end after which it was taken up again. */
  async lastNumber(messageId: string): Promise<number> {
    return this.#lastNumber(messageId, await this.#last(messageId))
  }

  async #lastNumber(messageId: string, last: Pick<Row, 'id' | 'first_seq'> | undefined): Promise<number> {
    const message = await this.db
      .selectFrom('messages')
      .select('retried_after')
      .where('id', '=', messageId)
      .executeTakeFirst()
    const ofLast = last ? last.first_seq + (await this.#countEvents(last.id)) : 0
    return Math.max(ofLast, message?.retried_after ?? 0)
  }

  async #last(messageId: string): Promise<Pick<Row, 'id' | 'first_seq' | 'started_at'> | undefined> {
    return this.db
      .selectFrom('runs')
      .select(['id', 'first_seq', 'started_at'])
      .where('message_id', '=', messageId)
      .orderBy('first_seq', 'desc')
      .orderBy('started_at', 'desc')
      .limit(1)
      .executeTakeFirst()
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
    await end(this.db, { id, state, now, sessionId, result: result === undefined ? null : JSON.stringify(result) })
    await this.#count(id, state, result, now)
  }

  /** Keeps what `Figures` counts. */
  async #count(id: string, state: EndedState, result: AgentResult | undefined, now: number): Promise<void> {
    const [run] = (await ended(this.db, { id })).rows
    if (!run) return
    const { projectId = run.project_id } = (run.options === null ? {} : JSON.parse(run.options)) as MessageOptions
    const first = run.first_output === null ? undefined : (JSON.parse(run.first_output) as AgentEvent)
    await count(this.db, {
      run_id: id,
      conversation_id: run.conversation_id,
      project_id: projectId,
      backend: run.backend,
      state,
      started_at: run.started_at,
      duration_ms: now - run.started_at,
      first_text_ms: first ? first.timestamp - run.started_at : null,
      input_tokens: result?.usage?.inputTokens ?? null,
      output_tokens: result?.usage?.outputTokens ?? null,
      cache_read_tokens: result?.usage?.cacheReadTokens ?? null,
      cache_write_tokens: result?.usage?.cacheWriteTokens ?? null,
      cost_usd: result?.costUsd ?? null,
      reason: result?.failure?.reason ?? null,
    })
  }

  /** Marks the runs of a message that nobody works on any more. Returns those that it was still on record that somebody did. */
  async interrupt(messageId: string, now: number): Promise<CutOffRun[]> {
    const ended = await this.db
      .updateTable('runs')
      .set({ state: 'interrupted', ended_at: now })
      .where('message_id', '=', messageId)
      .where('state', '=', 'running')
      .returning(['id', 'gateway_id'])
      .execute()
    for (const { id } of ended) await this.#count(id, 'interrupted', undefined, now)
    return ended.map(({ id, gateway_id: gatewayId }) => ({ id, gatewayId }))
  }

  /** The conversations in which runs of an agent ended in a session. */
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

  /** Whether the latest run of a message was cut off. */
  async wasInterrupted(messageId: string): Promise<boolean> {
    const row = await this.db
      .selectFrom('runs')
      .select('state')
      .where('message_id', '=', messageId)
      .orderBy('started_at', 'desc')
      .limit(1)
      .executeTakeFirst()
    return row?.state === 'interrupted'
  }

  /**
   * Whether the run still goes on. After the claim has gone to somebody else, which ends the run, nothing is written.
   *
   * Contract: may be repeated when it is not known whether it was written.
   */
  async record(runId: string, events: RecordedEvent[]): Promise<boolean> {
    for (let start = 0; start < events.length; start += ROWS_AT_ONCE) {
      const some = events.slice(start, start + ROWS_AT_ONCE)
      const seqs = some.map(({ seq }) => seq)
      const types = some.map(({ event }) => event.type)
      const bodies = some.map(({ event }) => JSON.stringify(event))
      const { locksRows } = this.engine
      const { numAffectedRows } = await record(this.db, { runId, seqs, types, bodies, locksRows })
      if (numAffectedRows === 0n) return false
    }
    return true
  }

  async events(runId: string, afterSeq = 0): Promise<RecordedEvent[]> {
    const rows = await this.db
      .selectFrom('events')
      .select(['seq', 'body'])
      .where('run_id', '=', runId)
      .where('seq', '>', afterSeq)
      .orderBy('seq')
      .execute()
    return rows.map(toRecorded)
  }

  /**
   * The next events of a run, as many as one reader should hold at once: the last is the one that makes it enough.
   *
   * Neither engine reads a text to tell its length in bytes, so that what is not on the page costs nothing.
   */
  async page(runId: string, afterSeq: number, limits: PageLimits): Promise<EventPage> {
    const size = sql<number>`octet_length(body)`
    const sized = this.db
      .selectFrom('events')
      .select(['seq', size.as('size')])
      .where('run_id', '=', runId)
      .where('seq', '>', afterSeq)
      .orderBy('seq')
      .limit(limits.events)
    const rows = await this.db
      .with('sized', () => sized)
      .with('summed', (db) =>
        db.selectFrom('sized').select(['seq', 'size', sql<number | string>`sum(size) over (order by seq)`.as('total')]),
      )
      .selectFrom('summed')
      .innerJoin('events', 'events.seq', 'summed.seq')
      .select(['events.seq', 'events.body', 'summed.total'])
      .where('events.run_id', '=', runId)
      .where(sql<number>`total - size`, '<', limits.bytes)
      .orderBy('events.seq')
      .execute()
    const last = rows.at(-1)
    // A sum is more than PostgreSQL's driver takes for a number.
    const isLast = rows.length < limits.events && Number(last?.total ?? 0) < limits.bytes
    return { events: rows.map(toRecorded), isLast }
  }

  async get(id: string): Promise<RunRecord | undefined> {
    const row = await this.db.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toRun(row)
  }

  /** At most two whose id begins so, as a person would type it. Contract: `prefix` is of hex digits and dashes. */
  async findByPrefix(prefix: string): Promise<RunRecord[]> {
    const rows = await this.db.selectFrom('runs').selectAll().where('id', 'like', `${prefix}%`).limit(2).execute()
    return rows.map(toRun)
  }

  /** The attempts at a message, in order. */
  async ofMessage(messageId: string): Promise<RunRecord[]> {
    return this.ofMessages([messageId])
  }

  /** The attempts at messages, in order. */
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

  /** The last attempts at messages, by the ids of the messages. */
  async lastOf(messageIds: string[]): Promise<Map<string, LastRun>> {
    if (messageIds.length === 0) return new Map()
    const rows = await this.db
      .selectFrom('runs')
      .select(['message_id', 'backend', 'session_id', 'state'])
      .where('message_id', 'in', messageIds)
      .orderBy('first_seq')
      .orderBy('started_at')
      .execute()
    return new Map(
      rows.map(({ message_id: messageId, backend, session_id: sessionId, state }) => [
        messageId,
        { backend, state, ...(sessionId !== null && { sessionId }) },
      ]),
    )
  }

  /** The last attempt at a message, as far as its events are numbered by it. */
  async latest(messageId: string): Promise<Pick<RunRecord, 'id' | 'firstSeq' | 'state'> | undefined> {
    const [row] = (await latest(this.db, { messageId })).rows
    return row && { id: row.id, firstSeq: row.first_seq, state: row.state }
  }

  /** The run of a message that goes on now. */
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

  /** The tools that a run has used lately, latest first. */
  async latestTools(runId: string): Promise<UsedTool[]> {
    const rows = await this.db
      .selectFrom('events')
      .select('body')
      .where('run_id', '=', runId)
      .where('type', 'in', ['tool_use', 'tool_result'])
      .orderBy('seq', 'desc')
      .limit(LATEST_TOOL_EVENTS)
      .execute()
    // An end comes after its beginning, so that of any tool found here is found too.
    const ended = new Set<string>()
    return rows.flatMap(({ body }) => {
      const event = JSON.parse(body) as AgentEvent
      if (event.type === 'tool_result') ended.add(event.toolId)
      if (event.type !== 'tool_use') return []
      return [{ name: event.toolName, input: event.toolInput, isRunning: !ended.has(event.toolId) }]
    })
  }

  /** The sessions that were used in a directory, last used first. */
  async sessions(filter: SessionFilter, limit: number): Promise<UsedSession[]> {
    const { conversationId, directory, since, prefix = '', sight = EVERYTHING } = filter
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
              .where(not(inSight(this.reads, sight, 'other.conversation_id'))),
          ),
        ),
      )
      .orderBy('ranked.started_at', 'desc')
      .limit(limit)
    const rows = await this.reads
      .selectFrom(listed.as('listed'))
      .innerJoin('runs', 'runs.id', 'listed.id')
      .innerJoin('messages', 'messages.id', 'runs.message_id')
      .select(['runs.backend', 'runs.session_id', 'runs.started_at', 'runs.result', BEGINNING])
      .$narrowType<{ session_id: string }>()
      .orderBy('runs.started_at', 'desc')
      .execute()
    return rows.map(({ backend, session_id: sessionId, started_at: usedAt, text: question, result }) => {
      const usage = result === null ? undefined : (JSON.parse(result) as AgentResult).sessionUsage
      return { backend, sessionId, usedAt, question, ...(usage && { usage }) }
    })
  }

  /** What the runs have used that began since then and have ended. */
  async usage(scope: UsageScope, since: number): Promise<Usage> {
    const sum = (column: string) => sql<number | null>`cast(sum(${sql.ref(column)}) as double precision)`
    const row = await this.reads
      .selectFrom('run_figures')
      .select(({ fn }) => [
        fn.countAll<number>().as('turns'),
        // One that was cut off has ended when that was found out, which may be a day later.
        sql<number | null>`cast(sum(case when state <> 'interrupted' then duration_ms end) as double precision)`.as(
          'worked',
        ),
        fn.count<number>('input_tokens').as('counted'),
        sum('input_tokens').as('input'),
        sum('output_tokens').as('output'),
        sum('cache_read_tokens').as('cache_read'),
        sum('cache_write_tokens').as('cache_write'),
        sum('cost_usd').as('cost'),
        fn.count<number>('cost_usd').as('priced'),
        sql<number>`count(case when input_tokens is null and coalesce(reason, '') not in (${UNUSED}) then 1 end)`.as(
          'uncounted',
        ),
      ])
      .where('started_at', '>=', since)
      .where(this.#isOf(scope, since))
      .executeTakeFirstOrThrow()
    return {
      turns: row.turns,
      workedMs: row.worked ?? 0,
      ...(row.counted > 0 && {
        tokens: {
          inputTokens: row.input ?? 0,
          outputTokens: row.output ?? 0,
          cacheReadTokens: row.cache_read ?? 0,
          cacheWriteTokens: row.cache_write ?? 0,
        },
      }),
      ...(row.cost !== null && { costUsd: row.cost }),
      pricedTurns: row.priced,
      uncountedTurns: row.uncounted,
    }
  }

  /** Whether figures are of a run that is counted. */
  #isOf(scope: UsageScope, since: number): Expression<SqlBool> {
    const { eb, exists } = expressionBuilder<Schema, 'run_figures'>()
    if ('projectId' in scope) {
      const { projectId } = scope
      const found = withParent(this.reads)
        .select('conversations.id')
        .where('conversations.id', '=', sql.ref<string>('run_figures.conversation_id'))
      return exists(
        projectId === undefined ? found.where(PROJECT_ID, 'is', null) : found.where(PROJECT_ID, '=', projectId),
      )
    }
    const runs = this.reads.selectFrom('runs').select('runs.id').where('runs.started_at', '>=', since)
    const theirs =
      'conversationId' in scope
        ? runs.where('runs.conversation_id', '=', scope.conversationId)
        : runs.innerJoin('messages', 'messages.id', 'runs.message_id').where('messages.kind', '=', scope.kind)
    return eb('run_figures.run_id', 'in', theirs)
  }

  /** The models with which an agent has answered since then, last used first. */
  async models(backend: string, since: number, limit: number): Promise<string[]> {
    const rows = await this.reads
      .selectFrom('runs')
      .select('model')
      .where('backend', '=', backend)
      .where('model', 'is not', null)
      .$narrowType<{ model: string }>()
      // A name that was mistyped never answered.
      .where('state', '=', 'answered')
      .where('started_at', '>=', since)
      .groupBy('model')
      .orderBy(({ fn }) => fn.max('started_at'), 'desc')
      .limit(limit)
      .execute()
    return rows.map(({ model }) => model)
  }

  /** Those that began since then, newest first. */
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

/** Of failures in which no model has worked. */
const UNUSED = sql.join(
  (['auth', 'rate_limit', 'session_lost', 'spawn'] satisfies FailureReason[]).map((reason) => sql.lit(reason)),
)

type BegunValues = Omit<NewRun, 'model' | 'directory' | 'metadata'> & {
  model: string | null
  directory: string | null
  metadata: string | null
  firstSeq: number
  startedAt: number
}

const begin = compiled((db, run: BegunValues) =>
  db.insertInto('runs').values({
    id: run.id,
    message_id: run.messageId,
    conversation_id: run.conversationId,
    gateway_id: run.gatewayId,
    backend: run.backend,
    model: run.model,
    directory: run.directory,
    metadata: run.metadata,
    first_seq: run.firstSeq,
    state: 'running',
    started_at: run.startedAt,
  }),
)

type EndedValues = { id: string; state: EndedState; now: number; sessionId: string | null; result: string | null }

const end = compiled((db, { id, state, now, sessionId, result }: EndedValues) =>
  db.updateTable('runs').set({ state, ended_at: now, session_id: sessionId, result }).where('id', '=', id),
)

const ended = compiled((db, { id }: { id: string }) =>
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
    .where('runs.id', '=', id),
)

const count = compiled((db, { run_id, ...values }: Schema['run_figures']) =>
  db
    .insertInto('run_figures')
    .values({ run_id, ...values })
    // May be repeated when it is not known whether it was written.
    .onConflict((conflict) => conflict.column('run_id').doUpdateSet(values)),
)

type RecordedValues = { runId: string; seqs: number[]; types: string[]; bodies: string[]; locksRows: boolean }

const record = compiled((db, { runId, seqs, types, bodies, locksRows }: RecordedValues) => {
  let running = db.selectFrom('runs').select('id').where('id', '=', runId).where('state', '=', 'running')
  // Else a claim could come between this look and the events.
  if (locksRows) running = running.forShare()
  const rows = sql.join(seqs.map((seq, index) => sql`(${sql.join([seq, types[index], bodies[index]])})`))
  const values = sql<{ column1: number; column2: string; column3: string }>`(values ${rows})`
  return db
    .insertInto('events')
    .columns(['run_id', 'seq', 'type', 'body'])
    .expression(({ selectFrom }) =>
      selectFrom([running.as('run'), values.as('event')])
        .select(({ cast }) => ['run.id', cast('event.column1', 'integer').as('seq'), 'event.column2', 'event.column3'])
        // Without a condition SQLite would take `on conflict` for that of a join.
        .where('run.id', '=', runId),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['run_id', 'seq'])
        .doUpdateSet(({ ref }) => ({ type: ref('excluded.type'), body: ref('excluded.body') })),
    )
})

const latest = compiled((db, { messageId }: { messageId: string }) =>
  db
    .selectFrom('runs')
    .select(['id', 'first_seq', 'state'])
    .where('message_id', '=', messageId)
    .orderBy('first_seq', 'desc')
    .orderBy('started_at', 'desc')
    .limit(sql.lit(1)),
)

type Row = Schema['runs']

function toRecorded({ seq, body }: { seq: number; body: string }): RecordedEvent {
  return { seq, event: JSON.parse(body) as AgentEvent }
}

function toRun(row: Row): RunRecord {
  return {
    id: row.id,
    messageId: row.message_id,
    conversationId: row.conversation_id,
    gatewayId: row.gateway_id,
    backend: row.backend,
    ...(row.model !== null && { model: row.model }),
    ...(row.directory !== null && { directory: row.directory }),
    ...(row.metadata !== null && { metadata: JSON.parse(row.metadata) as Record<string, string> }),
    ...(row.session_id !== null && { sessionId: row.session_id }),
    firstSeq: row.first_seq,
    state: row.state,
    startedAt: row.started_at,
    ...(row.ended_at !== null && { endedAt: row.ended_at }),
    ...(row.result !== null && { result: JSON.parse(row.result) as AgentResult }),
  }
}
