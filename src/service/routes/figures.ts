import { z } from 'zod'
import { GatewayError } from '../../errors.js'
import { type Figure, FIGURE_GROUPS, type FigureGroup } from '../../store/figures.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { backendOf } from '../../backends/engine/backend-names.js'
import { runnerName } from '../../backends/engine/provider-names.js'
import { callerOf } from './changes.js'
import { givenProviderSchema, nameSchema } from './schemas.js'
import { sightOf } from './sight.js'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
const MOST_DAYS = 366

const daySchema = z.iso.date('invalid day: write it as 2026-11-16').describe('A day in UTC.')

const percentilesSchema = z
  .object({ p50: z.number().nullable(), p95: z.number().nullable() })
  .describe('Null when there was none.')

const figureSchema = z.object({
  key: z.string().nullable().describe('The day, the agent, or the id of the project: null for none.'),
  runs: z.number(),
  answered: z.number(),
  failed: z.number(),
  cancelled: z.number(),
  interrupted: z.number().describe('Cut off by the end of a gateway.'),
  duration_ms: percentilesSchema.extend({ total: z.number() }),
  first_text_ms: percentilesSchema.describe('From the beginning of a run to its first text.'),
  input_tokens: z.number(),
  output_tokens: z.number(),
  cache_read_tokens: z.number(),
  cache_write_tokens: z.number(),
  cost_usd: z.number().describe('As far as the agents told.'),
  priced_runs: z.number().describe('How many of the runs have told their cost.'),
  errors: z.record(z.string(), z.number()).describe('How many failed or were cut off, by their reason.'),
})

export const figuresSchema = z.object({
  from: daySchema,
  to: daySchema,
  group: z.enum(FIGURE_GROUPS),
  figures: z.array(figureSchema).describe('Only where there were runs.'),
  total: figureSchema,
})

export function registerFigureRoutes(app: App, { gateway, now }: ServiceDependencies): void {
  const { store } = gateway

  app.route({
    method: 'GET',
    url: '/figures',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'What runs that have ended took and came to, by day, agent or project',
      tags: ['operation'],
      querystring: z.object({
        from: daySchema.optional().describe('The first day; left out, 29 days before the last.'),
        to: daySchema.optional().describe('The last day; left out, today.'),
        group: z.enum(FIGURE_GROUPS).default('day'),
        agent: givenProviderSchema.optional().describe('Of this agent alone.'),
        project: nameSchema.optional().describe('Of this project alone.'),
      }),
      response: { 200: figuresSchema },
    },
    handler: async (request) => {
      const { group, agent, project } = request.query
      const { first, last } = rangeOf(request.query, now())
      const filter = {
        sight: await sightOf(callerOf(request), store),
        from: first,
        to: last + DAY_MS,
        ...(agent !== undefined && { backend: backendOf(agent) }),
        ...(project !== undefined && { projectId: project }),
      }
      const figures = await store.figures.of(group, filter)
      const [total = NOTHING] = await store.figures.of(undefined, filter)
      return {
        from: dayOf(first),
        to: dayOf(last),
        group,
        figures: figures.map((figure) => figureView(figure, group)),
        total: figureView(total, undefined),
      }
    },
  })
}

/** The beginnings of the first and the last day. Contract: throws `request_invalid` for too many, or none. */
function rangeOf({ from, to }: { from?: string | undefined; to?: string | undefined }, now: number) {
  const last = to === undefined ? now - (now % DAY_MS) : Date.parse(to)
  const first = from === undefined ? last - (DEFAULT_DAYS - 1) * DAY_MS : Date.parse(from)
  const days = (last - first) / DAY_MS + 1
  if (first >= 0 && days >= 1 && days <= MOST_DAYS) return { first, last }
  const message = `from must not be before 1970 nor after to, and there may be ${MOST_DAYS} days at most.`
  throw new GatewayError('request_invalid', message)
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

const NOTHING: Figure = {
  key: null,
  runs: 0,
  states: { answered: 0, failed: 0, cancelled: 0, interrupted: 0 },
  durationMs: { p50: null, p95: null, total: 0 },
  firstTextMs: { p50: null, p95: null },
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0,
  pricedRuns: 0,
  errors: {},
}

function figureView(
  { key, runs, states, durationMs, firstTextMs, errors, ...figure }: Figure,
  group: FigureGroup | undefined,
): z.output<typeof figureSchema> {
  return {
    key: keyOf(key, group),
    runs,
    ...states,
    duration_ms: durationMs,
    first_text_ms: firstTextMs,
    input_tokens: figure.inputTokens,
    output_tokens: figure.outputTokens,
    cache_read_tokens: figure.cacheReadTokens,
    cache_write_tokens: figure.cacheWriteTokens,
    cost_usd: figure.costUsd,
    priced_runs: figure.pricedRuns,
    errors,
  }
}

function keyOf(key: Figure['key'], group: FigureGroup | undefined): string | null {
  if (group === undefined || key === null) return null
  if (group === 'day') return dayOf(Number(key))
  return group === 'agent' ? runnerName(String(key)) : String(key)
}
