import { templateListSchema, templateSchema, templateVariableSchema } from '../api/projects.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { toWire } from '../wire.js'

export function registerTemplateRoutes(app: App, { projects }: ServiceDependencies): void {
  app.route({
    method: 'GET',
    url: '/templates',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'What new projects can be made from',
      tags: ['projects'],
      response: { 200: templateListSchema },
    },
    handler: async () => {
      const templates = await projects.templates()
      return {
        templates: templates.map(({ variables, ...template }) =>
          toWire(templateSchema, {
            ...template,
            variables: variables.map((variable) => toWire(templateVariableSchema, variable)),
          }),
        ),
      }
    },
  })
}
