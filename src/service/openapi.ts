// The OpenAPI description, generated from the request schemas, and a reference page for people.

import swagger from '@fastify/swagger'
import { jsonSchemaTransform } from 'fastify-type-provider-zod'
import { PAGE_KEY_HEADER } from '../core/wire-names.js'
import { errorBodySchema } from './api/access.js'
import { COOKIE } from './cookie.js'
import type { App } from './dependencies.js'
import { sendHtmlPage } from './html-page.js'
import { referencePage } from './reference-page.js'

/** Contract: called before any route is registered, since the plugin collects them. */
export async function describeApi(app: App, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Aetheel',
        description: 'A self-hosted gateway for coding agents: projects, commands, conversations, event streams.',
        version,
      },
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer' },
          cookie: { type: 'apiKey', in: 'cookie', name: COOKIE },
          pageKey: { type: 'apiKey', in: 'header', name: PAGE_KEY_HEADER },
        },
      },
    },
    transform: (document) => {
      const { route } = document
      const scope = route.config?.scope
      const { response, ...schema } = document.schema ?? {}
      return jsonSchemaTransform({
        ...document,
        schema: {
          ...schema,
          security:
            scope === undefined || scope === 'public'
              ? []
              : [{ token: [scope] }, { cookie: [scope], pageKey: [scope] }],
          response: { ...(response as object | undefined), default: errorBodySchema.describe('What went wrong') },
        },
      })
    },
  })
}

export function registerDescriptionRoutes(app: App): void {
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config: { scope: 'public' },
    schema: { hide: true },
    handler: async () => app.swagger(),
  })
  app.route({
    method: 'GET',
    url: '/docs/api',
    config: { scope: 'public' },
    schema: { hide: true },
    handler: async (_request, reply) => sendHtmlPage(reply, { title: 'HTTP API', body: referencePage(app.swagger()) }),
  })
}
