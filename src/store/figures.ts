// What ended runs took and used, one row per run, which `Runs` writes; the database counts and sums.

import { type Expression, expressionBuilder, type RawBuilder, sql, type SqlBool } from 'kysely'
import type { FailureReason, TokenUsage } from '../backends/types.js'
import type { MessageKind } from '../channels/types.js'
import { DAY_MS } from './archive-queries.js'
import { PROJECT_ID, withParent } from './conversations.js'
import { ENDED_STATES, type EndedState, type Schema } from './schema.js'
import { Table } from './table.js'
import { inVisibleConversation, type Visibility } from './visibility.js'

export const FIGURE_GROUPS = ['day', 'agent', 'project'] as const

export type FigureGroup = (typeof FIGURE_GROUPS)[number]

export interface FigureFilter {
  visibility: Visibility
  /** Runs that started at or after this, and before `to`. */
  from: number
  to: number
  backend?: string
  projectId?: string
}

/** Null if there are no values. */
export interface Percentiles {
  p50: number | null
  p95: number | null
}

export interface Figure extends Tokens {
  /** The start of a UTC day, the name of an agent, or the id of a project (null for none). */
  key: number | string | null
  runs: number
  states: Record<EndedState, number>
  durationMs: Percentiles & { total: number }
  /** From the start of a run to its first text. */
  firstTextMs: Percentiles
  costUsd: number
  /** How many of the runs reported their cost. */
  pricedRuns: number
  /** How many ended without an answer, by reason; cancelled ones are not counted. */
  errors: Record<string, number>
}

type Tokens = Omit<TokenUsage, 'reasoningTokens' | 'totalTokens'>

/** Which runs are counted: those of a conversation, of all conversations of a project (or of none), or of a kind of
 *  message. */
export type UsageScope = { conversationId: string } | { projectId: string | undefined } | { kind: MessageKind }

/** What turns have used, as far as their agents reported it. */
export interface Usage {
  turns: number
  workedMs: number
  tokens?: Tokens
  costUsd?: number
  /** How many of the turns reported their cost. */
  pricedTurns: number
  /** How many may have used tokens without reporting it. */
  uncountedTurns: number
}

export class Figures extends Table {
  /** In the order of their keys; without a group, one figure of all. */
  async of(group: FigureGroup | undefined, filter: FigureFilter): Promise<Figure[]> {
    const runs = this.#runs(group, filter)
    const rows = await this.reads
      .with('run', () => runs)
      .with('ranked', (db) =>
        db
          .selectFrom('run')
          .selectAll()
          .select(['duration_ms', 'first_text_ms'].flatMap((column) => [rankOf(column), countOf(column)])),
      )
      .selectFrom('ranked')
      .select(({ fn }) => [
        'key',
        fn.countAll<number>().as('runs'),
        ...ENDED_STATES.map((state) => sql<number>`count(case when state = ${sql.lit(state)} then 1 end)`.as(state)),
        percentile('duration_ms', 50).as('duration_p50'),
        percentile('duration_ms', 95).as('duration_p95'),
        total('duration_ms').as('duration'),
        percentile('first_text_ms', 50).as('first_text_p50'),
        percentile('first_text_ms', 95).as('first_text_p95'),
      ])
      .select(USED)
      .groupBy('key')
      .orderBy('key')
      .execute()
    const failed = await this.reads
      .with('run', () => runs)
      .selectFrom('run')
      .select(({ fn }) => ['key', sql<string>`coalesce(reason, state)`.as('reason'), fn.countAll<number>().as('count')])
      .where('state', 'in', ['failed', 'interrupted'])
      .groupBy(['key', sql`coalesce(reason, state)`])
      .orderBy('reason')
      .execute()
    return rows.map((row) => ({
      key: group === 'day' ? Number(row.key) * DAY_MS : row.key,
      runs: row.runs,
      states: Object.fromEntries(ENDED_STATES.map((state) => [state, row[state]])) as Record<EndedState, number>,
      durationMs: { p50: row.duration_p50, p95: row.duration_p95, total: row.duration ?? 0 },
      firstTextMs: { p50: row.first_text_p50, p95: row.first_text_p95 },
      ...tokensOf(row),
      costUsd: row.cost ?? 0,
      pricedRuns: row.priced,
      errors: Object.fromEntries(
        failed.filter(({ key }) => key === row.key).map(({ reason, count }) => [reason, count]),
      ),
    }))
  }

  #runs(group: FigureGroup | undefined, { visibility, from, to, backend, projectId }: FigureFilter) {
    const keys: Record<FigureGroup, RawBuilder<number | string | null>> = {
      day: sql`started_at / ${sql.lit(DAY_MS)}`,
      agent: sql`backend`,
      project: sql`project_id`,
    }
    let query = this.reads
      .selectFrom('run_figures')
      // No other columns: all of them are sorted.
      .select(['state', 'duration_ms', 'first_text_ms', 'input_tokens', 'output_tokens', 'cache_read_tokens'])
      .select(['cache_write_tokens', 'cost_usd', 'reason'])
      .select((group === undefined ? sql<string | number | null>`''` : keys[group]).as('key'))
      .where('started_at', '>=', from)
      .where('started_at', '<', to)
      .where(inVisibleConversation(this.reads, visibility, 'run_figures.conversation_id'))
    if (backend !== undefined) query = query.where('backend', '=', backend)
    if (projectId !== undefined) query = query.where('project_id', '=', projectId)
    // A conversation may have been in another project at the time.
    if (visibility.projects) query = query.where('project_id', 'in', [...visibility.projects.map(({ id }) => id), ''])
    return query
  }

  /** What the runs that started since then have used; only those that have ended. */
  async usage(scope: UsageScope, since: number): Promise<Usage> {
    const row = await this.reads
      .selectFrom('run_figures')
      .select(({ fn }) => [
        fn.countAll<number>().as('turns'),
        // The end of an interrupted run is when that was noticed, which may be a day later.
        sql<number | null>`cast(sum(case when state <> 'interrupted' then duration_ms end) as double precision)`.as(
          'worked',
        ),
        fn.count<number>('input_tokens').as('counted'),
        sql<number>`count(case when input_tokens is null and coalesce(reason, '') not in (${UNUSED}) then 1 end)`.as(
          'uncounted',
        ),
      ])
      .select(USED)
      .where('started_at', '>=', since)
      .where(this.#isOf(scope, since))
      .executeTakeFirstOrThrow()
    return {
      turns: row.turns,
      workedMs: row.worked ?? 0,
      ...(row.counted > 0 && { tokens: tokensOf(row) }),
      ...(row.cost !== null && { costUsd: row.cost }),
      pricedTurns: row.priced,
      uncountedTurns: row.uncounted,
    }
  }

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
}

/** The failures in which no model was used. */
const UNUSED = sql.join(
  (['auth', 'rate_limit', 'model_unknown', 'session_lost', 'spawn'] satisfies FailureReason[]).map((reason) =>
    sql.lit(reason),
  ),
)

/** The rank among those of its group that have a value, which come first. */
function rankOf(column: string) {
  const value = sql.ref(column)
  return sql<number>`row_number() over (partition by key order by case when ${value} is null then 1 else 0 end, ${value})`.as(
    `${column}_rank`,
  )
}

function countOf(column: string) {
  return sql<number>`count(${sql.ref(column)}) over (partition by key)`.as(`${column}_count`)
}

/** By the nearest rank; null if there are no values. */
function percentile(column: string, percent: number): RawBuilder<number | null> {
  const rank = sql.ref(`${column}_rank`)
  const count = sql.ref(`${column}_count`)
  return sql`cast(max(case when ${rank} = (${count} * ${sql.lit(percent)} + 99) / 100 then ${sql.ref(column)} end) as double precision)`
}

function total(column: string): RawBuilder<number | null> {
  return sql`cast(sum(${sql.ref(column)}) as double precision)`
}

/** What runs have used, in total. */
const USED = [
  total('input_tokens').as('input'),
  total('output_tokens').as('output'),
  total('cache_read_tokens').as('cache_read'),
  total('cache_write_tokens').as('cache_write'),
  total('cost_usd').as('cost'),
  sql<number>`count(cost_usd)`.as('priced'),
] as const

function tokensOf(row: Record<'input' | 'output' | 'cache_read' | 'cache_write', number | null>): Tokens {
  return {
    inputTokens: row.input ?? 0,
    outputTokens: row.output ?? 0,
    cacheReadTokens: row.cache_read ?? 0,
    cacheWriteTokens: row.cache_write ?? 0,
  }
}
