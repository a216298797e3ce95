import { type Kysely, type Migration, sql } from 'kysely'
import type { AgentEvent, AgentResult } from '../../backends/types.js'
import type { MessageOptions } from '../../channels/types.js'

const STATEMENTS = [
  'create index conversations_by_time on conversations (updated_at)',
  'create index outbox_of_message on outbox (message_id) where message_id is not null',
  `create table run_figures (
    run_id text primary key references runs (id),
    conversation_id text not null,
    project_id text,
    backend text not null,
    state text not null,
    started_at bigint not null,
    duration_ms bigint not null,
    first_text_ms bigint,
    input_tokens double precision,
    output_tokens double precision,
    cache_read_tokens double precision,
    cache_write_tokens double precision,
    cost_usd double precision,
    reason text
  )`,
  'create index run_figures_by_time on run_figures (started_at)',
]

const RUNS_AT_ONCE = 200

interface EndedRun {
  id: string
  conversation_id: string
  project_id: string | null
  backend: string
  state: string
  started_at: number
  ended_at: number
  result: string | null
  options: string | null
  first_output: string | null
}

export const views: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
    for (let last = ''; ;) {
      const { rows } = await sql<EndedRun>`
        select runs.id, runs.conversation_id, runs.backend, runs.state, runs.started_at, runs.ended_at, runs.result,
          messages.options,
          coalesce(conversations.project_id, parent.project_id, conversations.given_project_id) as project_id,
          (select body from events where run_id = runs.id and type = 'output' order by seq limit 1) as first_output
        from runs
        join conversations on conversations.id = runs.conversation_id
        join messages on messages.id = runs.message_id
        left join conversations as parent
          on parent.address = conversations.parent and parent.channel = conversations.channel
        where runs.ended_at is not null and runs.id > ${last}
        order by runs.id
        limit ${sql.lit(RUNS_AT_ONCE)}`.execute(db)
      for (const run of rows) await count(db, run)
      const end = rows.at(-1)
      if (!end) return
      last = end.id
    }
  },
}

async function count(db: Kysely<unknown>, run: EndedRun): Promise<void> {
  const { usage, costUsd, failure } = (run.result === null ? {} : JSON.parse(run.result)) as Partial<AgentResult>
  const { projectId = run.project_id } = (run.options === null ? {} : JSON.parse(run.options)) as MessageOptions
  const first = run.first_output === null ? undefined : (JSON.parse(run.first_output) as AgentEvent)
  await sql`insert into run_figures values (
    ${run.id}, ${run.conversation_id}, ${projectId}, ${run.backend}, ${run.state}, ${run.started_at},
    ${run.ended_at - run.started_at}, ${first ? first.timestamp - run.started_at : null},
    ${usage?.inputTokens ?? null}, ${usage?.outputTokens ?? null}, ${usage?.cacheReadTokens ?? null},
    ${usage?.cacheWriteTokens ?? null}, ${costUsd ?? null}, ${failure?.reason ?? null}
  )`.execute(db)
}
