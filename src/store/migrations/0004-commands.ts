import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = ['alter table runs add column metadata text', 'alter table messages add column retried_after bigint']

export const commands: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
