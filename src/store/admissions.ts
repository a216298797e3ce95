import { fromRow, Table, toRow } from './table.js'

/** A person admitted by a command, in addition to those the configuration admits. */
export interface Admission {
  channel: string
  /** The platform's own id of the person. */
  personId: string
  /** Their name at that time. */
  name: string
  admittedBy: string
  admittedAt: number
}

export class Admissions extends Table {
  /** False, with nothing changed, if the person is already admitted. */
  async add(admission: Admission): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.db
      .insertInto('admissions')
      .values(toRow(admission))
      .onConflict((conflict) => conflict.columns(['channel', 'person_id']).doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n
  }

  /** False if the person was not admitted. */
  async remove(channel: string, personId: string): Promise<boolean> {
    const { numDeletedRows } = await this.db
      .deleteFrom('admissions')
      .where('channel', '=', channel)
      .where('person_id', '=', personId)
      .executeTakeFirstOrThrow()
    return numDeletedRows === 1n
  }

  async has(channel: string, personId: string): Promise<boolean> {
    const row = await this.db
      .selectFrom('admissions')
      .select('person_id')
      .where('channel', '=', channel)
      .where('person_id', '=', personId)
      .executeTakeFirst()
    return row !== undefined
  }

  /** Latest first; of all channels unless one is given. */
  async list(channel?: string): Promise<Admission[]> {
    let query = this.db.selectFrom('admissions').selectAll().orderBy('admitted_at', 'desc').orderBy('person_id')
    if (channel !== undefined) query = query.where('channel', '=', channel)
    return (await query.execute()).map((row) => fromRow(row))
  }
}
