import { GatewayError, messageOf } from '../errors.js'
import { createApp } from './app.js'
import { issueAdminToken } from './admin-token.js'
import type { App, ServiceDependencies } from './dependencies.js'
import { DEFAULT_LIMITS, isLoopback, type Limits, WILDCARDS } from './guards.js'
import { LoginCodes } from './login-codes.js'
import { readTokenFile, tokenFile, writeTokenFile } from './token-file.js'

export interface HttpServer {
  /** For example `http://127.0.0.1:7433`. */
  url: string
  /** The file with the first token, if one was just created. */
  newTokenFile?: string | undefined
  /** A link to the dashboard that logs its browser in, once. */
  loginLink(): LoginLink
  /** Ends event streams, and gives other requests a moment to finish. */
  close(): Promise<void>
}

export interface LoginLink {
  url: string
  expiresAt: number
}

const CLOSE_MS = 2_000

/** Contract: rejects with `http_unavailable` if it cannot or must not listen, and then leaves nothing behind. */
export async function startHttpServer(
  dependencies: ServiceDependencies,
  limits: Limits = DEFAULT_LIMITS,
): Promise<HttpServer> {
  const { config, log } = dependencies
  const newTokenFile = await requireToken(dependencies)
  const codes = new LoginCodes(dependencies.now)
  const app = await createApp(dependencies, limits, codes)
  try {
    await app.listen({ host: config.httpHost, port: config.httpPort })
  } catch (error) {
    await app.close()
    throw explainListen(error, config)
  }
  const url = urlOf(app, config.httpHost)
  log.info('http.started', { url })
  const page = WILDCARDS.includes(config.httpHost) ? urlOf(app, '127.0.0.1') : url
  const loginLink = (): LoginLink => {
    const { code, expiresAt } = codes.issue()
    return { url: `${page}/#/login?code=${code}`, expiresAt }
  }
  return { url, newTokenFile, loginLink, close: () => close(app) }
}

/**
 * Creates the first token. Contract: not if other machines can connect; then an operator must create one on purpose.
 */
async function requireToken(dependencies: ServiceDependencies): Promise<string | undefined> {
  const { config, gateway, now } = dependencies
  const { tokens } = gateway.store
  const earlier = readTokenFile(config.home)
  if (earlier !== undefined) gateway.scrubber.add([earlier])
  if (await tokens.hasAny(now())) return undefined
  if (!isLoopback(config.httpHost)) {
    const advice = 'Create one first with "aetheel tokens create", or set HTTP_HOST=127.0.0.1.'
    const message = `HTTP_HOST=${config.httpHost} opens the HTTP API to other machines, but there is no token. ${advice}`
    throw new GatewayError('http_unavailable', message)
  }
  const token = await issueAdminToken(dependencies, 'first')
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
  const address = `port ${httpPort} of ${httpHost}`
  const advice = 'Set HTTP_PORT to another port, or set HTTP_ENABLED=false.'
  const sentences: Partial<Record<string, string>> = {
    EADDRINUSE: `Another program already listens on ${address}. ${advice}`,
    EACCES: `This user may not listen on ${address}. ${advice}`,
    EADDRNOTAVAIL: `This machine has no address ${httpHost}. Set HTTP_HOST to one of its addresses.`,
    ENOTFOUND: `The host name ${httpHost} cannot be resolved. Set HTTP_HOST to an address of this machine.`,
  }
  const { code = '' } = error as NodeJS.ErrnoException
  const message = sentences[code] ?? `The HTTP API cannot listen on ${address}: ${messageOf(error)}. ${advice}`
  return new GatewayError('http_unavailable', message, { cause: error })
}
