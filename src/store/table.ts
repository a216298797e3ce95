// What all tables share: where they are, and how a row becomes a value.

import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely'
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

/** A row as the rest of the code sees it: names in camel case, nulls left out. */
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
