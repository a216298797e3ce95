// Health, usage figures and the audit log.

import { z } from 'zod'
import { PROVIDER_NAMES } from '../../backends/agents.js'
import { FIGURE_GROUPS } from '../../store/figures.js'
import {
  givenProviderSchema,
  nameSchema,
  nextSchema,
  pageQuery,
  timedIdSchema,
  timeSchema,
  tokenCounts,
} from './values.js'

const queueCountsSchema = z.object({
  waiting: z.number(),
  active: z.number(),
  failed: z.number().describe('Dead letters.'),
})
export type QueueCounts = z.output<typeof queueCountsSchema>

export const healthSchema = z.object({
  status: z
    .enum(['healthy', 'degraded', 'unhealthy'])
    .describe('`degraded`: no agent is available; `unhealthy`: the database does not answer.'),
  agents: z.partialRecord(z.enum(PROVIDER_NAMES), z.enum(['available', 'unavailable'])),
  channels: z.array(z.string()).describe('The names of the channels it serves.'),
  store: z.object({
    engine: z.enum(['sqlite', 'postgres']),
    status: z.enum(['available', 'unavailable']),
    latency_ms: z.number().nullable(),
  }),
  queue: queueCountsSchema.nullable().describe('Null if the database does not answer.'),
})
export type Health = z.output<typeof healthSchema>

export const readySchema = z.object({ status: z.literal('ready') })

export const metricsResponse = { description: 'The metrics', content: { 'text/plain': { schema: z.string() } } }

export const auditEntrySchema = z.object({
  at: timeSchema,
  actor: z
    .string()
    .describe('`terminal`, `gateway`, `token:` with its id and name, or a person, as the channel knows them.'),
  action: z.string(),
  subject: z.string().describe('The id of what was changed.'),
  detail: z.string().nullable(),
})
export type AuditEntry = z.output<typeof auditEntrySchema>

export const auditQuery = pageQuery.extend({ before: timedIdSchema.optional() })
export type AuditQuery = z.input<typeof auditQuery>

export const auditSchema = z.object({ entries: z.array(auditEntrySchema), next: nextSchema })
export type AuditPage = z.output<typeof auditSchema>

const daySchema = z.iso.date('invalid day: use the format 2026-11-16').describe('A day in UTC.')

const percentilesSchema = z
  .object({ p50: z.number().nullable(), p95: z.number().nullable() })
  .describe('Null if there was none.')

export const figureSchema = z.object({
  key: z
    .string()
    .nullable()
    .describe('The day, the agent or the id of the project; null for no project, and in `total`.'),
  runs: z.number(),
  answered: z.number(),
  failed: z.number(),
  cancelled: z.number(),
  interrupted: z.number().describe('Runs cut off because their gateway ended.'),
  duration_ms: percentilesSchema.extend({ total: z.number() }),
  first_text_ms: percentilesSchema.describe('From the start of a run to its first text.'),
  ...tokenCounts,
  cost_usd: z.number().describe('As far as the agents reported it.'),
  priced_runs: z.number().describe('The number of runs that reported a cost.'),
  errors: z.record(z.string(), z.number()).describe('The number of runs that failed or were interrupted, by reason.'),
})

export const figuresSchema = z.object({
  from: daySchema,
  to: daySchema,
  group: z.enum(FIGURE_GROUPS),
  figures: z.array(figureSchema).describe('Only groups with runs.'),
  total: figureSchema,
})
export type Figures = z.output<typeof figuresSchema>

export const figuresQuery = z.object({
  from: daySchema.optional().describe('The first day. Default: 29 days before `to`.'),
  to: daySchema.optional().describe('The last day. Default: today.'),
  group: z.enum(FIGURE_GROUPS).default('day'),
  agent: givenProviderSchema.optional().describe('Only runs of this agent.'),
  project: nameSchema.optional().describe('Only runs of this project, by its id.'),
})
export type FiguresQuery = z.input<typeof figuresQuery>
