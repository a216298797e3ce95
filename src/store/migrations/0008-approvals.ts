import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  `create table approvals (
    id text primary key,
    message_id text not null references messages (id),
    run_id text not null,
    conversation_id text not null,
    project_id text,
    backend text not null,
    tool_name text not null,
    tool_input text not null,
    summary text not null,
    subject text,
    state text not null,
    asked_at bigint not null,
    deadline bigint not null,
    answered_at bigint,
    answered_by text,
    message text,
    is_open integer not null
  )`,
  'create index approvals_by_time on approvals (asked_at)',
  `create index approvals_asked on approvals (message_id) where state = 'asked'`,
  'create index approvals_open on approvals (conversation_id) where is_open = 1',

  `create table approval_rules (
    id text primary key,
    project_id text not null,
    backend text not null,
    tool_name text not null,
    subject text,
    created_at bigint not null,
    created_by text not null
  )`,
  'create index approval_rules_of_tool on approval_rules (project_id, backend, tool_name)',

  'alter table projects add column agent_permissions text',
]

export const approvals: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
