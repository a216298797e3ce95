import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  'alter table conversations add column parent text',
  'alter table conversations add column given_project_id text',
  'alter table conversations add column is_private integer not null default 0',
  'create index conversations_by_use on conversations (channel, updated_at)',
  'alter table runs add column directory text',
  'create index runs_by_directory on runs (directory, started_at)',
  'create index sessions_by_id on sessions (session_id)',
  'create index runs_of_conversation on runs (conversation_id, started_at)',
  `create table channel_values (
    channel text not null,
    name text not null,
    value text not null,
    primary key (channel, name)
  )`,
  `create table channel_claims (
    channel text not null,
    name text not null,
    claimed_at bigint not null,
    primary key (channel, name)
  )`,
  'create index channel_claims_by_time on channel_claims (claimed_at)',
]

export const channels: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
