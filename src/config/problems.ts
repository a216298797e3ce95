// Turns zod issues of a configuration into sentences, one per problem.

import { z } from 'zod'
import { nearestKey } from './nearest-key.js'

type Issue = z.core.$ZodIssue
type Path = PropertyKey[]

/** Nobody reads more than this; probably the wrong file was named. */
const MAX_PROBLEMS = 100
const MAX_QUOTE_CHARACTERS = 80

/** `placeOf` names the file or variable that a path comes from. */
export function describeProblems(
  schema: z.ZodType,
  issues: Issue[],
  placeOf: (path: Path) => string,
  /** What replaced a removed key. */
  replacedBy: (path: Path) => string | undefined,
): string[] {
  const single = issues.flatMap((issue) => separate(issue))
  const shown = single
    .slice(0, MAX_PROBLEMS)
    .map((issue) => `${placeOf(issue.path)}: ${describe(issue, schema, replacedBy)}`)
  const more = single.length - shown.length
  return [...new Set(shown), ...(more > 0 ? [`… and ${more} more problems`] : [])]
}

/** Messages for issues that have none in the schema. */
export function sentenceOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type': {
      if (issue.input === undefined) return 'is missing'
      const problem = `must be ${KINDS[issue.expected] ?? issue.expected}`
      // Where a string or a list is expected, the value may be a secret.
      return issue.expected === 'boolean' ? `${problem}, not ${quote(issue.input)}` : problem
    }
    case 'invalid_value': {
      const known = issue.values.join(', ')
      return `must be one of ${known}, not ${quote(issue.input)}${didYouMean(issue.input, issue.values)}`
    }
    case 'too_small':
      return issue.origin === 'array' ? 'must have at least one entry' : 'must not be empty'
    case 'invalid_key':
      return issue.issues[0]?.message
    default:
      return undefined
  }
}

/** Ends a sentence; empty if nothing known is close. */
export function didYouMean(value: unknown, known: readonly unknown[]): string {
  const names = known.filter((name): name is string => typeof name === 'string')
  const meant = typeof value === 'string' ? nearestKey(value, names) : undefined
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}

/** What is wrong with one value; undefined if nothing is. */
export function problemOf(schema: z.ZodType, value: unknown): string | undefined {
  return schema.safeParse(value, { error: sentenceOf }).error?.issues[0]?.message
}

const KINDS: Partial<Record<string, string>> = {
  string: 'a string',
  array: 'a list',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
}

/** As in code: `hooks[1].on[0]`. */
export function dotted(path: Path): string {
  return path
    .map((segment, index) => {
      if (typeof segment === 'number') return `[${segment}]`
      const key = String(segment)
      if (!/^[\w$-]{1,80}$/.test(key)) return `[${quote(key)}]`
      return index === 0 ? key : `.${key}`
    })
    .join('')
}

/** The value as quoted in a sentence. */
export function quote(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value !== 'string') return String(value)
  return JSON.stringify(value.length <= MAX_QUOTE_CHARACTERS ? value : `${value.slice(0, MAX_QUOTE_CHARACTERS)}…`)
}

/** One issue per problem, with its full path. */
function separate(issue: Issue, parent: Path = []): Issue[] {
  const path = [...parent, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ ...issue, path: [...path, key], keys: [key] }))
  }
  // Report against the union member that the value matches best.
  const meant = issue.code === 'invalid_union' && issue.errors.find((errors) => errors.some((e) => e.path.length > 0))
  if (meant) return meant.flatMap((inner) => separate(inner, path))
  return [{ ...issue, path }]
}

function describe(issue: Issue, schema: z.ZodType, replacedBy: (path: Path) => string | undefined): string {
  if (issue.code !== 'unrecognized_keys') return issue.message
  const replaced = replacedBy(issue.path)
  if (replaced !== undefined) return replaced
  const known = keysAt(schema, issue.path.slice(0, -1))
  const meant = nearestKey(String(issue.path.at(-1)), known)
  return meant === undefined ? `unknown key. Known: ${known.join(', ')}` : `unknown key; did you mean "${meant}"?`
}

/** The keys of the object at a path. */
function keysAt(schema: z.core.$ZodType, path: Path): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional || schema instanceof z.ZodDefault) {
    return keysAt(schema.def.innerType, path)
  }
  const [segment, ...rest] = path
  if (schema instanceof z.ZodArray) return keysAt(schema.def.element, rest)
  if (schema instanceof z.ZodRecord) return keysAt(schema.def.valueType, rest)
  if (!(schema instanceof z.ZodObject)) return []
  if (segment === undefined) return Object.keys(schema.shape)
  const inner = (schema.shape as Record<PropertyKey, z.core.$ZodType>)[segment]
  return inner === undefined ? [] : keysAt(inner, rest)
}
