import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  `create table projects (
    id text primary key,
    directory text not null,
    backend text,
    model text,
    allowed_tools text,
    query_timeout_ms bigint,
    max_turns integer
  )`,

  `create table conversations (
    id text primary key,
    channel text not null,
    address text not null,
    project_id text,
    backend text,
    model text,
    last_seq bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    unique (channel, address)
  )`,

  `create table messages (
    id text primary key,
    conversation_id text not null references conversations (id),
    channel text not null,
    platform_id text not null,
    seq bigint not null,
    kind text not null,
    author text not null,
    text text not null,
    state text not null,
    problem text,
    fence integer not null,
    received_at bigint not null,
    finished_at bigint,
    unique (channel, platform_id)
  )`,
  'create index messages_of_conversation on messages (conversation_id, seq)',
  // For the archive: which days have changed is read from the index alone.
  'create index messages_by_day on messages (conversation_id, received_at, finished_at)',
  `create index messages_failed on messages (finished_at) where state = 'failed'`,

  `create table jobs (
    message_id text primary key references messages (id),
    conversation_id text not null,
    channel text not null,
    seq bigint not null,
    state text not null,
    due_at bigint not null,
    fence integer not null,
    failures integer not null,
    interruptions integer not null,
    gateway_id text,
    is_cancelled integer not null
  )`,
  'create index jobs_of_conversation on jobs (conversation_id, seq)',
  // Never two active ones: only the first of a conversation may be anything but queued.
  `create unique index jobs_one_head on jobs (conversation_id) where state <> 'queued'`,
  `create index jobs_due on jobs (due_at) where state <> 'queued'`,

  `create table runs (
    id text primary key,
    message_id text not null references messages (id),
    conversation_id text not null,
    gateway_id text not null,
    backend text not null,
    model text,
    session_id text,
    state text not null,
    started_at bigint not null,
    ended_at bigint,
    result text
  )`,
  'create index runs_of_message on runs (message_id, started_at)',
  'create index runs_by_time on runs (started_at)',

  `create table events (
    run_id text not null references runs (id),
    seq integer not null,
    type text not null,
    body text not null,
    primary key (run_id, seq)
  )`,

  `create table outbox (
    id text primary key,
    conversation_id text not null references conversations (id),
    channel text not null,
    address text not null,
    seq bigint not null,
    message_id text,
    run_id text,
    body text not null,
    state text not null,
    attempts integer not null,
    due_at bigint not null,
    fence integer not null,
    gateway_id text,
    created_at bigint not null,
    expires_at bigint not null,
    settled_at bigint,
    problem text
  )`,
  'create index outbox_of_conversation on outbox (conversation_id, seq)',
  'create index outbox_by_day on outbox (conversation_id, created_at, settled_at)',
  `create index outbox_pending on outbox (conversation_id, seq) where state = 'pending'`,
  `create index outbox_due on outbox (due_at) where state = 'pending'`,
  `create index outbox_undelivered on outbox (settled_at) where state = 'undelivered'`,

  `create table sessions (
    conversation_id text primary key,
    backend text not null,
    session_id text,
    directory text not null,
    usage text,
    used_at bigint not null,
    reset_at bigint not null
  )`,

  `create table gateways (
    id text primary key,
    host text not null,
    boot_id text not null,
    pid integer not null,
    start_time bigint not null,
    started_at bigint not null,
    seen_at bigint not null
  )`,

  `create table processes (
    run_id text primary key,
    gateway_id text not null,
    host text not null,
    boot_id text not null,
    pid integer not null,
    start_time bigint not null
  )`,

  `create table audit (
    id text primary key,
    at bigint not null,
    actor text not null,
    action text not null,
    subject text not null,
    detail text
  )`,
  'create index audit_by_time on audit (at)',
]

export const core: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
