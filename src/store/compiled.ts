// Queries whose text is made once: for the short ones of a turn, making it takes longer than running it.

import type {
  Compilable,
  CompiledQuery,
  DatabaseConnection,
  DialectAdapter,
  Kysely,
  QueryResult,
  Transaction,
} from 'kysely'
import { withoutNul } from './engine.js'
import type { Schema } from './schema.js'

type Value = string | number | null | boolean | undefined | readonly Value[]

type ValuesOf<Values> = Record<keyof Values, Value>

const KEPT_SHAPES = 50

/** Stands in the query where each use puts a value of its own. */
class Place {
  constructor(
    readonly name: string,
    readonly index?: number,
  ) {}
}

/**
 * Contract: `build` only puts its values into the query, and does not look at them, but for booleans, what is left out, and
 * the lengths of lists: for each of these the text is another.
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
      query = build(db, withPlaces(values)).compile()
      // Lists have many lengths.
      if (queries.size >= KEPT_SHAPES) queries.clear()
      queries.set(shape, query)
    }
    const parameters = query.parameters.map((part) => (part instanceof Place ? valueAt(part, values) : part))
    const bound = { ...query, parameters }
    return inHand.get(db)?.executeQuery(bound) ?? db.executeQuery(bound)
  }
}

/** The connections of transactions. By Kysely's own way, each statement waits several times before it is run. */
const inHand = new WeakMap<Kysely<Schema>, DatabaseConnection>()

/** Lets the queries of a transaction go straight to its connection while `work` goes on. */
export async function inOneHand<T>(
  tx: Transaction<Schema>,
  work: (connection: DatabaseConnection) => Promise<T>,
): Promise<T> {
  const connection = await tx.getExecutor().provideConnection(async (its) => its)
  inHand.set(tx, connection)
  try {
    return await work(connection)
  } finally {
    inHand.delete(tx)
  }
}

/** The row of a query that always has one. */
export function only<Row>({ rows: [row] }: QueryResult<Row>): Row {
  if (row === undefined) throw new Error('The database has no such row')
  return row
}

function shapeOf(value: Value): number | boolean | '' | 'none' {
  if (Array.isArray(value)) return value.length
  if (value === undefined) return 'none'
  return typeof value === 'boolean' ? value : ''
}

function withPlaces<Values extends ValuesOf<Values>>(values: Values): Values {
  const places = Object.entries<Value>(values).map(([name, value]) => {
    if (Array.isArray(value)) return [name, value.map((_, index) => new Place(name, index))]
    return [name, typeof value === 'boolean' || value === undefined ? value : new Place(name)]
  })
  return Object.fromEntries(places) as Values
}

function valueAt<Values extends ValuesOf<Values>>({ name, index }: Place, values: Values): unknown {
  const value = values[name as keyof Values]
  return withoutNul(index === undefined ? value : (value as readonly Value[])[index])
}
