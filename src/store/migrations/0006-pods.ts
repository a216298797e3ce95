import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = ['alter table projects add column pod text', 'alter table processes add column pod text']

export const pods: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
