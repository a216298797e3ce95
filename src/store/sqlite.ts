// SQLite inside the process: one connection, used by one transaction at a time. Queries that may take long use another
// connection, in a worker thread.
//
// A commit is reported when it is on disk. Others may use the connection before that and see what was committed: their own
// commits get to disk with it or after it.

import { closeSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { wait } from '../core/async.js'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { GatewayError, messageOf } from '../errors.js'
import { makePrivateDirectory } from '../core/paths.js'
import { clearMark, isLogWhole, LogFlush, markFileOf, openMarkedLog } from './commit-log.js'
import type { Engine } from './engine.js'
import { ReadThread } from './read-thread.js'
import { withoutNul } from './table.js'

type SqliteDatabase = import('libsql').Database

const BUSY_TIMEOUT_MS = 5_000
const KEPT_STATEMENTS = 200
/** For the reading thread, whose queries pass over much of the file. */
const READ_CACHE_KIB = 32_000

/** A file of this size is checked in a few hundredths of a second. */
const SMALL_BYTES = 16_000_000

/** With `isReadOnly`, other processes may write meanwhile; we never do. */
export async function openSqlite(file: string, isReadOnly = false, openLogAt = openMarkedLog): Promise<Engine> {
  const { default: Database } = await import('libsql')
  let database: SqliteDatabase
  let log: LogFlush | undefined
  // SQLite puts the log beside the file itself, not beside a link to it.
  let logFile = `${file}-wal`
  try {
    makePrivateDirectory(dirname(file))
    // Nobody else may read what people wrote; the files beside it get the same mode.
    if (file !== ':memory:') closeSync(openSync(file, 'a', 0o600))
    if (file !== ':memory:') logFile = `${realpathSync(file)}-wal`
    if (sizeOf(file) > 0 && !isLogWhole(logFile)) throw logError(logFile)
    // Otherwise what the file lacks may be in the log.
    const endedCleanly = sizeOf(logFile) === 0
    if (endedCleanly) requireWhole(file)
    database = new Database(file)
    database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`)
    const hasLog = await useWal(database)
    // With NORMAL a power failure may lose a commit; `LogFlush` flushes it before it is reported.
    database.pragma(`synchronous = ${hasLog ? 'NORMAL' : 'FULL'}`)
    if (hasLog && !isReadOnly) log = new LogFlush(() => openLogAt(logFile))
    database.pragma('foreign_keys = ON')
    if (isReadOnly) database.pragma('query_only = ON')
    else if (!endedCleanly || sizeOf(file) <= SMALL_BYTES) requireSound(database, file)
  } catch (error) {
    throw explainSqlite(error, file)
  }
  const pragmas = [`busy_timeout = ${BUSY_TIMEOUT_MS}`, `cache_size = -${READ_CACHE_KIB}`, 'query_only = ON']
  const readLong = (): Driver => new ReadThread(file, pragmas, (error) => explainSqlite(error, file))
  return {
    name: 'sqlite',
    dialect: dialectOf(() => new EmbeddedDriver(database, file, logFile, isReadOnly, log)),
    // Without a log a reader blocks writers.
    ...(log && { reads: dialectOf(readLong) }),
    check: async () => requireSound(database, file),
    locksRows: false,
    onCommit: (connection, onCommitted) => {
      ;(connection as EmbeddedConnection).onCommitted = onCommitted
    },
    announce: async () => {},
    listen: async () => async () => {},
  }
}

function dialectOf(createDriver: () => Driver): Dialect {
  return {
    createAdapter: () => new EmbeddedAdapter(),
    createDriver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new EmbeddedQueryCompiler(),
  }
}

/** False where WAL is not possible: in memory, and on some file systems. If two processes create the file at once, SQLite
 *  refuses one of them immediately, whatever the time limit. */
async function useWal(database: SqliteDatabase): Promise<boolean> {
  const deadline = Date.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      const [mode] = database.pragma('journal_mode = WAL') as [{ journal_mode: string }]
      return mode.journal_mode === 'wal'
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY' || Date.now() > deadline) throw error
      await wait(10)
    }
  }
}

/**
 * Locks the directory for one gateway. The kernel releases the lock when the process ends, however it ends.
 *
 * Contract: throws `gateway_running` if another process has locked it.
 */
export async function lockDirectory(file: string): Promise<() => void> {
  const { default: Database } = await import('libsql')
  let database: SqliteDatabase | undefined
  try {
    makePrivateDirectory(dirname(file))
    closeSync(openSync(file, 'a', 0o600))
    database = new Database(file)
    database.exec('begin exclusive')
  } catch (error) {
    database?.close()
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw explainSqlite(error, file)
    const advice = 'Stop it, or give this one another AETHEEL_HOME.'
    throw new GatewayError('gateway_running', `Another gateway uses ${dirname(file)}. ${advice}`, { cause: error })
  }
  const held = database
  return () => {
    held.close()
  }
}

/** All tables or none: two gateways may start on one file at once, or one may be killed half-way. */
class EmbeddedAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

class EmbeddedQueryCompiler extends SqliteQueryCompiler {
  protected override appendValue(value: unknown): void {
    super.appendValue(withoutNul(value))
  }
}

/** Runs one transaction at a time, in order. */
class EmbeddedDriver implements Driver {
  readonly #statements: Statements
  #isFree: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(
    private readonly database: SqliteDatabase,
    private readonly file: string,
    private readonly logFile: string,
    private readonly isReadOnly: boolean,
    private readonly log: LogFlush | undefined,
  ) {
    this.#statements = new Statements(database)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<EmbeddedConnection> {
    const release = await this.#take()
    if (!this.#isClosed) return new EmbeddedConnection(this.#statements, this.file, this.log, release)
    release()
    throw new GatewayError('store_unavailable', `The database ${this.file} is closed. Restart the gateway.`)
  }

  async releaseConnection(connection: EmbeddedConnection): Promise<void> {
    connection.release()
  }

  async #take(): Promise<() => void> {
    const isFree = this.#isFree
    let release = (): void => {}
    this.#isFree = new Promise((resolve) => {
      release = resolve
    })
    await isFree
    return release
  }

  /** Moves the log into the file, so that the file can be copied without it; not while another process still reads. */
  async destroy(): Promise<void> {
    // After running transactions: libsql ends the whole process if a closed database is used.
    const release = await this.#take()
    this.#isClosed = true
    try {
      await this.log?.close()
    } finally {
      if (!this.isReadOnly) this.#checkpoint()
      this.database.close()
      // The last process to close the database empties the log.
      if (sizeOf(this.logFile) === 0) clearMark(this.logFile)
      release()
    }
  }

  #checkpoint(): void {
    try {
      clearMark(this.logFile)
      this.database.pragma('wal_checkpoint(TRUNCATE)')
    } catch {
      // On a full disk, for example. Nothing is lost: whoever opens it next reads the log.
    }
  }

  /** Immediate: a transaction that begins to write half-way fails at once if another process has written. */
  async beginTransaction(connection: EmbeddedConnection): Promise<void> {
    await connection.executeQuery(BEGIN)
  }

  async commitTransaction(connection: EmbeddedConnection): Promise<void> {
    await connection.executeQuery(COMMIT)
  }

  /** On a full disk SQLite has rolled back already, and a second rollback would hide the reason. A transaction that is open
   *  after our commit is someone else's. */
  async rollbackTransaction(connection: EmbeddedConnection): Promise<void> {
    if (connection.isInTransaction && this.database.inTransaction) await connection.executeQuery(ROLLBACK)
  }
}

/** The connection while one caller holds it. */
class EmbeddedConnection implements DatabaseConnection {
  isInTransaction = false
  onCommitted = (): void => {}
  #hasWritten = false
  #isReleased = false

  constructor(
    private readonly statements: Statements,
    private readonly file: string,
    private readonly log: LogFlush | undefined,
    private readonly onRelease: () => void,
  ) {}

  release(): void {
    this.#isReleased = true
    this.onRelease()
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#isReleased) throw new Error('The connection was released')
    if (!this.isInTransaction && !isSelect(query)) this.log?.requireSound()
    const result = this.#run<Row>(query)
    if (query === BEGIN) this.isInTransaction = true
    else if (query === COMMIT || query === ROLLBACK) this.isInTransaction = false
    else this.#hasWritten ||= mayHaveWritten(query, result)
    if (this.isInTransaction) return result
    this.release()
    if (query === COMMIT) this.onCommitted()
    if (this.#hasWritten && query !== ROLLBACK) await this.log?.flush()
    return result
  }

  #run<Row>({ sql, parameters }: CompiledQuery): QueryResult<Row> {
    try {
      const { statement, isReader } = this.statements.get(sql)
      if (isReader) return { rows: statement.all(parameters) as Row[] }
      return { rows: [], numAffectedRows: BigInt(statement.run(parameters).changes) }
    } catch (error) {
      throw explainSqlite(error, this.file)
    }
  }

  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('Queries on SQLite are not streamed')
  }
}

const BEGIN = CompiledQuery.raw('begin immediate')
const COMMIT = CompiledQuery.raw('commit')
const ROLLBACK = CompiledQuery.raw('rollback')

/** True even if that cannot be determined. */
function mayHaveWritten(compiled: CompiledQuery, { rows, numAffectedRows }: QueryResult<unknown>): boolean {
  const { query } = compiled
  if (isSelect(compiled)) return false
  const isChange =
    query.kind === 'InsertQueryNode' || query.kind === 'UpdateQueryNode' || query.kind === 'DeleteQueryNode'
  return !isChange || rows.length > 0 || (numAffectedRows ?? 0n) > 0n
}

function isSelect({ query }: CompiledQuery): boolean {
  return query.kind === 'SelectQueryNode'
}

type Statement = import('libsql').Statement

/** Most queries are repeated, and preparing them takes longer than running them. */
class Statements {
  readonly #prepared = new Map<string, { statement: Statement; isReader: boolean }>()

  constructor(private readonly database: SqliteDatabase) {}

  get(text: string): { statement: Statement; isReader: boolean } {
    const known = this.#prepared.get(text)
    if (known) return known
    // Queries that differ in the number of their values, such as lists of events, must not pile up.
    if (this.#prepared.size >= KEPT_STATEMENTS) this.#prepared.clear()
    const statement = this.database.prepare(text)
    const prepared = { statement, isReader: statement.reader }
    this.#prepared.set(text, prepared)
    return prepared
  }
}

/** A truncated file opens without an error and fails only later, where data is missing. */
function requireWhole(file: string): void {
  const size = sizeOf(file)
  if (size < HEADER_BYTES) return
  const header = Buffer.alloc(HEADER_BYTES)
  const descriptor = openSync(file, 'r')
  try {
    readSync(descriptor, header, 0, HEADER_BYTES, 0)
  } finally {
    closeSync(descriptor)
  }
  if (header.toString('latin1', 0, 15) !== 'SQLite format 3') return
  const pageSize = header.readUInt16BE(16)
  const pages = header.readUInt32BE(28)
  // 1 stands for the largest size, which does not fit into two bytes.
  if (size < pages * (pageSize === 1 ? 65_536 : pageSize)) throw corruptError(file, new Error('The file is truncated'))
}

const HEADER_BYTES = 100

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Checks the whole file, which takes time: done only for a small one, and after a gateway that did not stop cleanly. */
function requireSound(database: SqliteDatabase, file: string): void {
  const rows = database.prepare('pragma quick_check(1)').all() as Array<{ quick_check: string }>
  if (rows[0]?.quick_check !== 'ok') throw corruptError(file, new Error(rows[0]?.quick_check))
}

function logError(logFile: string): GatewayError {
  const problem = `${logFile} is damaged or missing, so some recent changes are lost. Nothing was touched.`
  const mark = markFileOf(logFile)
  const advice = `Restore a backup of the database and remove ${mark}, or only remove ${mark} to continue without them.`
  return new GatewayError('store_corrupt', `${problem} ${advice}`)
}

function corruptError(file: string, cause: unknown): GatewayError {
  const advice = 'It was not touched. Restore a backup, or move it away to start with an empty one.'
  return new GatewayError('store_corrupt', `${file} is not a database, or it is damaged. ${advice}`, { cause })
}

/** Turns a SQLite error into advice for the operator. */
function explainSqlite(error: unknown, file: string): unknown {
  const code = (error as { code?: string }).code ?? ''
  const cause = { cause: error }
  if (code === 'SQLITE_FULL') {
    const advice = 'Nothing was changed. Free some disk space; waiting work then continues.'
    return new GatewayError('store_full', `The database ${file} cannot grow: the disk is full. ${advice}`, cause)
  }
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return corruptError(file, error)
  }
  if (code === 'EISDIR') {
    const advice = 'Move it away, or set AETHEEL_HOME to another directory.'
    return new GatewayError('store_unavailable', `${file} is a directory, not a database file. ${advice}`, cause)
  }
  if (/^SQLITE_(?:READONLY|CANTOPEN|PERM|IOERR|BUSY|LOCKED)/.test(code) || isOpenFailure(error)) {
    const advice = `Check that ${dirname(file)} exists and that this user can write there.`
    const reason = messageOf(error)
    return new GatewayError('store_unavailable', `The database ${file} cannot be used: ${reason}. ${advice}`, cause)
  }
  return error
}

function isOpenFailure(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return /ConnectionFailed/.test(messageOf(error)) || /^E(?:ACCES|PERM|ROFS|NOENT|NOTDIR|EXIST|NOSPC)$/.test(code ?? '')
}
