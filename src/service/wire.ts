// The step between values as they are inside and as they go over the wire: there names are in snake_case, times are ISO
// 8601 and what is not known is null; here names are in camelCase, times are milliseconds and what is not known is
// absent. Only the fields of the object itself are translated: what they hold may have keys that are not ours.

import { z } from 'zod'

type CamelCased<Name> = Name extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<CamelCased<Rest>>}` : Name

type Inside<Name, Value> = Name extends 'at' | `${string}_at` ? (Value extends string ? number : Value) : Value

/** What an object on the wire is made from. */
type WireSource<Wire> = {
  [Name in keyof Wire as Wire[Name] extends NonNullable<Wire[Name]> ? CamelCased<Name> : never]: Inside<
    Name,
    Wire[Name]
  >
} & {
  [Name in keyof Wire as Wire[Name] extends NonNullable<Wire[Name]> ? never : CamelCased<Name>]?:
    | Inside<Name, Wire[Name]>
    | undefined
}

/** Contract: has the fields of the schema and no others; one that is not known is null, or left out where it cannot be. */
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

/** Kept: a page may hold hundreds of objects of one schema. */
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

type Given<Value> = {
  [Name in keyof Value as undefined extends Value[Name] ? never : Name]: GivenWithin<Value[Name]>
} & {
  [Name in keyof Value as undefined extends Value[Name] ? Name : never]?: GivenWithin<Exclude<Value[Name], undefined>>
}

/** JSON has no undefined: what is not given is not there. */
type GivenWithin<Value> = { [Name in keyof Value]: GivenWithin<Exclude<Value[Name], undefined>> }

/** Without the fields that are undefined. */
export function given<Value extends object>(value: Value): Given<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Given<Value>
}

type FromWire<Wire> = { [Name in keyof Wire as CamelCased<Name>]: Wire[Name] }

/** Contract: has no fields that are undefined. */
export function fromWire<Wire extends object>(wire: Wire): FromWire<Given<Wire>> {
  const fields = Object.entries(given(wire)).map(([name, value]) => [camelCased(name), value])
  return Object.fromEntries(fields) as FromWire<Given<Wire>>
}

function camelCased(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** Milliseconds since the epoch as people and other programs read them. */
export function isoTime(at: number): string {
  return new Date(at).toISOString()
}

export function millisecondsOf(seconds: number): number {
  return Math.round(seconds * 1000)
}
