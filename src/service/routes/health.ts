import { within } from '../../core/async.js'
import { GatewayError } from '../../errors.js'
import type { Store } from '../../store/store.js'
import { healthSchema, metricsResponse, type QueueCounts, readySchema } from '../api/operation.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { providerOf } from '../../backends/agents.js'
import { routesOf } from '../route.js'

const STORE_TIMEOUT_MS = 2_000

export function registerHealthRoutes(app: App, { gateway, metrics }: ServiceDependencies): void {
  const route = routesOf(app, 'operation')
  const { agents, store } = gateway
  const countInTime = (): Promise<CountedQueue | undefined> =>
    within(STORE_TIMEOUT_MS, countQueue(store)).catch(() => undefined)
  let checking: Promise<boolean> | undefined

  route(
    'GET /health',
    { scope: 'read', allowsProjectTokens: true, answersWithoutStore: true },
    'Show the health of the gateway',
    { response: { 200: healthSchema, 503: healthSchema } },
    async (_, reply) => {
      const startedAt = performance.now()
      const [queue, available] = await Promise.all([countInTime(), agents.availableAgents()])
      const names = available.map((backend) => backend.name())
      const status = !queue ? 'unhealthy' : names.length === 0 ? 'degraded' : 'healthy'
      return reply.code(queue ? 200 : 503).send({
        status,
        agents: Object.fromEntries(
          agents.available().map((name) => [providerOf(name), names.includes(name) ? 'available' : 'unavailable']),
        ),
        channels: gateway.channels,
        store: {
          engine: store.engine,
          status: queue ? 'available' : 'unavailable',
          latency_ms: queue ? queue.endedAt - startedAt : null,
        },
        queue: queue?.counts ?? null,
      })
    },
  )

  route(
    'GET /ready',
    { scope: 'public', isUnlimited: true },
    'Check whether the gateway accepts commands',
    { response: { 200: readySchema } },
    async () => {
      // All concurrent requests share one query, since nothing else limits them.
      checking ??= within(STORE_TIMEOUT_MS, store.ledger.gateways())
        .then((found) => found !== undefined)
        .catch(() => false)
        .finally(() => {
          checking = undefined
        })
      if (await checking) return { status: 'ready' as const }
      throw new GatewayError('store_unavailable', 'The database does not answer. Try again later.')
    },
  )

  route(
    'GET /metrics',
    { scope: 'read', answersWithoutStore: true },
    'Get metrics for Prometheus',
    { response: { 200: metricsResponse } },
    async (_, reply) => reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
}

interface CountedQueue {
  counts: QueueCounts
  endedAt: number
}

async function countQueue(store: Store): Promise<CountedQueue> {
  const { queued, ready, active, failed } = await store.inbox.countByState()
  return { counts: { waiting: queued + ready, active, failed }, endedAt: performance.now() }
}
