// Converts between internal values and the wire format. On the wire, names are snake_case, times are ISO 8601 and
// unknown values are null; internally, names are camelCase, times are milliseconds and unknown values are absent. Only
// an object's own fields are converted: nested keys may not be ours.

import { z } from 'zod'

type CamelCased<Name> = Name extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<CamelCased<Rest>>}` : Name

type Internal<Name, Value> = Name extends 'at' | `${string}_at` ? (Value extends string ? number : Value) : Value

/** The internal value of a wire object. */
type WireSource<Wire> = {
  [Name in keyof Wire as Wire[Name] extends NonNullable<Wire[Name]> ? CamelCased<Name> : never]: Internal<
    Name,
    Wire[Name]
  >
} & {
  [Name in keyof Wire as Wire[Name] extends NonNullable<Wire[Name]> ? never : CamelCased<Name>]?:
    | Internal<Name, Wire[Name]>
    | undefined
}

/** Contract: the result has exactly the schema's fields; an unknown one is null, or absent if it is not nullable. */
export function toWire<Schema extends z.ZodObject>(
  schema: Schema,
  source: WireSource<z.output<Schema>>,
): z.output<Schema> {
  const values: Record<string, unknown> = source
  const wire: Record<string, unknown> = {}
  for (const { name, sourceName, isTime, isNullable } of fieldsOf(schema)) {
    const value = values[sourceName]
    if (value !== undefined) wire[name] = isTime && typeof value === 'number' ? isoTime(value) : value
    else if (isNullable) wire[name] = null
  }
  return wire as z.output<Schema>
}

interface Field {
  name: string
  sourceName: string
  isTime: boolean
  isNullable: boolean
}

/** Cached: a page may hold hundreds of objects of one schema. */
const knownFields = new WeakMap<z.ZodObject, Field[]>()

function fieldsOf(schema: z.ZodObject): Field[] {
  const known = knownFields.get(schema)
  if (known) return known
  const fields = Object.entries(schema.shape).map(([name, field]) => ({
    name,
    sourceName: camelCased(name),
    isTime: (field instanceof z.ZodNullable ? field.unwrap() : field) instanceof z.ZodISODateTime,
    isNullable: field instanceof z.ZodNullable,
  }))
  knownFields.set(schema, fields)
  return fields
}

type Defined<Value> = {
  [Name in keyof Value as undefined extends Value[Name] ? never : Name]: DefinedWithin<Value[Name]>
} & {
  [Name in keyof Value as undefined extends Value[Name] ? Name : never]?: DefinedWithin<Exclude<Value[Name], undefined>>
}

/** JSON has no undefined: absent fields are omitted. */
type DefinedWithin<Value> = { [Name in keyof Value]: DefinedWithin<Exclude<Value[Name], undefined>> }

/** Drops undefined fields. */
export function definedFields<Value extends object>(value: Value): Defined<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Defined<Value>
}

type FromWire<Wire> = { [Name in keyof Wire as CamelCased<Name>]: Wire[Name] }

/** Contract: the result has no undefined fields. */
export function fromWire<Wire extends object>(wire: Wire): FromWire<Defined<Wire>> {
  const fields = Object.entries(definedFields(wire)).map(([name, value]) => [camelCased(name), value])
  return Object.fromEntries(fields) as FromWire<Defined<Wire>>
}

function camelCased(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}

export function isoTime(at: number): string {
  return new Date(at).toISOString()
}

export function millisecondsOf(seconds: number): number {
  return Math.round(seconds * 1000)
}
