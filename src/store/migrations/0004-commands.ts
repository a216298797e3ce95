import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  'alter table runs add column metadata text',
  'alter table messages add column retried_after bigint',

  // The commands of those that are there are found by their id.
  `alter table projects add column instance text not null default ''`,
  'update projects set instance = id',
  'alter table projects add column is_made_here integer not null default 0',
  `update projects set is_made_here = 1 where exists (
    select 1 from channel_values where channel = 'projects' and name = projects.id and value = projects.directory
  )`,
  `delete from channel_values where channel = 'projects'`,
]

export const commands: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
