// The gateways on this database, and the processes they have started.

import type { LedgerEntry, ProcessIdentity } from '../processes/reaper.js'
import type { CutOffRun } from './runs.js'
import type { Schema } from './schema.js'
import { fromRow, Table } from './table.js'

export interface GatewayRecord extends ProcessIdentity {
  id: string
  startedAt: number
  /** When it last announced itself. */
  seenAt: number
}

export class Ledger extends Table {
  /** Registers a gateway, or refreshes its record. */
  async announceGateway({ id, host, bootId, pid, startTime, startedAt, seenAt }: GatewayRecord): Promise<void> {
    await this.db
      .insertInto('gateways')
      .values({ id, host, boot_id: bootId, pid, start_time: startTime, started_at: startedAt, seen_at: seenAt })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: seenAt }))
      .execute()
  }

  async removeGateway(id: string): Promise<void> {
    await this.db.deleteFrom('processes').where('gateway_id', '=', id).execute()
    await this.db.deleteFrom('gateways').where('id', '=', id).execute()
  }

  async gateways(): Promise<GatewayRecord[]> {
    const rows = await this.db.selectFrom('gateways').selectAll().orderBy('started_at').execute()
    return rows.map(fromRow)
  }

  async add({ runId, ownerId, host, bootId, pid, startTime, pod }: LedgerEntry): Promise<void> {
    await this.db
      .insertInto('processes')
      .values({
        run_id: runId,
        gateway_id: ownerId,
        host,
        boot_id: bootId,
        pid,
        start_time: startTime,
        pod,
      })
      // A second attempt of a run, if the end of the first was not recorded.
      .onConflict((conflict) => conflict.column('run_id').doUpdateSet({ pid, start_time: startTime, pod: pod ?? null }))
      .execute()
  }

  async remove(runIds: string[]): Promise<void> {
    if (runIds.length > 0) await this.db.deleteFrom('processes').where('run_id', 'in', runIds).execute()
  }

  async processesOf(gatewayId: string): Promise<LedgerEntry[]> {
    const rows = await this.db.selectFrom('processes').selectAll().where('gateway_id', '=', gatewayId).execute()
    return rows.map(toEntry)
  }

  /** The processes that may be working for a run on its gateway's machine: its own or, if it has none, the warm ones of that
   *  gateway. */
  async atWorkFor({ id, gatewayId }: CutOffRun): Promise<LedgerEntry[]> {
    const here = this.db
      .selectFrom('processes')
      .selectAll()
      .where('gateway_id', '=', gatewayId)
      .where('pod', 'is', null)
    const own = await here.where('run_id', '=', id).execute()
    if (own.length > 0) return own.map(toEntry)
    const warm = here.where(({ exists, not, selectFrom }) =>
      not(exists(selectFrom('runs').select('id').whereRef('runs.id', '=', 'processes.run_id'))),
    )
    return (await warm.execute()).map(toEntry)
  }

  /** The processes in pods for the runs of a message or of a conversation. */
  async inPods(of: { messageId: string } | { conversationId: string }): Promise<LedgerEntry[]> {
    const runs = this.db.selectFrom('runs').select('id')
    const meant =
      'messageId' in of
        ? runs.where('message_id', '=', of.messageId)
        : runs.where('conversation_id', '=', of.conversationId)
    return (await this.#inPods().where('run_id', 'in', meant).execute()).map(toEntry)
  }

  /** The processes in pods for runs that have ended; with `before`, only for those that ended before then. */
  async overInPods(before?: number): Promise<LedgerEntry[]> {
    const runs = this.db.selectFrom('runs').select('id')
    const others =
      before === undefined
        ? runs.where('state', '=', 'running')
        : runs.where((run) => run.or([run('state', '=', 'running'), run('ended_at', '>=', before)]))
    return (await this.#inPods().where('run_id', 'not in', others).execute()).map(toEntry)
  }

  #inPods() {
    return this.db.selectFrom('processes').selectAll().where('pod', 'is not', null)
  }
}

function toEntry({ gateway_id: ownerId, ...row }: Schema['processes']): LedgerEntry {
  return { ...fromRow(row), ownerId }
}
