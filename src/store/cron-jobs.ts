import type { CatchUp, Schema } from './schema.js'
import { fromRow, Table, toRow } from './table.js'

export interface NewCronJob {
  id: string
  name: string
  /** Five fields, or a name such as `@daily`. */
  schedule: string
  timeZone: string
  /** A prompt for an agent, or a program to run instead, with its arguments. */
  work: { prompt: string } | { command: string[] }
  channel: string
  /** The channel's own id of the conversation; on WhatsApp the phone number. */
  address: string
  projectId?: string
  session: 'own' | 'shared'
  catchUp: CatchUp
}

export interface CronJob extends NewCronJob {
  /** The last slot that was handled, or when the job was created. */
  lastSlot: number
  /** The last message it sent to the gateway. */
  lastMessageId?: string
  /** Why nothing was done at `lastSlot`. */
  problem?: string
  createdAt: number
}

export class CronJobs extends Table {
  /** False if the name is taken. */
  async add(job: NewCronJob, now: number): Promise<boolean> {
    const { work, ...rest } = job
    const { numInsertedOrUpdatedRows } = await this.db
      .insertInto('cron_jobs')
      .values({
        ...toRow(rest),
        prompt: 'prompt' in work ? work.prompt : null,
        command: 'command' in work ? JSON.stringify(work.command) : null,
        last_slot: now,
        created_at: now,
      })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n
  }

  /** By name. */
  async list(): Promise<CronJob[]> {
    return (await this.db.selectFrom('cron_jobs').selectAll().orderBy('name').execute()).map(toJob)
  }

  /** Reads a job and keeps others from handling it. Contract: within a transaction. */
  async lock(id: string): Promise<CronJob | undefined> {
    const query = this.db.selectFrom('cron_jobs').selectAll().where('id', '=', id)
    const row = await (this.engine.locksRows ? query.forUpdate() : query).executeTakeFirst()
    return row && toJob(row)
  }

  /** Marks the slot, and all before it, as handled. */
  async advance(id: string, slot: number, outcome: { messageId: string } | { problem: string }): Promise<void> {
    const changes = 'messageId' in outcome ? { last_message_id: outcome.messageId, problem: null } : outcome
    await this.db
      .updateTable('cron_jobs')
      .set({ last_slot: slot, ...changes })
      .where('id', '=', id)
      .where('last_slot', '<', slot)
      .execute()
  }

  /** Records a message sent outside the schedule. */
  async noteMessage(id: string, messageId: string): Promise<void> {
    await this.db.updateTable('cron_jobs').set({ last_message_id: messageId }).where('id', '=', id).execute()
  }

  async remove(id: string): Promise<void> {
    await this.db.deleteFrom('cron_jobs').where('id', '=', id).execute()
  }
}

function toJob({ prompt, command, ...row }: Schema['cron_jobs']): CronJob {
  const work = command === null ? { prompt: prompt ?? '' } : { command: JSON.parse(command) as string[] }
  return { ...fromRow(row), work }
}
