import { existsSync } from 'node:fs'
import { type Dialect, Kysely, Migrator, type Transaction } from 'kysely'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { Admissions } from './admissions.js'
import { ApprovalRules } from './approval-rules.js'
import { Approvals } from './approvals.js'
import { ArchiveQueries } from './archive-queries.js'
import { Audit } from './audit.js'
import { ChannelValues } from './channel-values.js'
import { ConversationViews } from './conversation-views.js'
import { Conversations } from './conversations.js'
import { Credentials } from './credentials.js'
import { CronJobs } from './cron-jobs.js'
import type { Engine } from './engine.js'
import { Events } from './events.js'
import { Figures } from './figures.js'
import { Heartbeats } from './heartbeats.js'
import { Inbox } from './inbox.js'
import { Jobs } from './jobs.js'
import { Ledger } from './ledger.js'
import { initialTables } from './migrations/0001-initial.js'
import { Outbox } from './outbox.js'
import { Projects } from './projects.js'
import { Runs } from './runs.js'
import type { Schema } from './schema.js'
import { Sessions } from './sessions.js'
import { onOneConnection, type Table } from './table.js'
import { Tokens } from './tokens.js'
import { Uploads } from './uploads.js'

const MIGRATIONS = { '0001-initial': initialTables }
/** The first migrations of versions before 0.1.0. */
const UNRELEASED_MIGRATIONS = ['0001-core', '0001-tables']

const TABLES = {
  projects: Projects,
  conversations: Conversations,
  /** Conversations as people see them from outside. */
  conversationViews: ConversationViews,
  /** Messages as they were received. */
  inbox: Inbox,
  /** What still has to be done about messages. */
  jobs: Jobs,
  runs: Runs,
  events: Events,
  /** What runs took and used. */
  figures: Figures,
  /** Replies, and whether they were delivered. */
  outbox: Outbox,
  /** Files that were uploaded for messages. */
  uploads: Uploads,
  sessions: Sessions,
  approvals: Approvals,
  approvalRules: ApprovalRules,
  archive: ArchiveQueries,
  cronJobs: CronJobs,
  heartbeats: Heartbeats,
  channelValues: ChannelValues,
  /** People admitted by a command. */
  admissions: Admissions,
  credentials: Credentials,
  tokens: Tokens,
  audit: Audit,
  /** The gateways on this database, and the processes they have started. */
  ledger: Ledger,
}

/** The tables, alone or within one transaction. */
export type Tables = { [Name in keyof typeof TABLES]: InstanceType<(typeof TABLES)[Name]> }

export interface Store extends Tables {
  engine: Engine['name']
  /**
   * `onCommitted` is called when others can see the changes, which on SQLite is some time before they are on disk: code that
   * continues then must not report them until this settles.
   *
   * Contract: `work` uses only the tables it is given, one statement at a time: SQLite has one connection, which `work`
   * holds.
   */
  transaction<T>(work: (tables: Tables) => Promise<T>, onCommitted?: (result: T) => void): Promise<T>
  /** As `transaction`, for work that may be done in part and repeated: saves two round trips on PostgreSQL. */
  write<T>(work: (tables: Tables) => Promise<T>, onCommitted: (result: T) => void): Promise<T>
  /** Calls back when a gateway on the same database has added work or cancelled a message. */
  listen: Engine['listen']
  /** Checks for damage, which takes as long as reading the whole database. Contract: rejects with `store_corrupt`. */
  check(): Promise<void>
  close(): Promise<void>
}

/** Called for each completed statement, with the kind of its root node. */
export type OnQuery = (kind: string, durationMs: number) => void

export interface StoreLocation {
  /** The file of SQLite; not used with a `databaseUrl`. */
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

/** For commands that only read. */
export async function openStoreReadOnly({ file, databaseUrl }: StoreLocation, log: Log): Promise<Store> {
  if (databaseUrl !== undefined) return openStore({ file, databaseUrl }, log)
  // No gateway has run yet: there is nothing to read, which is not an error.
  if (!existsSync(file)) return openStore({ file: ':memory:' }, log)
  const { openSqlite } = await import('./sqlite.js')
  const store = storeOn(await openSqlite(file, true))
  const { isUpToDate, isUnreleased } = await versionOf(store.db)
  if (isUpToDate) return store
  await store.close()
  if (isUnreleased) throw unreleasedError()
  const advice = 'Upgrade it by starting the gateway once: aetheel start'
  throw new GatewayError('store_unavailable', `The database is from an earlier version of Aetheel. ${advice}`)
}

export function storeOn(engine: Engine, onQuery?: OnQuery): Store & { db: Kysely<Schema> } {
  const on = (dialect: Dialect): Kysely<Schema> =>
    new Kysely<Schema>({
      dialect,
      ...(onQuery && { log: ({ query, queryDurationMillis }) => onQuery(query.query.kind, queryDurationMillis) }),
    })
  const db = on(engine.dialect)
  const reads = engine.reads ? on(engine.reads) : db
  const tables = tablesOn(db, reads, engine)
  const transaction: Store['transaction'] = async (work, onCommitted) => {
    const result = await db.transaction().execute((tx) =>
      onOneConnection(tx, async (connection) => {
        const worked = await work(new TransactionTables(tx, engine) as TransactionTables & Tables)
        if (onCommitted) engine.onCommit?.(connection, () => onCommitted(worked))
        return worked
      }),
    )
    if (!engine.onCommit) onCommitted?.(result)
    return result
  }
  return {
    db,
    engine: engine.name,
    ...tables,
    transaction,
    async write(work, onCommitted) {
      if (engine.onCommit) return transaction(work, onCommitted)
      const result = await work(tables)
      onCommitted(result)
      return result
    },
    listen: engine.listen,
    check: async () => engine.check?.(),
    // An open reader would keep the log from being moved into the file.
    close: async () => {
      if (reads !== db) await reads.destroy()
      await db.destroy()
    },
  }
}

export function tablesOn(...connection: ConstructorParameters<typeof Table>): Tables {
  const tables = Object.entries(TABLES).map(([name, TableOf]) => [name, new TableOf(...connection)])
  return Object.fromEntries(tables) as Tables
}

/** The tables of one transaction, each made when it is used: most transactions use few of them. */
class TransactionTables {
  constructor(
    readonly tx: Transaction<Schema>,
    readonly engine: Engine,
  ) {}
}

for (const [name, TableOf] of Object.entries(TABLES)) {
  Object.defineProperty(TransactionTables.prototype, name, {
    get(this: TransactionTables) {
      return new TableOf(this.tx, this.tx, this.engine)
    },
  })
}

async function openEngine({ file, databaseUrl }: StoreLocation, log: Log): Promise<Engine> {
  // Loaded on demand: a gateway on SQLite does not need pg, nor one on PostgreSQL libsql.
  if (databaseUrl !== undefined) return (await import('./postgres.js')).openPostgres(databaseUrl, log)
  return (await import('./sqlite.js')).openSqlite(file)
}

async function versionOf(db: Kysely<Schema>): Promise<{ isUpToDate: boolean; isUnreleased: boolean }> {
  const unreleased = UNRELEASED_MIGRATIONS.map((name) => [name, initialTables])
  const migrations = { ...MIGRATIONS, ...Object.fromEntries(unreleased) }
  const known = await new Migrator({ db, provider: { getMigrations: async () => migrations } }).getMigrations()
  const executed = new Set(known.filter(({ executedAt }) => executedAt).map(({ name }) => name))
  return {
    isUpToDate: Object.keys(MIGRATIONS).every((name) => executed.has(name)),
    isUnreleased: UNRELEASED_MIGRATIONS.some((name) => executed.has(name)),
  }
}

export async function migrate(db: Kysely<Schema>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await migrator.migrateToLatest()
  if (error === undefined) return
  if (error instanceof GatewayError) throw error
  if ((await versionOf(db)).isUnreleased) throw unreleasedError()
  const advice = 'If a newer Aetheel created it, use that version or another database.'
  const message = `The database could not be migrated: ${messageOf(error)}. ${advice}`
  throw new GatewayError('store_unavailable', message, { cause: error })
}

function unreleasedError(): GatewayError {
  const problem = 'The database was created before Aetheel 0.1.0, and this version cannot use it.'
  const advice =
    'Start with an empty one: move aetheel.db and aetheel.db-* away, or set DATABASE_URL to another database.'
  return new GatewayError('store_unavailable', `${problem} Nothing was changed. ${advice}`)
}
