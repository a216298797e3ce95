// What all tables share: connections, conversion between rows and values, claims of what is due, and queries that are
// compiled once. For the short queries of a turn, compiling takes longer than running.

import {
  type Compilable,
  type CompiledQuery,
  type DatabaseConnection,
  type DialectAdapter,
  type Expression,
  expressionBuilder,
  type Kysely,
  type QueryResult,
  type RawBuilder,
  sql,
  type SqlBool,
  type Transaction,
} from 'kysely'
import type { Engine } from './engine.js'
import type { Schema } from './schema.js'

/** Queries on the database, or within one transaction. */
export abstract class Table {
  constructor(
    protected readonly db: Kysely<Schema>,
    /** For queries that may take long. */
    protected readonly reads: Kysely<Schema>,
    protected readonly engine: Engine,
  ) {}

  /** A claim holds until its lease ends, and then anyone may claim again. Contract: whoever held it can no longer write. */
  protected async claimDue<Row>(
    claim: (db: Kysely<Schema>, values: ClaimValues) => Promise<QueryResult<Row>>,
    [gatewayId, channels, now, leaseMs, { address, except = [] } = {}]: ClaimRequest,
  ): Promise<Row | undefined> {
    // `in ()` is an error on PostgreSQL.
    if (channels.length === 0) return undefined
    const { locksRows } = this.engine
    const values = { gatewayId, channels, address, except, now, leaseEnd: now + leaseMs, locksRows }
    return (await claim(this.db, values)).rows[0]
  }
}

/** Restricts what may be claimed. */
export interface ClaimLimits {
  /** Only in this conversation. */
  address?: string
  /** Conversations that we hold already: after a pause of the whole process, our own leases have ended too. */
  except?: string[]
}

export type ClaimRequest = [gatewayId: string, channels: string[], now: number, leaseMs: number, limits?: ClaimLimits]

export type ClaimValues = {
  gatewayId: string
  channels: string[]
  address: string | undefined
  except: string[]
  now: number
  leaseEnd: number
  locksRows: boolean
}

/** Whether a row of the table `due` may be claimed as far as time, channel and conversation go. */
export function isDue({ channels, except, now }: ClaimValues): Expression<SqlBool> {
  const { eb, and } = expressionBuilder<{ due: Schema['jobs'] | Schema['outbox'] }, 'due'>()
  return and([
    eb('due.due_at', '<=', now),
    eb('due.channel', 'in', channels),
    ...(except.length > 0 ? [eb('due.conversation_id', 'not in', except)] : []),
  ])
}

type Camel<Name> = Name extends `${infer Head}_${infer Tail extends string}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name

type Snake<Name> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : Name

type FromRow<Row> = { [Column in keyof Row as null extends Row[Column] ? never : Camel<Column>]: Row[Column] } & {
  [Column in keyof Row as null extends Row[Column] ? Camel<Column> : never]?: NonNullable<Row[Column]>
}

/** The columns of a table, in camel case. */
export type Columns<Name extends keyof Schema> = {
  [Column in keyof Schema[Name] as Camel<Column>]: Schema[Name][Column]
}

type ToRow<Value> = { [Name in keyof Value as Snake<Name>]: Value[Name] }

/** A row as the rest of the code sees it: names in camel case, without nulls. */
export function fromRow<Row extends object>(row: Row): FromRow<Row> {
  const value: Record<string, unknown> = {}
  for (const [column, content] of Object.entries(row)) if (content !== null) value[camelOf(column)] = content
  return value as FromRow<Row>
}

/** Contract: the table has a column for each field of the value. */
export function toRow<Value extends object>(value: Value): ToRow<Value> {
  const columns = Object.entries(value).map(([name, content]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    content,
  ])
  return Object.fromEntries(columns) as ToRow<Value>
}

const camelNames = new Map<string, string>()

function camelOf(column: string): string {
  const known = camelNames.get(column)
  if (known !== undefined) return known
  const name = column.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  camelNames.set(column, name)
  return name
}

export function fromJson(text: string | null): unknown {
  return text === null ? null : JSON.parse(text)
}

export function toJson(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value)
}

/** Whether a row is behind the given one in a list that is sorted by time, latest first, and then by id. */
export function isBehind(row: { at: string; id: string }, last: { at: number; id: string }): RawBuilder<SqlBool> {
  const [at, id] = [sql.ref(row.at), sql.ref(row.id)]
  return sql`(${at} < ${last.at} or (${at} = ${last.at} and ${id} > ${last.id}))`
}

type Value = string | number | null | boolean | undefined | readonly Value[]

type ValuesOf<Values> = Record<keyof Values, Value>

const KEPT_SHAPES = 50

/** Stands for a value in the compiled query. */
class Placeholder {
  constructor(
    readonly name: string,
    readonly index?: number,
  ) {}
}

/**
 * Contract: `build` only puts its values into the query and does not depend on them, except on booleans, on what is
 * undefined, and on the lengths of lists: each combination of these is compiled separately.
 */
export function compiled<Values extends ValuesOf<Values>, Row>(
  build: (db: Kysely<Schema>, values: Values) => Compilable<Row>,
): (db: Kysely<Schema>, values: Values) => Promise<QueryResult<Row>> {
  const databases = new WeakMap<DialectAdapter, Map<string, CompiledQuery<Row>>>()
  return (db, values) => {
    const { adapter } = db.getExecutor()
    const queries = databases.get(adapter) ?? new Map<string, CompiledQuery<Row>>()
    databases.set(adapter, queries)
    const shape = Object.values<Value>(values).map(shapeOf).join()
    let query = queries.get(shape)
    if (!query) {
      query = build(db, withPlaceholders(values)).compile()
      // Lists have many lengths.
      if (queries.size >= KEPT_SHAPES) queries.clear()
      queries.set(shape, query)
    }
    const parameters = query.parameters.map((part) => (part instanceof Placeholder ? valueAt(part, values) : part))
    const bound = { ...query, parameters }
    return connections.get(db)?.executeQuery(bound) ?? db.executeQuery(bound)
  }
}

/** The connections of transactions: through Kysely's own executor, each statement awaits several times before it runs. */
const connections = new WeakMap<Kysely<Schema>, DatabaseConnection>()

/** Sends the compiled queries of a transaction straight to its connection while `work` runs. */
export async function onOneConnection<T>(
  tx: Transaction<Schema>,
  work: (connection: DatabaseConnection) => Promise<T>,
): Promise<T> {
  const connection = await tx.getExecutor().provideConnection(async (provided) => provided)
  connections.set(tx, connection)
  try {
    return await work(connection)
  } finally {
    connections.delete(tx)
  }
}

/** The row of a query that always returns one. */
export function only<Row>({ rows: [row] }: QueryResult<Row>): Row {
  if (row === undefined) throw new Error('Row not found')
  return row
}

function shapeOf(value: Value): number | boolean | '' | 'none' {
  if (Array.isArray(value)) return value.length
  if (value === undefined) return 'none'
  return typeof value === 'boolean' ? value : ''
}

function withPlaceholders<Values extends ValuesOf<Values>>(values: Values): Values {
  const placeholders = Object.entries<Value>(values).map(([name, value]) => {
    if (Array.isArray(value)) return [name, value.map((_, index) => new Placeholder(name, index))]
    return [name, typeof value === 'boolean' || value === undefined ? value : new Placeholder(name)]
  })
  return Object.fromEntries(placeholders) as Values
}

function valueAt<Values extends ValuesOf<Values>>({ name, index }: Placeholder, values: Values): unknown {
  const value = values[name as keyof Values]
  return withoutNul(index === undefined ? value : (value as readonly Value[])[index])
}

/** PostgreSQL refuses text that contains NUL, and SQLite truncates it there. Nobody needs it. */
export function withoutNul(value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll('\0', '') : value
}
