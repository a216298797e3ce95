// What runs that have ended took and came to, counted by the database.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import { DAY_MS } from './archive-queries.js'
import { inSight, type Sight } from './conversation-views.js'
import type { RunState, Schema } from './schema.js'

export const FIGURE_GROUPS = ['day', 'agent', 'project'] as const

export type FigureGroup = (typeof FIGURE_GROUPS)[number]

export interface FigureFilter {
  sight: Sight
  /** Of runs that began from then, and before `to`. */
  from: number
  to: number
  backend?: string
  projectId?: string
}

/** Of values that there are, or null when there is none. */
export interface Percentiles {
  p50: number | null
  p95: number | null
}

export interface Figure {
  /** The beginning of a UTC day, the name of an agent, the id of a project or null for none. */
  key: number | string | null
  runs: number
  states: Record<EndedState, number>
  durationMs: Percentiles & { total: number }
  /** From the beginning of a run to the first text that it wrote. */
  firstTextMs: Percentiles
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  costUsd: number
  /** How many of the runs have told their cost. */
  pricedRuns: number
  /** How many ended without an answer, by their reason. Those that were stopped are none. */
  errors: Record<string, number>
}

const STATES = ['answered', 'failed', 'cancelled', 'interrupted'] as const satisfies RunState[]

type EndedState = (typeof STATES)[number]

export class Figures {
  constructor(private readonly reads: Kysely<Schema>) {}

  /** In the order of their keys; without a group, one of all. */
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
        ...STATES.map((state) => sql<number>`count(case when state = ${sql.lit(state)} then 1 end)`.as(state)),
        percentile('duration_ms', 50).as('duration_p50'),
        percentile('duration_ms', 95).as('duration_p95'),
        total('duration_ms').as('duration'),
        percentile('first_text_ms', 50).as('first_text_p50'),
        percentile('first_text_ms', 95).as('first_text_p95'),
        total('input_tokens').as('input'),
        total('output_tokens').as('output'),
        total('cache_read_tokens').as('cache_read'),
        total('cache_write_tokens').as('cache_write'),
        total('cost_usd').as('cost'),
        fn.count<number>('cost_usd').as('priced'),
      ])
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
      states: Object.fromEntries(STATES.map((state) => [state, row[state]])) as Record<EndedState, number>,
      durationMs: { p50: row.duration_p50, p95: row.duration_p95, total: row.duration ?? 0 },
      firstTextMs: { p50: row.first_text_p50, p95: row.first_text_p95 },
      inputTokens: row.input ?? 0,
      outputTokens: row.output ?? 0,
      cacheReadTokens: row.cache_read ?? 0,
      cacheWriteTokens: row.cache_write ?? 0,
      costUsd: row.cost ?? 0,
      pricedRuns: row.priced,
      errors: Object.fromEntries(
        failed.filter(({ key }) => key === row.key).map(({ reason, count }) => [reason, count]),
      ),
    }))
  }

  /** One row for each run. */
  #runs(group: FigureGroup | undefined, { sight, from, to, backend, projectId }: FigureFilter) {
    const keys: Record<FigureGroup, RawBuilder<number | string | null>> = {
      day: sql`started_at / ${sql.lit(DAY_MS)}`,
      agent: sql`backend`,
      project: sql`project_id`,
    }
    let query = this.reads
      .selectFrom('run_figures')
      // No more: all of it is sorted.
      .select(['state', 'duration_ms', 'first_text_ms', 'input_tokens', 'output_tokens', 'cache_read_tokens'])
      .select(['cache_write_tokens', 'cost_usd', 'reason'])
      .select((group === undefined ? sql<string | number | null>`''` : keys[group]).as('key'))
      .where('started_at', '>=', from)
      .where('started_at', '<', to)
      .where(inSight(this.reads, sight, 'run_figures.conversation_id'))
    if (backend !== undefined) query = query.where('backend', '=', backend)
    if (projectId !== undefined) query = query.where('project_id', '=', projectId)
    // A conversation may have been in another project when they ran.
    if (sight.projects) query = query.where('project_id', 'in', [...sight.projects.map(({ id }) => id), ''])
    return query
  }
}

/** Among those of its group that have a value: they come first. */
function rankOf(column: string) {
  const value = sql.ref(column)
  return sql<number>`row_number() over (partition by key order by case when ${value} is null then 1 else 0 end, ${value})`.as(
    `${column}_rank`,
  )
}

function countOf(column: string) {
  return sql<number>`count(${sql.ref(column)}) over (partition by key)`.as(`${column}_count`)
}

/** The value at the nearest rank; none when there are no values. */
function percentile(column: string, percent: number): RawBuilder<number | null> {
  const rank = sql.ref(`${column}_rank`)
  const count = sql.ref(`${column}_count`)
  return sql`cast(max(case when ${rank} = (${count} * ${sql.lit(percent)} + 99) / 100 then ${sql.ref(column)} end) as double precision)`
}

function total(column: string): RawBuilder<number | null> {
  return sql`cast(sum(${sql.ref(column)}) as double precision)`
}
