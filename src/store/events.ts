// What an agent did in its runs.

import { sql } from 'kysely'
import type { AgentEvent } from '../backends/types.js'
import { compiled, Table } from './table.js'

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

export interface UsedTool {
  name: string
  input: Record<string, unknown>
  isRunning: boolean
}

/** A tool that an agent used. */
export interface ToolCall {
  runId: string
  messageId: string
  /** Where the agent worked. */
  directory?: string
  at: number
  name: string
  input: Record<string, unknown>
}

/** Either engine takes at least this many rows of four values in a statement. */
const ROWS_AT_ONCE = 500
/** More than the tools an agent uses at once. */
const LATEST_TOOL_EVENTS = 20

/** Only notices of the gateway come before an agent's first event, `started`. */
const STARTED_WITHIN = 5
/** Enough to see which models are in use. */
const LATEST_ANSWERS = 200

export class Events extends Table {
  /**
   * False, with nothing written, if the run has ended, as it does when someone else claims its message.
   *
   * Contract: may be repeated if it is not known whether the events were written.
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

  async list(runId: string, afterSeq = 0): Promise<RecordedEvent[]> {
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
   * The next events of a run, as many as one reader should hold at once; the last one may exceed the limit of bytes.
   *
   * Neither engine reads a text to get its length in bytes, so events that are not on the page cost nothing.
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
    // PostgreSQL's driver returns a sum as text.
    const isLast = rows.length < limits.events && Number(last?.total ?? 0) < limits.bytes
    return { events: rows.map(toRecorded), isLast }
  }

  /** The model of a run, as the agent reported it. */
  async modelOf(runId: string): Promise<string | undefined> {
    const row = await this.db
      .selectFrom('events')
      .select('body')
      .where('run_id', '=', runId)
      .where('type', '=', 'started')
      .where('seq', '<=', STARTED_WITHIN)
      .limit(1)
      .executeTakeFirst()
    return row && modelIn(row.body)
  }

  /** The models that an agent reported in its latest answers since then, latest first. */
  async modelsOf(backend: string, since: number): Promise<string[]> {
    const rows = await this.reads
      .selectFrom('runs')
      .innerJoin('events', 'events.run_id', 'runs.id')
      .select('events.body')
      .where('runs.backend', '=', backend)
      .where('runs.state', '=', 'answered')
      .where('runs.started_at', '>=', since)
      .where('events.type', '=', 'started')
      .where('events.seq', '<=', STARTED_WITHIN)
      .orderBy('runs.started_at', 'desc')
      .limit(LATEST_ANSWERS)
      .execute()
    return [...new Set(rows.flatMap(({ body }) => modelIn(body) ?? []))]
  }

  /** The tools that were used in a conversation and did not fail, latest first: without calls larger than `maxBytes`. */
  async *toolCalls(conversationId: string, maxBytes: number): AsyncGenerator<ToolCall, void> {
    const runs = await this.reads
      .selectFrom('runs')
      .select(['id as runId', 'message_id as messageId', 'directory'])
      .where('conversation_id', '=', conversationId)
      .orderBy('started_at', 'desc')
      .execute()
    for (const { directory, ...run } of runs) {
      const calls: ToolCall[] = []
      const failed = new Set<string>()
      for (const { body } of await this.#toolEvents(run.runId, maxBytes)) {
        const event = JSON.parse(body) as AgentEvent
        if (event.type === 'tool_result' && event.isError) failed.add(event.toolId)
        if (event.type !== 'tool_use' || failed.has(event.toolId)) continue
        const call = { ...run, at: event.timestamp, name: event.toolName, input: event.toolInput }
        calls.push(directory === null ? call : { ...call, directory })
      }
      yield* calls
    }
  }

  /** The calls of tools and what has failed, latest first. */
  #toolEvents(runId: string, maxBytes: number): Promise<{ body: string }[]> {
    return this.reads
      .selectFrom('events')
      .select('body')
      .where('run_id', '=', runId)
      .where(({ or, and, eb }) =>
        or([
          eb('type', '=', 'tool_use'),
          and([eb('type', '=', 'tool_result'), eb('body', 'like', '%"isError":true%')]),
        ]),
      )
      .where(sql<number>`octet_length(body)`, '<=', maxBytes)
      .orderBy('seq', 'desc')
      .execute()
  }

  /** The tools that a run has used, latest first. */
  async latestTools(runId: string): Promise<UsedTool[]> {
    const rows = await this.db
      .selectFrom('events')
      .select('body')
      .where('run_id', '=', runId)
      .where('type', 'in', ['tool_use', 'tool_result'])
      .orderBy('seq', 'desc')
      .limit(LATEST_TOOL_EVENTS)
      .execute()
    // A result comes after its use, so the result of any tool found here is found too.
    const ended = new Set<string>()
    return rows.flatMap(({ body }) => {
      const event = JSON.parse(body) as AgentEvent
      if (event.type === 'tool_result') ended.add(event.toolId)
      if (event.type !== 'tool_use') return []
      return [{ name: event.toolName, input: event.toolInput, isRunning: !ended.has(event.toolId) }]
    })
  }
}

type RecordedValues = { runId: string; seqs: number[]; types: string[]; bodies: string[]; locksRows: boolean }

const record = compiled((db, { runId, seqs, types, bodies, locksRows }: RecordedValues) => {
  let running = db.selectFrom('runs').select('id').where('id', '=', runId).where('state', '=', 'running')
  // Otherwise the message could be claimed between this check and writing the events.
  if (locksRows) running = running.forShare()
  const rows = sql.join(seqs.map((seq, index) => sql`(${sql.join([seq, types[index], bodies[index]])})`))
  const values = sql<{ column1: number; column2: string; column3: string }>`(values ${rows})`
  return db
    .insertInto('events')
    .columns(['run_id', 'seq', 'type', 'body'])
    .expression(({ selectFrom }) =>
      selectFrom([running.as('run'), values.as('event')])
        .select(({ cast }) => ['run.id', cast('event.column1', 'integer').as('seq'), 'event.column2', 'event.column3'])
        // Without a condition SQLite would parse `on conflict` as part of a join.
        .where('run.id', '=', runId),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['run_id', 'seq'])
        .doUpdateSet(({ ref }) => ({ type: ref('excluded.type'), body: ref('excluded.body') })),
    )
})

function modelIn(body: string): string | undefined {
  const event = JSON.parse(body) as AgentEvent
  return event.type === 'started' ? event.model : undefined
}

function toRecorded({ seq, body }: { seq: number; body: string }): RecordedEvent {
  return { seq, event: JSON.parse(body) as AgentEvent }
}
