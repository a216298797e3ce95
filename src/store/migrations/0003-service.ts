import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  'alter table messages add column options text',
  'create index messages_of_channel on messages (channel, received_at)',
  'alter table runs add column first_seq bigint not null default 0',

  'alter table projects add column name text',
  `alter table projects add column source text not null default 'file'`,
  'alter table projects add column is_untrusted integer not null default 0',
  'alter table projects add column created_at bigint not null default 0',
  'alter table projects add column updated_at bigint not null default 0',

  `create table tokens (
    id text primary key,
    name text not null,
    hash text not null unique,
    scopes text not null,
    projects text,
    created_at bigint not null,
    expires_at bigint,
    used_at bigint
  )`,

  `create table credentials (
    owner text not null,
    name text not null,
    kind text not null,
    key_id text not null,
    sealed text not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (owner, name)
  )`,
]

export const service: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
