// Access and errors.

import { z } from 'zod'
import { PAGE_KEY_HEADER } from '../../core/wire-names.js'
import { ERROR_CODES, type ErrorCode } from '../../errors.js'
import { SCOPES } from '../../store/tokens.js'

export const loginBodySchema = z.strictObject({
  token: z.string().trim().max(200).describe('A token from "aetheel tokens create", or the first one.'),
})

export const codeBodySchema = z.strictObject({
  code: z.string().max(200).describe('The code in the link that "aetheel dashboard" prints. It works once.'),
})

export const meSchema = z.object({
  name: z.string().describe('The name of the token.'),
  scopes: z.array(z.enum(SCOPES)).describe('Its scope, and those that it includes.'),
  projects: z.array(z.string()).nullable().describe('The ids of the projects it is limited to; null if it is for all.'),
})
/** What a token allows. */
export type Me = z.output<typeof meSchema>

export const loginSchema = meSchema.extend({
  page_key: z
    .string()
    .describe(
      `Send it as ${PAGE_KEY_HEADER} with each request: the cookie does not work without it. Keep it in the page.`,
    ),
})
export type Login = z.output<typeof loginSchema>

export const ticketRequestSchema = z.strictObject({
  path: z
    .string()
    .regex(/^\/[^?#\s]*$/, { error: 'must be the path of a stream, such as /projects/site/commands/1/events' })
    .max(2000)
    .describe('The path of the event stream to open, without a query.'),
})

export const ticketSchema = z.object({
  ticket: z.string(),
  expires_at: z.iso.datetime(),
  url: z.string().describe('The path with the ticket, for an EventSource.'),
})
export type Ticket = z.output<typeof ticketSchema>

export const errorBodySchema = z.object({
  error: z.object({
    code: z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]]),
    message: z.string(),
    problems: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe('What is wrong with the request, field by field.'),
  }),
})
export type ErrorBody = z.output<typeof errorBodySchema>
