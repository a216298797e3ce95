import { Table } from './table.js'

/** What a channel must remember across restarts. */
export class ChannelValues extends Table {
  async get(channel: string, name: string): Promise<string | undefined> {
    const row = await this.db
      .selectFrom('channel_values')
      .select('value')
      .where('channel', '=', channel)
      .where('name', '=', name)
      .executeTakeFirst()
    return row?.value
  }

  async set(channel: string, name: string, value: string): Promise<void> {
    await this.db
      .insertInto('channel_values')
      .values({ channel, name, value })
      .onConflict((conflict) => conflict.columns(['channel', 'name']).doUpdateSet({ value }))
      .execute()
  }

  /** False, with nothing changed, if a value exists. */
  async add(channel: string, name: string, value: string): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.db
      .insertInto('channel_values')
      .values({ channel, name, value })
      .onConflict((conflict) => conflict.columns(['channel', 'name']).doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n
  }

  /** False if it was claimed before. */
  async claim(channel: string, name: string, now: number): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.db
      .insertInto('channel_claims')
      .values({ channel, name, claimed_at: now })
      .onConflict((conflict) => conflict.columns(['channel', 'name']).doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n
  }

  async isClaimed(channel: string, name: string): Promise<boolean> {
    const row = await this.db
      .selectFrom('channel_claims')
      .select('name')
      .where('channel', '=', channel)
      .where('name', '=', name)
      .executeTakeFirst()
    return row !== undefined
  }

  /** Deletes claims that are too old for what they guard against to happen. */
  async forgetClaims(before: number): Promise<void> {
    await this.db.deleteFrom('channel_claims').where('claimed_at', '<', before).execute()
  }
}
