import { existsSync } from 'node:fs'
import { type Dialect, Kysely, Migrator } from 'kysely'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { ApprovalRules } from './approval-rules.js'
import { Approvals } from './approvals.js'
import { ArchiveQueries } from './archive-queries.js'
import { Audit } from './audit.js'
import { ChannelValues } from './channel-values.js'
import { ConversationViews } from './conversation-views.js'
import { inOneHand } from './compiled.js'
import { Conversations } from './conversations.js'
import { Credentials } from './credentials.js'
import { CronJobs } from './cron-jobs.js'
import type { Engine } from './engine.js'
import { Figures } from './figures.js'
import { Heartbeats } from './heartbeats.js'
import { Inbox } from './inbox.js'
import { Ledger } from './ledger.js'
import { core } from './migrations/0001-core.js'
import { channels } from './migrations/0002-channels.js'
import { service } from './migrations/0003-service.js'
import { commands } from './migrations/0004-commands.js'
import { schedule } from './migrations/0005-schedule.js'
import { pods } from './migrations/0006-pods.js'
import { queueModes } from './migrations/0007-queue-modes.js'
import { approvals } from './migrations/0008-approvals.js'
import { views } from './migrations/0009-views.js'
import { logins } from './migrations/0010-logins.js'
import { Outbox } from './outbox.js'
import { Projects } from './projects.js'
import { Runs } from './runs.js'
import type { Schema } from './schema.js'
import { Sessions } from './sessions.js'
import { Tokens } from './tokens.js'

const MIGRATIONS = {
  '0001-core': core,
  '0002-channels': channels,
  '0003-service': service,
  '0004-commands': commands,
  '0005-schedule': schedule,
  '0006-pods': pods,
  '0007-queue-modes': queueModes,
  '0008-approvals': approvals,
  '0009-views': views,
  '0010-logins': logins,
}

/** The tables, alone or within one transaction. */
export interface Tables {
  projects: Projects
  conversations: Conversations
  conversationViews: ConversationViews
  inbox: Inbox
  runs: Runs
  outbox: Outbox
  sessions: Sessions
  ledger: Ledger
  audit: Audit
  archive: ArchiveQueries
  channelValues: ChannelValues
  credentials: Credentials
  tokens: Tokens
  cronJobs: CronJobs
  heartbeats: Heartbeats
  figures: Figures
  approvals: Approvals
  approvalRules: ApprovalRules
}

export interface Store extends Tables {
  engine: Engine['name']
  /**
   * `onCommitted` hears of it when others can see what was changed, which on SQLite is some time before it is on the disk:
   * whoever goes on then tells nobody of it until this settles.
   *
   * Contract: `work` uses the tables it is given and no others, one statement at a time; SQLite has one connection, which it
   * holds.
   */
  transaction<T>(work: (tables: Tables) => Promise<T>, onCommitted?: (result: T) => void): Promise<T>
  /** As `transaction`, for what may be done in part and then again: PostgreSQL is not asked twice more for each. */
  write<T>(work: (tables: Tables) => Promise<T>, onCommitted: (result: T) => void): Promise<T>
  /** Calls back when a gateway on the same database has left work, or asks for an end. */
  listen: Engine['listen']
  /** Looks for damage, which takes as long as to read all there is. Contract: rejects with `store_corrupt`. */
  check(): Promise<void>
  close(): Promise<void>
}

/** Hears of each statement that was answered: what kind of node it is, and how long it took. */
export type OnQuery = (kind: string, durationMs: number) => void

export interface StoreLocation {
  /** Where SQLite keeps its file, unless there is a `databaseUrl`. */
  file: string
  databaseUrl?: string | undefined
}

/** Opens the database and brings its tables up to date. */
export async function openStore({ file, databaseUrl }: StoreLocation, log: Log, onQuery?: OnQuery): Promise<Store> {
  const engine = await openEngine({ file, databaseUrl }, log)
  const store = storeOn(engine, onQuery)
  try {
    await migrate(store.db)
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}

/** For commands that only look. */
export async function openStoreReadOnly({ file, databaseUrl }: StoreLocation, log: Log): Promise<Store> {
  if (databaseUrl !== undefined) return openStore({ file, databaseUrl }, log)
  // No gateway has run yet: there is nothing to see, which is not an error.
  if (!existsSync(file)) return openStore({ file: ':memory:' }, log)
  const { openSqlite } = await import('./sqlite.js')
  const store = storeOn(await openSqlite(file, true))
  if (await isUpToDate(store.db)) return store
  await store.close()
  const advice = 'Start the gateway once, which brings it up to date: aetheel start'
  throw new GatewayError('store_unavailable', `The database is of an earlier version of Aetheel. ${advice}`)
}

export function storeOn(engine: Engine, onQuery?: OnQuery): Store & { db: Kysely<Schema> } {
  const on = (dialect: Dialect): Kysely<Schema> =>
    new Kysely<Schema>({
      dialect,
      ...(onQuery && { log: ({ query, queryDurationMillis }) => onQuery(query.query.kind, queryDurationMillis) }),
    })
  const db = on(engine.dialect)
  const reads = engine.reads ? on(engine.reads) : db
  const tables = tablesOn(db, engine, reads)
  const transaction: Store['transaction'] = async (work, onCommitted) => {
    const result = await db.transaction().execute((tx) =>
      inOneHand(tx, async (connection) => {
        const worked = await work(tablesOn(tx, engine, tx))
        if (onCommitted) engine.hearCommit?.(connection, () => onCommitted(worked))
        return worked
      }),
    )
    if (!engine.hearCommit) onCommitted?.(result)
    return result
  }
  return {
    db,
    engine: engine.name,
    ...tables,
    transaction,
    async write(work, onCommitted) {
      if (engine.hearCommit) return transaction(work, onCommitted)
      const result = await work(tables)
      onCommitted(result)
      return result
    },
    listen: engine.listen,
    check: async () => engine.check?.(),
    // Who still reads would keep the log from being taken into the file.
    close: async () => {
      if (reads !== db) await reads.destroy()
      await db.destroy()
    },
  }
}

/** `reads` answers what may take long. */
function tablesOn(db: Kysely<Schema>, engine: Engine, reads: Kysely<Schema>): Tables {
  return {
    projects: new Projects(db, engine),
    conversations: new Conversations(db),
    conversationViews: new ConversationViews(db, reads),
    inbox: new Inbox(db, engine, reads),
    runs: new Runs(db, engine, reads),
    outbox: new Outbox(db, engine),
    sessions: new Sessions(db),
    ledger: new Ledger(db),
    audit: new Audit(db),
    archive: new ArchiveQueries(db, reads),
    channelValues: new ChannelValues(db),
    credentials: new Credentials(db, engine),
    tokens: new Tokens(db),
    cronJobs: new CronJobs(db, engine),
    heartbeats: new Heartbeats(db),
    figures: new Figures(reads),
    approvals: new Approvals(db),
    approvalRules: new ApprovalRules(db),
  }
}

async function openEngine({ file, databaseUrl }: StoreLocation, log: Log): Promise<Engine> {
  // Loaded when needed: a gateway on SQLite has no use for pg, nor the other way round.
  if (databaseUrl !== undefined) return (await import('./postgres.js')).openPostgres(databaseUrl, log)
  return (await import('./sqlite.js')).openSqlite(file)
}

async function isUpToDate(db: Kysely<Schema>): Promise<boolean> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } })
  return (await migrator.getMigrations()).every(({ executedAt }) => executedAt !== undefined)
}

export async function migrate(db: Kysely<Schema>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await migrator.migrateToLatest()
  if (error === undefined) return
  if (error instanceof GatewayError) throw error
  const advice = 'Was it made by a newer Aetheel? Then use that version, or another database.'
  const message = `The database's tables could not be brought up to date: ${messageOf(error)}. ${advice}`
  throw new GatewayError('store_unavailable', message, { cause: error })
}
