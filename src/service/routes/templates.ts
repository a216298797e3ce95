import { z } from 'zod'
import type { App, ServiceDependencies } from '../dependencies.js'

export const templateSchema = z.object({
  name: z.string(),
  description: z.string(),
  is_built_in: z.boolean(),
  variables: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      default: z.string().nullable(),
      pattern: z.string().nullable().describe('A regular expression that the whole value must match.'),
    }),
  ),
})

export function registerTemplateRoutes(app: App, { projects }: ServiceDependencies): void {
  app.route({
    method: 'GET',
    url: '/templates',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'What new projects can be made from',
      tags: ['projects'],
      response: { 200: z.object({ templates: z.array(templateSchema) }) },
    },
    handler: async () => {
      const templates = await projects.templates()
      return {
        templates: templates.map(({ name, description, isBuiltIn, variables }) => ({
          name,
          description,
          is_built_in: isBuiltIn,
          variables: variables.map((variable) => ({
            name: variable.name,
            description: variable.description,
            default: variable.default ?? null,
            pattern: variable.pattern ?? null,
          })),
        })),
      }
    },
  })
}
