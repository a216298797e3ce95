import type { BeatOutcome, MessageState } from './schema.js'
import { fromRow, Table } from './table.js'

/** A time at which the agent was woken, or for some reason was not. */
export interface Beat {
  id: string
  at: number
  /** Absent while it is being decided, or if the gateway ended meanwhile. */
  outcome?: BeatOutcome
  /** Why the agent was not woken, as a sentence. */
  note?: string
}

/** The last time the agent was woken. */
export interface LastBeat {
  at: number
  messageId: string
  /** Of the prompt. */
  digest: string
  state: MessageState
  /** Why it failed. */
  problem?: string
  /** Whether the person got a reply. */
  wasTold: boolean
}

export class Heartbeats extends Table {
  /** False if it was claimed before. */
  async claim(id: string, now: number): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.db
      .insertInto('heartbeats')
      .values({ id, at: now })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n
  }

  async begun(id: string, messageId: string, digest: string): Promise<void> {
    await this.db
      .updateTable('heartbeats')
      .set({ outcome: 'begun', message_id: messageId, digest })
      .where('id', '=', id)
      .execute()
  }

  async skipped(id: string, outcome: Exclude<BeatOutcome, 'begun'>, note: string): Promise<void> {
    await this.db.updateTable('heartbeats').set({ outcome, note }).where('id', '=', id).execute()
  }

  /** Newest first. */
  async list(limit: number): Promise<Beat[]> {
    const rows = await this.db
      .selectFrom('heartbeats')
      .select(['id', 'at', 'outcome', 'note'])
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    return rows.map(fromRow)
  }

  async last(): Promise<LastBeat | undefined> {
    const row = await this.db
      .selectFrom('heartbeats')
      .innerJoin('messages', 'messages.id', 'heartbeats.message_id')
      .select(['heartbeats.at', 'heartbeats.digest', 'heartbeats.message_id', 'messages.state', 'messages.problem'])
      .$narrowType<{ message_id: string }>()
      .select((eb) =>
        eb
          .selectFrom('outbox')
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .whereRef('outbox.conversation_id', '=', 'messages.conversation_id')
          .whereRef('outbox.message_id', '=', 'messages.id')
          .as('replies'),
      )
      .orderBy('heartbeats.at', 'desc')
      .orderBy('heartbeats.id', 'desc')
      .limit(1)
      .executeTakeFirst()
    if (!row) return undefined
    const { digest, replies, ...last } = row
    return { ...fromRow(last), digest: digest ?? '', wasTold: (replies ?? 0) > 0 }
  }

  /** Deletes old records, except the last time the agent was woken. */
  async forget(before: number): Promise<void> {
    await this.db
      .deleteFrom('heartbeats')
      .where('at', '<', before)
      .where((eb) =>
        eb.or([
          eb('message_id', 'is', null),
          eb('at', '<', ({ selectFrom }) =>
            selectFrom('heartbeats as later')
              .select(({ fn }) => fn.max('later.at').as('at'))
              .where('later.message_id', 'is not', null),
          ),
        ]),
      )
      .execute()
  }
}
