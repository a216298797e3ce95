// Schemas of single settings.

import { z } from 'zod'
import { problemOfTool } from '../backends/engine/allowed-tool.js'
import { ACCEPTED_NAMES, backendOf } from '../backends/agents.js'
import { BACKEND_NAMES } from '../backends/types.js'
import { DEMO } from '../core/demo-agent.js'
import { didYouMean, quote } from './problems.js'

/** Lets an object-level rule run even if there are mistakes inside it, so that all are reported at once. */
export function isObject({ value }: { value: unknown }): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export const text = () => z.string().min(1)

/** The agent that answers. */
export const answeringBackend = () =>
  z.union([backend(), z.literal(DEMO)], { error: unknownBackend([...BACKEND_NAMES, DEMO]) })

export const backend = () => z.enum(ACCEPTED_NAMES, { error: unknownBackend(BACKEND_NAMES) }).transform(backendOf)

function unknownBackend(known: readonly string[]) {
  return ({ input }: { input?: unknown }): string | undefined => {
    if (typeof input !== 'string') return undefined
    return `Unknown backend ${quote(input)}. Known: ${known.join(', ')}${didYouMean(input, known)}`
  }
}

export const list = () =>
  z.union([z.array(z.string()), z.string().transform(splitList)], { error: 'must be a string or a list of strings' })

export const tools = () =>
  list().superRefine((names, { addIssue }) => {
    for (const [index, name] of names.entries()) {
      const message = problemOfTool(name)
      if (message !== undefined) addIssue({ code: 'custom', message, path: [index] })
    }
  })

/** One message for all bounds, so that a value that breaks two is one problem. */
export function whole(minimum: number, maximum?: number) {
  const range = maximum === undefined ? `, ${minimum} or more` : ` from ${minimum} to ${maximum}`
  const options: { error: z.core.$ZodErrorMap } = {
    error: ({ input }) => `must be a whole number${range}, not ${quote(input)}`,
  }
  return z
    .int(options)
    .min(minimum, options)
    .max(maximum ?? Number.MAX_SAFE_INTEGER, options)
}

/** An executable and its arguments. */
export const argv = () =>
  z
    .array(z.string())
    .min(1)
    .refine(([executable]) => executable !== '', { path: [0], error: 'must name an executable' })

/** The address of a server, without a trailing slash. */
export const serverUrl = (example: string) =>
  text()
    .refine(isServerUrl, { error: `must be a URL such as ${example}, without user, query or fragment` })
    .transform((url) => url.replace(/\/+$/, ''))

export function isServerUrl(url: string): boolean {
  return /^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/i.test(url) && URL.canParse(url)
}

/** Also accepts one string, with commas between the items. */
export function listOf(items: z.ZodArray<z.ZodString>, error: string | z.core.$ZodErrorMap) {
  return z.union([items, z.string().transform(splitList).pipe(items)], { error })
}

/** Splits at commas, except inside a rule such as `Bash(git log,git show)`. */
export function splitList(text: string): string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** E.164, with an optional `whatsapp:` prefix. */
export const phoneNumber = () =>
  z
    .string()
    .regex(/^(whatsapp:)?\+[1-9]\d{6,14}$/, {
      error: ({ input }) => `${quote(input)} is not a phone number in international format, such as +4915112345678`,
    })
    .transform((number) => number.replace(/^whatsapp:/, ''))
