import { type Kysely, type Migration, sql } from 'kysely'

const STATEMENTS = [
  `create table projects (
    id text primary key,
    name text,
    source text not null default 'file',
    instance text not null default '',
    directory text not null,
    pod text,
    is_made_here integer not null default 0,
    backend text,
    model text,
    allowed_tools text,
    query_timeout_ms bigint,
    max_turns integer,
    is_untrusted integer not null default 0,
    agent_permissions text,
    created_at bigint not null default 0,
    updated_at bigint not null default 0
  )`,

  `create table conversations (
    id text primary key,
    channel text not null,
    address text not null,
    parent text,
    given_project_id text,
    is_private integer not null default 0,
    project_id text,
    backend text,
    model text,
    queue_mode text,
    title text,
    is_pinned integer not null default 0,
    is_archived integer not null default 0,
    edited_at bigint,
    last_seq bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    unique (channel, address)
  )`,
  'create index conversations_by_use on conversations (channel, updated_at)',
  'create index conversations_by_time on conversations (updated_at)',
  'create index conversations_pinned on conversations (updated_at) where is_pinned = 1',
  'create index conversations_edited on conversations (edited_at) where edited_at is not null',

  `create table deleted_conversations (
    id text primary key,
    channel text not null,
    address text not null,
    project_id text,
    is_private integer not null,
    deleted_at bigint not null
  )`,
  'create index deleted_conversations_by_time on deleted_conversations (deleted_at)',

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
    options text,
    problem text,
    fence integer not null,
    retried_after bigint,
    merged_into text references messages (id),
    received_at bigint not null,
    finished_at bigint,
    unique (channel, platform_id)
  )`,
  'create index messages_of_conversation on messages (conversation_id, seq)',
  'create index messages_of_channel on messages (channel, received_at)',
  'create index messages_merged on messages (merged_into, seq) where merged_into is not null',
  // For the archive: the days that have changed are read from the index only.
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
  // Never two active jobs: only the first of a conversation may be anything but queued.
  `create unique index jobs_one_head on jobs (conversation_id) where state <> 'queued'`,
  `create index jobs_due on jobs (due_at) where state <> 'queued'`,

  `create table runs (
    id text primary key,
    message_id text not null references messages (id),
    conversation_id text not null,
    gateway_id text not null,
    backend text not null,
    model text,
    directory text,
    metadata text,
    session_id text,
    first_seq bigint not null default 0,
    state text not null,
    started_at bigint not null,
    ended_at bigint,
    result text
  )`,
  'create index runs_of_message on runs (message_id, started_at)',
  'create index runs_of_conversation on runs (conversation_id, started_at)',
  'create index runs_of_session on runs (session_id) where session_id is not null',
  'create index runs_by_directory on runs (directory, started_at)',
  'create index runs_by_time on runs (started_at)',

  `create table run_figures (
    run_id text primary key references runs (id),
    conversation_id text not null,
    project_id text,
    backend text not null,
    state text not null,
    started_at bigint not null,
    duration_ms bigint not null,
    first_text_ms bigint,
    input_tokens double precision,
    output_tokens double precision,
    cache_read_tokens double precision,
    cache_write_tokens double precision,
    cost_usd double precision,
    reason text
  )`,
  'create index run_figures_by_time on run_figures (started_at)',

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
  'create index outbox_of_message on outbox (message_id) where message_id is not null',
  'create index outbox_by_day on outbox (conversation_id, created_at, settled_at)',
  `create index outbox_pending on outbox (conversation_id, seq) where state = 'pending'`,
  `create index outbox_due on outbox (due_at) where state = 'pending'`,
  `create index outbox_undelivered on outbox (settled_at) where state = 'undelivered'`,

  `create table uploads (
    id text primary key,
    conversation_id text not null,
    message_id text,
    name text not null,
    media_type text not null,
    bytes bigint not null,
    created_at bigint not null
  )`,
  'create index uploads_of_conversation on uploads (conversation_id)',
  'create index uploads_of_message on uploads (message_id) where message_id is not null',
  'create index uploads_untaken on uploads (created_at) where message_id is null',

  `create table sessions (
    conversation_id text primary key,
    backend text not null,
    session_id text,
    directory text not null,
    usage text,
    used_at bigint not null,
    reset_at bigint not null
  )`,
  'create index sessions_by_id on sessions (session_id)',

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
    start_time bigint not null,
    pod text
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

  `create table logins (
    hash text primary key,
    token_hash text not null,
    expires_at bigint not null
  )`,
  'create index logins_of_token on logins (token_hash)',

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

  `create table admissions (
    channel text not null,
    person_id text not null,
    name text not null,
    admitted_by text not null,
    admitted_at bigint not null,
    primary key (channel, person_id)
  )`,
]

export const initialTables: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
