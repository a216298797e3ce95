import { GatewayError } from '../../errors.js'
import type { Figure, FigureGroup } from '../../store/figures.js'
import { type Figures, figureSchema, figuresQuery, figuresSchema } from '../api/operation.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { backendOf, runnerName } from '../../backends/agents.js'
import { routesOf } from '../route.js'
import { definedFields, toWire } from '../wire.js'
import { callerOf } from './changes.js'
import { visibilityOf } from './visibility.js'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
const MAX_DAYS = 366

export function registerFigureRoutes(app: App, { gateway, now }: ServiceDependencies): void {
  const route = routesOf(app, 'operation')
  const { store } = gateway

  route(
    'GET /figures',
    { scope: 'read', allowsProjectTokens: true },
    'Show usage, cost and outcomes of ended runs, by day, agent or project',
    { querystring: figuresQuery, response: { 200: figuresSchema } },
    async (request) => {
      const { group, agent, project } = request.query
      const { first, last } = rangeOf(request.query, now())
      const filter = definedFields({
        visibility: await visibilityOf(callerOf(request), store),
        from: first,
        to: last + DAY_MS,
        backend: agent && backendOf(agent),
        projectId: project,
      })
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
  )
}

/** The start of the first and the last day. Contract: throws `request_invalid` for an empty or too long range. */
function rangeOf({ from, to }: { from?: string | undefined; to?: string | undefined }, now: number) {
  const last = to === undefined ? now - (now % DAY_MS) : Date.parse(to)
  const first = from === undefined ? last - (DEFAULT_DAYS - 1) * DAY_MS : Date.parse(from)
  const days = (last - first) / DAY_MS + 1
  if (first >= 0 && days >= 1 && days <= MAX_DAYS) return { first, last }
  const message = `from must be in 1970 or later and not after to, and the range at most ${MAX_DAYS} days.`
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

function figureView({ states, ...figure }: Figure, group: FigureGroup | undefined): Figures['total'] {
  return toWire(figureSchema, { ...figure, ...states, key: keyOf(figure.key, group) })
}

function keyOf(key: Figure['key'], group: FigureGroup | undefined): string | null {
  if (group === undefined || key === null) return null
  if (group === 'day') return dayOf(Number(key))
  return group === 'agent' ? runnerName(String(key)) : String(key)
}
