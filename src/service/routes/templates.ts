import { templateListSchema, templateSchema, templateVariableSchema } from '../api/projects.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'

export function registerTemplateRoutes(app: App, { projects }: ServiceDependencies): void {
  const route = routesOf(app, 'projects')
  route(
    'GET /templates',
    { scope: 'read', allowsProjectTokens: true },
    'List the templates for new projects',
    { response: { 200: templateListSchema } },
    async () => {
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
  )
}
