// PostgreSQL: several gateways may share one database.

import { Socket } from 'node:net'
import {
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  PostgresQueryCompiler,
  type QueryCompiler,
  sql,
} from 'kysely'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { Engine } from './engine.js'
import { withoutNul } from './table.js'

const CHANNEL = 'aetheel_work'
const CONNECT_TIMEOUT_MS = 10_000
const LISTEN_AGAIN_MS = 1_000
/** Longer than the pool keeps an idle connection, shorter than a lease. */
const SILENCE_LIMIT_MS = 20_000
const INT8 = 20

export async function openPostgres(url: string, log: Log): Promise<Engine> {
  const { default: pg } = await import('pg')
  // Times and counters are int8, which pg returns as text since they may exceed a number; ours never do.
  const types = new pg.TypeOverrides()
  types.setTypeParser(INT8, Number)
  const pool = new pg.Pool({
    connectionString: url,
    types,
    max: 10,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    stream: impatientSocket,
  })
  // A broken connection is replaced. Without a listener, on idle ones and on those in use, it would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => {
    client.on('error', (error) => log.warn('store.connection-lost', { error: error.message }))
  })
  try {
    const { rows } = await pool.query<{ version: string }>(`select current_setting('server_version_num') as version`)
    if (Number(rows[0]?.version) < 150_000) {
      throw new GatewayError('store_unavailable', 'PostgreSQL 15 or newer is required. Upgrade the server.')
    }
  } catch (error) {
    await pool.end()
    if (error instanceof GatewayError) throw error
    const problem = `PostgreSQL at ${describe(url)} cannot be used: ${messageOf(error) || (error as { code?: string }).code}.`
    throw new GatewayError('store_unavailable', `${problem} Check DATABASE_URL, and that the server is running.`, {
      cause: error,
    })
  }

  return {
    name: 'postgres',
    dialect: new SharedDialect({ pool: explaining(pool) }),
    locksRows: true,
    announce: async (db, cancelledId = '') => {
      await sql`select pg_notify(${CHANNEL}, ${cancelledId})`.execute(db)
    },
    listen: async (onNews) => {
      let isClosed = false
      let client: import('pg').Client | undefined
      let timer: NodeJS.Timeout | undefined
      const again = (): void => {
        if (isClosed) return
        clearTimeout(timer)
        timer = setTimeout(() => void connect(), LISTEN_AGAIN_MS)
      }
      const connect = async (): Promise<void> => {
        const candidate = new pg.Client({
          connectionString: url,
          connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
          keepAlive: true,
        })
        client = candidate
        candidate.on('error', (error) => {
          log.warn('store.connection-lost', { error: error.message })
          again()
        })
        candidate.on('notification', ({ payload }) => onNews(payload || undefined))
        try {
          await candidate.connect()
          await candidate.query(`listen ${CHANNEL}`)
        } catch (error) {
          log.warn('store.connection-lost', { error: messageOf(error) })
          again()
          await candidate.end().catch(() => {}) // It is already broken.
        }
      }
      await connect()
      return async () => {
        isClosed = true
        clearTimeout(timer)
        await client?.end()
      }
    },
  }
}

/** Gives up a server that has gone silent, as after a failover, before our leases end. */
function impatientSocket(): Socket {
  const socket = new Socket()
  return socket.setTimeout(SILENCE_LIMIT_MS, () => socket.destroy(new Error('The database did not respond')))
}

/** Distinguishes a lost or refused connection from what the server reports about a query. */
function explaining(pool: import('pg').Pool): PostgresPool {
  return {
    connect: async () => {
      const client = await pool.connect().catch(explain)
      // Kysely could also pass a cursor, but cursors are not used.
      const query = (text: unknown, values: readonly unknown[] = []): Promise<unknown> =>
        client.query(String(text), [...values]).catch(explain)
      return { query: query as PostgresPoolClient['query'], release: () => client.release() }
    },
    end: () => pool.end(),
  }
}

function explain(error: unknown): never {
  const { code = '', severity } = error as { code?: string; severity?: string }
  // Only errors reported by the server have a severity.
  const isLost = severity === undefined ? !(error instanceof TypeError) : LOST_STATES.test(code)
  if (!isLost) throw error
  const message = 'The database connection was lost or could not be opened. Try again in a moment.'
  throw new GatewayError('store_unavailable', message, { cause: error })
}

/** SQLSTATEs of broken connections, of too many connections, and of a server that stops or starts. */
const LOST_STATES = /^(?:08|53300|57P0[1-3])/

class SharedDialect extends PostgresDialect {
  override createQueryCompiler(): QueryCompiler {
    return new SharedQueryCompiler()
  }
}

class SharedQueryCompiler extends PostgresQueryCompiler {
  protected override appendValue(value: unknown): void {
    super.appendValue(withoutNul(value))
  }
}

/** Without the password. */
function describe(url: string): string {
  try {
    const { host, pathname } = new URL(url)
    return `${host}${pathname}`
  } catch {
    return 'the address in DATABASE_URL' // It may contain the password in an unexpected place.
  }
}
