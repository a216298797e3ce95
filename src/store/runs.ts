import type { Kysely } from 'kysely'
import type { AgentEvent, AgentResult } from '../backends/types.js'
import type { RunState, Schema } from './schema.js'

export interface NewRun {
  id: string
  messageId: string
  conversationId: string
  gatewayId: string
  backend: string
  model?: string
}

/** One turn of an agent. */
export interface RunRecord extends NewRun {
  sessionId?: string
  state: RunState
  startedAt: number
  endedAt?: number
  result?: AgentResult
}

/** `seq` counts from 1 without gaps within its run. */
export interface RecordedEvent {
  seq: number
  event: AgentEvent
}

/** A statement of either engine takes at least this many rows of four values. */
const ROWS_AT_ONCE = 500

export class Runs {
  constructor(private readonly db: Kysely<Schema>) {}

  async begin(run: NewRun, now: number): Promise<void> {
    await this.db
      .insertInto('runs')
      .values({
        id: run.id,
        message_id: run.messageId,
        conversation_id: run.conversationId,
        gateway_id: run.gatewayId,
        backend: run.backend,
        model: run.model ?? null,
        state: 'running',
        started_at: now,
      })
      // May be repeated when it is not known whether it was written.
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute()
  }

  async end(id: string, state: RunState, result: AgentResult | undefined, now: number): Promise<void> {
    await this.db
      .updateTable('runs')
      .set({
        state,
        ended_at: now,
        session_id: result?.sessionId ?? null,
        result: result === undefined ? null : JSON.stringify(result),
      })
      .where('id', '=', id)
      .execute()
  }

  /** Marks the runs of a message that nobody works on any more. */
  async interrupt(messageId: string, now: number): Promise<void> {
    await this.db
      .updateTable('runs')
      .set({ state: 'interrupted', ended_at: now })
      .where('message_id', '=', messageId)
      .where('state', '=', 'running')
      .execute()
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

  /** May be repeated when it is not known whether it was written. */
  async record(runId: string, events: RecordedEvent[]): Promise<void> {
    for (let start = 0; start < events.length; start += ROWS_AT_ONCE) {
      const rows = events
        .slice(start, start + ROWS_AT_ONCE)
        .map(({ seq, event }) => ({ run_id: runId, seq, type: event.type, body: JSON.stringify(event) }))
      await this.db
        .insertInto('events')
        .values(rows)
        .onConflict((conflict) =>
          conflict
            .columns(['run_id', 'seq'])
            .doUpdateSet(({ ref }) => ({ type: ref('excluded.type'), body: ref('excluded.body') })),
        )
        .execute()
    }
  }

  async events(runId: string, afterSeq = 0): Promise<RecordedEvent[]> {
    const rows = await this.db
      .selectFrom('events')
      .select(['seq', 'body'])
      .where('run_id', '=', runId)
      .where('seq', '>', afterSeq)
      .orderBy('seq')
      .execute()
    return rows.map(({ seq, body }) => ({ seq, event: JSON.parse(body) as AgentEvent }))
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

  /** Newest first. */
  async list(limit: number): Promise<RunRecord[]> {
    const rows = await this.db.selectFrom('runs').selectAll().orderBy('started_at', 'desc').limit(limit).execute()
    return rows.map(toRun)
  }
}

type Row = Schema['runs']

function toRun(row: Row): RunRecord {
  return {
    id: row.id,
    messageId: row.message_id,
    conversationId: row.conversation_id,
    gatewayId: row.gateway_id,
    backend: row.backend,
    ...(row.model !== null && { model: row.model }),
    ...(row.session_id !== null && { sessionId: row.session_id }),
    state: row.state,
    startedAt: row.started_at,
    ...(row.ended_at !== null && { endedAt: row.ended_at }),
    ...(row.result !== null && { result: JSON.parse(row.result) as AgentResult }),
  }
}
