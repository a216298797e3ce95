// Queries that are compiled once: for the short ones of a turn, compiling takes longer than running.

import type {
  Compilable,
  CompiledQuery,
  DatabaseConnection,
  DialectAdapter,
  Kysely,
  QueryResult,
  Transaction,
} from 'kysely'
import type { Schema } from './schema.js'

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
  if (row === undefined) throw new Error('The database has no such row')
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

/** PostgreSQL refuses text with NUL in it, and SQLite cuts it off there. Nobody has a use for it. */
export function withoutNul(value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll('\0', '') : value
}
