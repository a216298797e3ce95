import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  'alter table conversations add column queue_mode text',
  'alter table messages add column merged_into text references messages (id)',
  'create index messages_merged on messages (merged_into, seq) where merged_into is not null',
]

export const queueModes: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
