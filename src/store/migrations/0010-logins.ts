import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  `create table logins (
    hash text primary key,
    token_hash text not null,
    expires_at bigint not null
  )`,
  'create index logins_of_token on logins (token_hash)',
]

export const logins: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
