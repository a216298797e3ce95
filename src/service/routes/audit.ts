import { z } from 'zod'
import type { App, ServiceDependencies } from '../dependencies.js'
import { isoTime, pageQuery, timeSchema } from './schemas.js'

export const auditEntrySchema = z.object({
  at: timeSchema,
  actor: z
    .string()
    .describe('`terminal`, `gateway`, `token:` with its id and name, or the person as the channel knows them.'),
  action: z.string(),
  subject: z.string().describe('The id of what was changed.'),
  detail: z.string().nullable(),
})

export function registerAuditRoutes(app: App, { gateway }: ServiceDependencies): void {
  app.route({
    method: 'GET',
    url: '/audit',
    config: { scope: 'admin' },
    schema: {
      summary: 'Who changed what, newest first',
      tags: ['operation'],
      querystring: pageQuery,
      response: { 200: z.object({ entries: z.array(auditEntrySchema) }) },
    },
    handler: async ({ query }) => {
      const entries = await gateway.store.audit.list(query.limit)
      return { entries: entries.map((entry) => ({ ...entry, at: isoTime(entry.at), detail: entry.detail ?? null })) }
    },
  })
}
