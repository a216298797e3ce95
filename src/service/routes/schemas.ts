// Shapes that several routes share. What a client reads is never left out: what is not known is null.

import { z } from 'zod'
import { problemOfTool } from '../../backends/engine/allowed-tool.js'
import type { TokenUsage } from '../../backends/types.js'
import type { Scrubber } from '../../credentials/scrubber.js'
import { projectUsage } from '../event-projection.js'
import { ACCEPTED_NAMES } from '../../backends/engine/backend-names.js'
import { PROVIDER_NAMES } from '../../backends/engine/provider-names.js'

/** Of something that is looked up. PostgreSQL has no text with NUL. */
export const nameSchema = z
  .string()
  .min(1)
  .max(100)
  .refine((name) => !name.includes('\0'), 'a name cannot hold NUL')

export const projectParams = z.object({ id: nameSchema.describe('The id of the project.') })

/** Milliseconds since the epoch as people and other programs read them. */
export function isoTime(at: number): string {
  return new Date(at).toISOString()
}

/** Enough to recognise a message by. */
const BEGINNING_CHARACTERS = 400

/** Contract: no secret is cut in two, of which the first part would be told. */
export function beginningOf(text: string, scrubber: Pick<Scrubber, 'find'>): string {
  if (text.length < BEGINNING_CHARACTERS) return text
  const beginning = text.slice(0, BEGINNING_CHARACTERS)
  return beginning.slice(0, scrubber.find(beginning).openAt)
}

export const timeSchema = z.iso.datetime().describe('A time in UTC, as ISO 8601.')

export const providerSchema = z.enum(PROVIDER_NAMES).describe('An agent.')

/** As a client names an agent. */
export const givenProviderSchema = z
  .enum(ACCEPTED_NAMES, {
    error: () => `invalid agent provider: use one of ${PROVIDER_NAMES.join(', ')}`,
  })
  .describe('An agent; `claude` is the same as `claudecode`.')

export const modelSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][\w.:/@[\]-]{0,199}$/,
    'invalid model: a letter or a digit, then letters, digits and . _ : / @ [ ] - alone',
  )

const toolSchema = z
  .string()
  .max(200)
  .refine((tool) => problemOfTool(tool) === undefined, { error: ({ input }) => problemOfTool(String(input)) })

export const toolsSchema = z
  .array(toolSchema)
  // Agents take a list of none for no restriction.
  .min(1, 'name at least one tool; leave it out for all that are allowed')
  .max(200)
  .describe("The agent's own names of the tools it may use. A request chooses among those of its project.")

const LONGEST_TIMEOUT_S = 86_400
const INVALID_TIMEOUT = `invalid timeout: a number of seconds above 0 and up to ${LONGEST_TIMEOUT_S}`

export const timeoutSchema = z
  .number(INVALID_TIMEOUT)
  .min(0.001, INVALID_TIMEOUT)
  .max(LONGEST_TIMEOUT_S, INVALID_TIMEOUT)
  .describe('The longest that it may take, in seconds. A request shortens that of its project.')

export function millisecondsOf(seconds: number): number {
  return Math.round(seconds * 1000)
}

export const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('How many at most.'),
})

export const usageSchema = z
  .object({
    input_tokens: z.number(),
    output_tokens: z.number(),
    cache_read_tokens: z.number(),
    cache_write_tokens: z.number(),
    reasoning_tokens: z.number(),
    total_tokens: z.number(),
  })
  .nullable()
  .describe('Null when the agent told nothing.')

export function usageView(usage: TokenUsage | undefined): z.output<typeof usageSchema> {
  return usage ? projectUsage(usage) : null
}
