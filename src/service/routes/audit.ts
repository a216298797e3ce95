import { auditEntrySchema, auditSchema } from '../api/operation.js'
import { pageQuery } from '../api/values.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { toWire } from '../wire.js'

export function registerAuditRoutes(app: App, { gateway }: ServiceDependencies): void {
  app.route({
    method: 'GET',
    url: '/audit',
    config: { scope: 'admin' },
    schema: {
      summary: 'Who changed what, newest first',
      tags: ['operation'],
      querystring: pageQuery,
      response: { 200: auditSchema },
    },
    handler: async ({ query }) => {
      const entries = await gateway.store.audit.list(query.limit)
      return { entries: entries.map((entry) => toWire(auditEntrySchema, entry)) }
    },
  })
}
