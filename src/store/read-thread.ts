// Runs long queries on a SQLite file in a worker thread: on the main thread they would block everything else.

import modules from 'node:module'
import { Worker } from 'node:worker_threads'
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import { GatewayError } from '../errors.js'

interface Answer {
  id: number
  /** Some of the rows; unless `isLast`, the next ones must be requested. */
  rows?: unknown[]
  isLast?: boolean
  error?: { message: string; code: string | undefined }
}

interface Asked {
  rows: unknown[]
  resolve(rows: unknown[]): void
  reject(error: unknown): void
}

/** Receiving more at once would block the main thread about as long as reading them. */
const ROWS_AT_ONCE = 1_000

/** The program of the thread. As text, so that it works in the build, from the sources, and in a bundle. */
const PROGRAM = `
const { parentPort, workerData: { libsql, file, pragmas } } = require('node:worker_threads')
const Database = require(libsql)
const database = new Database(file)
for (const pragma of pragmas) database.pragma(pragma)
const left = new Map()
const tell = (id, rows) => {
  const some = rows.splice(0, ${ROWS_AT_ONCE})
  const isLast = rows.length === 0
  if (isLast) left.delete(id)
  else left.set(id, rows)
  parentPort.postMessage({ id, rows: some, isLast })
}
parentPort.on('message', (asked) => {
  if (asked === undefined) {
    database.close()
    return parentPort.close()
  }
  const { id, sql, parameters } = asked
  try {
    tell(id, left.get(id) ?? database.prepare(sql).all(parameters))
  } catch (error) {
    parentPort.postMessage({ id, error: { message: error.message, code: error.code } })
  }
})`

/** Runs one query at a time, in order. Contract: queries only read. */
export class ReadThread implements Driver {
  #worker: Worker | undefined
  #isClosed = false
  #lastId = 0
  readonly #asked = new Map<number, Asked>()

  constructor(
    private readonly file: string,
    private readonly pragmas: string[],
    private readonly explain: (error: unknown) => unknown,
  ) {}

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return {
      executeQuery: async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => ({
        rows: (await this.#ask(sql, parameters)) as Row[],
      }),
      streamQuery: () => {
        throw new Error('Queries on SQLite are not streamed')
      },
    }
  }

  async releaseConnection(): Promise<void> {}

  beginTransaction = noTransaction
  commitTransaction = noTransaction
  rollbackTransaction = noTransaction

  /** Contract: settles when the thread has closed the file. */
  async destroy(): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    if (!worker) return
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    worker.ref()
    tell(worker, undefined)
    await ended
  }

  #ask(sql: string, parameters: readonly unknown[]): Promise<unknown[]> {
    if (this.#isClosed) {
      const message = `The database ${this.file} is closed. Restart the gateway.`
      return Promise.reject(new GatewayError('store_unavailable', message))
    }
    this.#worker ??= this.#start()
    const worker = this.#worker
    const id = (this.#lastId += 1)
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { rows: [], resolve, reject })
      worker.ref()
      tell(worker, { id, sql, parameters })
    })
  }

  #start(): Worker {
    const { file, pragmas } = this
    const libsql = modules.createRequire(import.meta.url).resolve('libsql')
    const worker = new Worker(PROGRAM, { eval: true, execArgv: [], workerData: { libsql, file, pragmas } })
    worker.on('message', ({ id, rows = [], isLast, error }: Answer) => {
      const asked = this.#asked.get(id)
      if (!asked) return
      for (const row of rows) asked.rows.push(row)
      if (!isLast && !error) {
        setImmediate(() => tell(worker, { id }))
        return
      }
      this.#asked.delete(id)
      // An idle thread must not keep the process alive.
      if (this.#asked.size === 0) worker.unref()
      if (error) asked.reject(this.explain(Object.assign(new Error(error.message), { code: error.code })))
      else asked.resolve(asked.rows)
    })
    const message = `The database ${file} cannot be read: its reading thread has ended. Try again.`
    let reason: unknown = new GatewayError('store_unavailable', message)
    worker.on('error', (error) => {
      reason = error
    })
    worker.on('exit', () => {
      this.#worker = undefined
      for (const { reject } of this.#asked.values()) reject(this.explain(reason))
      this.#asked.clear()
    })
    return worker
  }
}

function tell(worker: Worker, asked: { id: number; sql?: string; parameters?: readonly unknown[] } | undefined): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- for browser windows only
  worker.postMessage(asked)
}

async function noTransaction(): Promise<void> {
  throw new Error('Transactions need the writing connection')
}
