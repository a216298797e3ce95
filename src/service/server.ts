import { GatewayError, messageOf } from '../errors.js'
import { createApp } from './app.js'
import { notesOf } from '../store/audit.js'
import { describeRights, issueToken } from './auth.js'
import type { App, ServiceDependencies } from './dependencies.js'
import { DEFAULT_LIMITS, isLoopback, type Limits } from './guards.js'
import { readTokenFile, tokenFile, writeTokenFile } from './token-file.js'

export interface HttpServer {
  /** For example `http://127.0.0.1:7433`. */
  url: string
  /** The file with the first token, if one was just created. */
  newTokenFile?: string | undefined
  /** Ends event streams, and gives other requests a moment to finish. */
  close(): Promise<void>
}

const CLOSE_MS = 2_000

/** Contract: rejects with `http_unavailable` if it cannot or must not listen; then nothing of it is left. */
export async function startHttpServer(
  dependencies: ServiceDependencies,
  limits: Limits = DEFAULT_LIMITS,
): Promise<HttpServer> {
  const { config, log } = dependencies
  const newTokenFile = await requireToken(dependencies)
  const app = await createApp(dependencies, limits)
  try {
    await app.listen({ host: config.httpHost, port: config.httpPort })
  } catch (error) {
    await app.close()
    throw explainListen(error, config)
  }
  const url = urlOf(app, config.httpHost)
  log.info('http.started', { url })
  return { url, newTokenFile, close: () => close(app) }
}

/**
 * Creates the first token. Contract: not if other machines can connect; then somebody must have created one on purpose.
 */
async function requireToken({ config, gateway, now, newId }: ServiceDependencies): Promise<string | undefined> {
  const { tokens } = gateway.store
  const earlier = readTokenFile(config.home)
  if (earlier !== undefined) gateway.scrubber.add([earlier])
  if (await tokens.hasAny(now())) return undefined
  if (!isLoopback(config.httpHost)) {
    const advice = 'Make one first with "aetheel tokens create", or leave HTTP_HOST at 127.0.0.1.'
    const message = `The HTTP API would be open to other machines at ${config.httpHost}, and there is no token. ${advice}`
    throw new GatewayError('http_unavailable', message)
  }
  const { token } = await gateway.store.transaction(async (tables) => {
    const issued = await issueToken(tables.tokens, { name: 'first', scope: 'admin' }, { now, newId })
    const about = { action: 'token.create', subject: issued.record.id, detail: describeRights(issued.record) } as const
    await notesOf('gateway', now)(tables, about)
    return issued
  })
  gateway.scrubber.add([token])
  writeTokenFile(config.home, token)
  return tokenFile(config.home)
}

async function close(app: App): Promise<void> {
  // A stalled client must not keep the gateway from stopping.
  const deadline = setTimeout(() => app.server.closeAllConnections(), CLOSE_MS)
  try {
    await app.close()
  } finally {
    clearTimeout(deadline)
  }
}

function urlOf(app: App, host: string): string {
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function explainListen(error: unknown, { httpHost, httpPort }: ServiceDependencies['config']): GatewayError {
  const address = `${httpHost}, port ${httpPort}`
  const advice = 'Set HTTP_PORT to another one, or HTTP_ENABLED=false.'
  const sentences: Partial<Record<string, string>> = {
    EADDRINUSE: `Something else listens on ${address} already. ${advice}`,
    EACCES: `This user may not listen on ${address}. ${advice}`,
    EADDRNOTAVAIL: `This machine has no address ${httpHost}. Set HTTP_HOST to one that it has.`,
    ENOTFOUND: `The name ${httpHost} is not known. Set HTTP_HOST to an address of this machine.`,
  }
  const { code = '' } = error as NodeJS.ErrnoException
  const message = sentences[code] ?? `The HTTP API cannot listen on ${address}: ${messageOf(error)}. ${advice}`
  return new GatewayError('http_unavailable', message, { cause: error })
}
