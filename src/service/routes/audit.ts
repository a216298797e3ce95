import { auditEntrySchema, auditSchema } from '../api/operation.js'
import { pageQuery } from '../api/values.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'

export function registerAuditRoutes(app: App, { gateway }: ServiceDependencies): void {
  const route = routesOf(app, 'operation')
  route(
    'GET /audit',
    { scope: 'admin' },
    'Who changed what, newest first',
    { querystring: pageQuery, response: { 200: auditSchema } },
    async ({ query }) => {
      const entries = await gateway.store.audit.list(query.limit)
      return { entries: entries.map((entry) => toWire(auditEntrySchema, entry)) }
    },
  )
}
