// Endpoints for platforms, such as Twilio's webhooks: without a token of ours, under the public URL's host name. Their
// channel verifies the platform's signature.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { PlatformEndpoint } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import type { App } from './dependencies.js'

/** Contract: each endpoint gets the body's raw bytes. */
export async function registerPlatformRoutes(
  app: App,
  endpoints: PlatformEndpoint[],
  { publicUrl }: Pick<GatewayConfig, 'publicUrl'>,
): Promise<void> {
  // A proxy in front may keep or strip the path of the public URL.
  const prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    for (const endpoint of endpoints) {
      for (const base of new Set(['', prefix])) {
        const path = `${base}${endpoint.path}`
        for (const url of [path, `${path}/*`]) {
          scope.route({
            method: endpoint.method,
            url,
            // Clients that fetch files send HEAD first.
            exposeHeadRoute: endpoint.method === 'GET',
            bodyLimit: Math.max(endpoint.maxBytes, 1),
            config: { scope: 'public', isPlatform: true },
            schema: { hide: true },
            handler: (request, reply) => answer(endpoint, path, request, reply),
          })
        }
      }
    }
  })
}

async function answer(
  endpoint: PlatformEndpoint,
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  // As sent: the signature covers the text before decoding.
  const [target = '', query = ''] = splitOnce(request.raw.url ?? '', '?')
  const {
    status,
    headers = {},
    body,
  } = await endpoint.handle({
    rest: target.slice(path.length).replace(/^\//, ''),
    query,
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
    ),
    body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
  })
  return reply.code(status).headers(headers).send(body)
}

function splitOnce(text: string, at: string): string[] {
  const index = text.indexOf(at)
  return index === -1 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}
