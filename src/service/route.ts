import type { IncomingMessage, ServerResponse } from 'node:http'
import type {
  FastifyContextConfig,
  FastifySchema,
  RawServerDefault,
  RouteGenericInterface,
  RouteHandlerMethod,
} from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { App } from './dependencies.js'

type Handler<Schema extends FastifySchema> = RouteHandlerMethod<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  RouteGenericInterface,
  unknown,
  Schema,
  ZodTypeProvider
>

/** Adds a route: `GET /queue`, who may use it, what it does in a sentence, the schemas, the handler. */
export type AddRoute = <const Schema extends FastifySchema>(
  name: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`,
  config: FastifyContextConfig,
  summary: string,
  schema: Schema,
  handler: Handler<Schema>,
) => void

/** `tag` is the group of the routes in the API's description. */
export function routesOf(app: App, tag: string): AddRoute {
  return (name, config, summary, schema, handler) => {
    const [method = '', url = ''] = name.split(' ')
    const described: FastifySchema = { summary, tags: [tag], ...schema }
    // The handler sees what `schema` lets through, which its type says and fastify's own cannot.
    app.route({ method, url, config, schema: described, handler: handler as Handler<FastifySchema> })
  }
}
