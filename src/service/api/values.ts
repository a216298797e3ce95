// Values shared by several resources. Responses never omit a field: unknown values are null.

import { z } from 'zod'
import { problemOfTool } from '../../backends/engine/allowed-tool.js'
import { ACCEPTED_NAMES, PROVIDER_NAMES } from '../../backends/agents.js'

/** The body of a 204. */
export const nothingSchema = z.undefined()

/** For lookups. PostgreSQL text cannot contain NUL. */
export const nameSchema = z
  .string()
  .min(1)
  .max(100)
  .refine((name) => !name.includes('\0'), 'a name cannot contain NUL')

export const timeSchema = z.iso.datetime().describe('A time in UTC, as ISO 8601.')

export const providerSchema = z.enum(PROVIDER_NAMES).describe('An agent.')
export type Provider = z.output<typeof providerSchema>

/** An agent's name as clients may write it. */
export const givenProviderSchema = z
  .enum(ACCEPTED_NAMES, {
    error: () => `invalid agent provider: use one of ${PROVIDER_NAMES.join(', ')}`,
  })
  .describe('An agent; `claude` is the same as `claudecode`.')
export type GivenProvider = z.input<typeof givenProviderSchema>

export const runnerSchema = z.string().describe('An agent, `shell` or `git`.')

export const modelSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][\w.:/@[\]-]{0,199}$/,
    'invalid model: use only letters, digits and . _ : / @ [ ] -, beginning with a letter or digit',
  )

// Of any agent: the backend checks whether it looks like one of its own.
export const sessionIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][\w.:-]{0,127}$/, 'invalid session_id: use that of an earlier command, or omit it')

const toolSchema = z
  .string()
  .max(200)
  .refine((tool) => problemOfTool(tool) === undefined, { error: ({ input }) => problemOfTool(String(input)) })

export const toolsSchema = z
  .array(toolSchema)
  // Agents treat an empty list as no restriction.
  .min(1, 'name at least one tool, or omit the field for all that are allowed')
  .max(200)
  .describe("The tools the agent may use, by the agent's own names. A command can only use those of its project.")

const MAX_TIMEOUT_S = 86_400
const INVALID_TIMEOUT = `invalid timeout: use a number of seconds above 0 and at most ${MAX_TIMEOUT_S}`

export const timeoutSchema = z
  .number(INVALID_TIMEOUT)
  .min(0.001, INVALID_TIMEOUT)
  .max(MAX_TIMEOUT_S, INVALID_TIMEOUT)
  .describe('The time limit, in seconds. A command can only shorten that of its project.')

export const pageQuery = z.object({
  limit: z.coerce.number<number>().int().min(1).max(200).default(50).describe('The maximum number of entries.'),
})
export type PageQuery = z.input<typeof pageQuery>

export const nextSchema = z
  .string()
  .nullable()
  .describe('Pass it as `before` to get older entries; null if there are none.')

/** `next` of lists that are sorted by time and then by id. */
export const timedIdSchema = z
  .string()
  .regex(/^\d{1,15}_[\w-]{1,64}$/, 'invalid before: use `next` of the previous page')
  .describe('`next` of the previous page.')

export const submitHeaders = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, 'invalid Idempotency-Key: 1 to 200 visible ASCII characters')
    .optional()
    .describe('Requests with the same key are accepted once.'),
})

export const streamQuery = z.object({
  ticket: z.string().optional().describe('From POST /tickets, instead of a token.'),
})

export const streamResponse = { description: 'The events', content: { 'text/event-stream': { schema: z.string() } } }

export const filesSchema = z.array(z.union([z.object({ path: z.string() }), z.object({ url: z.string() })]))

export const tokenCounts = {
  input_tokens: z.number(),
  output_tokens: z.number(),
  cache_read_tokens: z.number(),
  cache_write_tokens: z.number(),
}

export const tokenUsageSchema = z.object({
  ...tokenCounts,
  reasoning_tokens: z.number(),
  total_tokens: z.number(),
})
export type Usage = z.output<typeof tokenUsageSchema>

export const usageSchema = tokenUsageSchema.nullable().describe('Null if the agent reported none.')
