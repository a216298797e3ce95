import { auditEntrySchema, auditQuery, auditSchema } from '../api/operation.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'

export function registerAuditRoutes(app: App, { gateway }: ServiceDependencies): void {
  const route = routesOf(app, 'operation')
  route(
    'GET /audit',
    { scope: 'admin' },
    'List who changed what, newest first',
    { querystring: auditQuery, response: { 200: auditSchema } },
    async ({ query: { limit, before } }) => {
      const [at, id = ''] = before?.split('_') ?? []
      const found = await gateway.store.audit.list(limit + 1, at === undefined ? undefined : { at: Number(at), id })
      const entries = found.slice(0, limit)
      const last = entries.at(-1)
      return {
        entries: entries.map((entry) => toWire(auditEntrySchema, entry)),
        next: last && found.length > limit ? `${last.at}_${last.id}` : null,
      }
    },
  )
}
