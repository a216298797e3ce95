import { z } from 'zod'
import { SCOPES } from '../../store/tokens.js'
import { nameSchema, timeSchema } from './values.js'

const scopeSchema = z.enum(SCOPES).describe('What the token allows. Each scope includes those before it.')

export const tokenSchema = z.object({
  id: z.string(),
  name: z.string(),
  scope: scopeSchema,
  projects: z.array(z.string()).nullable().describe('The ids of the projects it is limited to; null if it is for all.'),
  created_at: timeSchema,
  expires_at: timeSchema.nullable(),
  last_used_at: timeSchema.nullable().describe('Accurate to the minute.'),
  is_current: z.boolean().describe('Whether this request uses it.'),
})
/** A token, without its value. */
export type Token = z.output<typeof tokenSchema>

export const tokenListSchema = z.object({ tokens: z.array(tokenSchema) })
export type TokenList = z.output<typeof tokenListSchema>

export const newTokenSchema = z.strictObject({
  name: nameSchema.describe('Shown in lists and in the audit log.'),
  scope: scopeSchema.default('run'),
  projects: z
    .array(nameSchema)
    .min(1)
    .max(200)
    .optional()
    .describe('The ids of the projects to limit it to. Default: all projects.'),
  days: z.number().int().min(1).max(3650).optional().describe('How long it is valid. By default, it never expires.'),
})
export type NewToken = z.input<typeof newTokenSchema>

export const createdTokenSchema = tokenSchema.extend({
  token: z.string().describe('Its value. Only this response shows it.'),
})
export type CreatedToken = z.output<typeof createdTokenSchema>

export const tokenParams = z.object({ id: z.uuid().describe('The id of the token.') })
