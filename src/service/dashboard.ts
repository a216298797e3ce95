// Serves the dashboard's built files. The dashboard uses only the API.

import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { GatewayError } from '../errors.js'
import type { App } from './dependencies.js'

/** The same path in a checkout and in the package. */
const BUILT = fileURLToPath(new URL('../../dist/web', import.meta.url))

/** Agents' text is untrusted: the page runs and loads only its own files. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data: blob:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const TYPES: Partial<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Asset names contain a hash of their content. */
const IMMUTABLE = 'public, max-age=31536000, immutable'

// No name can escape the directory.
const assetParams = z.object({ name: z.string().regex(/^[\w-]+(\.[\w-]+)+$/, 'not a valid file name') })

export function registerDashboardRoutes(app: App, directory: string = BUILT): void {
  app.route({
    method: 'GET',
    url: '/',
    config: { scope: 'public', isDashboard: true },
    schema: { hide: true },
    handler: async (request, reply) => {
      const page = await readBuilt(join(directory, 'index.html'), request)
      if (!page) return reply.code(404).type('text/plain; charset=utf-8').send(NOT_BUILT)
      reply.header('content-security-policy', PAGE_POLICY)
      return sendBuilt(reply, page, 'no-cache')
    },
  })
  app.route({
    method: 'GET',
    url: '/assets/:name',
    config: { scope: 'public', isDashboard: true },
    schema: { hide: true, params: assetParams },
    handler: async (request, reply) => {
      const asset = await readBuilt(join(directory, 'assets', request.params.name), request)
      if (asset) return sendBuilt(reply, asset, IMMUTABLE)
      throw new GatewayError('not_found', 'The dashboard has no such file. Reload the page: it may have been updated.')
    },
  })
}

const NOT_BUILT = 'The dashboard is not built yet. Run "npm run build", then reload this page.\n'

interface BuiltFile {
  type: string
  content: Buffer
  isCompressed: boolean
}

async function readBuilt(path: string, { headers }: FastifyRequest): Promise<BuiltFile | undefined> {
  const type = TYPES[extname(path)]
  if (type === undefined) return undefined
  const isCompressed = /\bgzip\b/.test(headers['accept-encoding'] ?? '')
  try {
    return { type, content: await readFile(isCompressed ? `${path}.gz` : path), isCompressed }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function sendBuilt(reply: FastifyReply, { type, content, isCompressed }: BuiltFile, caching: string): FastifyReply {
  if (isCompressed) reply.header('content-encoding', 'gzip')
  return reply.header('vary', 'accept-encoding').header('cache-control', caching).type(type).send(content)
}
