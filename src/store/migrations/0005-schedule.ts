import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  `create table cron_jobs (
    id text primary key,
    name text not null unique,
    schedule text not null,
    time_zone text not null,
    prompt text,
    command text,
    channel text not null,
    address text not null,
    project_id text,
    session text not null,
    catch_up text not null,
    last_slot bigint not null,
    last_message_id text,
    problem text,
    created_at bigint not null
  )`,

  `create table heartbeats (
    id text primary key,
    at bigint not null,
    outcome text,
    note text,
    message_id text,
    digest text
  )`,
  'create index heartbeats_by_time on heartbeats (at)',
]

export const schedule: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
