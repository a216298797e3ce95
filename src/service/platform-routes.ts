// What platforms call, such as Twilio's webhooks: without a token of ours, under the name of the public URL. Whether a
// request really comes from the platform, its channel finds out by what it signs.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { PlatformEndpoint } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import type { App } from './dependencies.js'

/** Contract: each body comes to its endpoint as the bytes that were sent. */
export async function registerPlatformRoutes(
  app: App,
  endpoints: PlatformEndpoint[],
  { publicUrl }: Pick<GatewayConfig, 'publicUrl'>,
): Promise<void> {
  // A proxy in front may leave the path of the public URL in, or take it away.
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
            // Those who fetch files ask first what they are.
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
  // As it was sent: what is signed is not what is left of it after decoding.
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
  const place = text.indexOf(at)
  return place === -1 ? [text] : [text.slice(0, place), text.slice(place + 1)]
}
