// Checks on every request before anything else, even for routes that do not exist.
//
// - Host must be one of our names. A web page whose name was made to resolve to us (DNS rebinding) sends its own name.
// - Origin must match Host. There is no CORS: other sites' pages have no business here.
// - Rate limits come before the token lookup, which costs a query.

import { isIPv6 } from 'node:net'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import type { Authenticator } from './auth.js'
import type { App, Caller } from './dependencies.js'
import { refuseUnfinished } from './errors.js'

export interface Limits {
  /** Per token. */
  requestsPerMinute: number
  /** Per address, without an existing token. */
  strangerRequestsPerMinute: number
  /** Per address, to platform endpoints: all of a platform's requests may come through one tunnel. */
  platformRequestsPerMinute: number
  /** Per address, to the dashboard's files: other requests from there must not block them. */
  dashboardRequestsPerMinute: number
  /** All tokens together. */
  openRequests: number
  /** All requests without an existing token. */
  openStrangers: number
  /** All platforms together. */
  openPlatformRequests: number
  /** Limit for receiving a body without a token. */
  strangerBodyMs: number
  openStreams: number
  openStreamsOfToken: number
  /** Interval for checking the token of an open stream again. */
  streamTokenCheckMs: number
}

export const DEFAULT_LIMITS: Limits = {
  requestsPerMinute: 3000,
  strangerRequestsPerMinute: 300,
  platformRequestsPerMinute: 3000,
  dashboardRequestsPerMinute: 3000,
  openRequests: 256,
  openStrangers: 64,
  openPlatformRequests: 64,
  strangerBodyMs: 5_000,
  openStreams: 1000,
  openStreamsOfToken: 400,
  streamTokenCheckMs: 10_000,
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]']
/** Addresses for listening on every interface; nobody can connect to them. */
export const WILDCARDS = ['0.0.0.0', '::']
const RETRY_AFTER_SECONDS = 1

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host)
}

type HostConfig = Pick<GatewayConfig, 'httpHost' | 'httpAllowedHosts' | 'publicUrl'>

/**
 * Contract: throws `host_unknown` unless the request is for one of our names, `forbidden` if a page of another origin
 * sends it. The port is checked once the server listens: before that, nobody can connect.
 */
export function checkSender(request: FastifyRequest, config: HostConfig, address: AddressInfo | string | null): void {
  const hosts = request.raw.rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host')
  if (hosts.length > 1) {
    throw new GatewayError('request_invalid', 'This request has more than one Host header. Send exactly one.')
  }
  const header = request.headers.host?.toLowerCase() ?? ''
  // Requests to a proxy have an absolute target, which takes precedence over the header.
  const target = /^[a-z]+:\/\/([^/?#]*)/i.exec(request.raw.url ?? '')?.[1]?.toLowerCase()
  const port = typeof address === 'object' && address !== null ? String(address.port) : undefined
  // A malformed path has no route and no route configuration.
  const route = request.routeOptions.config as FastifyContextConfig | undefined
  const isAllowed = (name: string): boolean =>
    (route?.isPlatform === true && isPublicHost(name, config)) ||
    isOurs(name, port, config, request.socket.localAddress)
  if (![header, target ?? header].every(isAllowed)) {
    const advice = 'Use an address it listens on, or add the name to HTTP_ALLOWED_HOSTS.'
    throw new GatewayError('host_unknown', `This gateway does not serve the host of this request. ${advice}`)
  }
  const { origin } = request.headers
  if (origin === undefined || [`http://${header}`, `https://${header}`].includes(origin.toLowerCase())) return
  throw new GatewayError(
    'forbidden',
    'Web pages from other origins cannot use this gateway. Send the request from a server.',
  )
}

function isOurs(header: string, port: string | undefined, config: HostConfig, localAddress?: string): boolean {
  const host = parseHost(header)
  if (!host) return false
  const own = [...LOOPBACK_NAMES, config.httpHost, ...(localAddress === undefined ? [] : [localAddress])]
  const names = own.filter((name) => !WILDCARDS.includes(name)).map(bracketed)
  if (names.includes(host.name) && (port === undefined || (host.port ?? '80') === port)) return true
  return config.httpAllowedHosts.some((entry) => {
    const allowed = parseHost(bracketed(entry))
    if (allowed?.name !== host.name) return false
    // A proxy in front uses the default ports.
    return allowed.port === undefined ? [undefined, '80', '443', port].includes(host.port) : allowed.port === host.port
  })
}

/** URLs omit the default port; a header may include it. */
function isPublicHost(header: string, { publicUrl }: HostConfig): boolean {
  if (publicUrl === undefined || !parseHost(header)) return false
  const { protocol, host } = new URL(publicUrl)
  return new URL(`${protocol}//${header}`).host === host
}

function parseHost(header: string): { name: string; port: string | undefined } | undefined {
  const [, name, port] = /^(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/.exec(header) ?? []
  return name === undefined ? undefined : { name, port }
}

/** The address in Host header syntax. */
function bracketed(address: string): string {
  const plain = address.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '')
  return isIPv6(plain) ? `[${plain}]` : plain
}

type OpenLimits = Pick<
  Limits,
  'openRequests' | 'openStrangers' | 'openPlatformRequests' | 'strangerBodyMs' | 'openStreams' | 'openStreamsOfToken'
>

/**
 * Counts open responses per kind, so that no kind crowds out another; above all, strangers must not crowd out tokens.
 */
export class OpenResponses {
  readonly #requests = new Set<ServerResponse>()
  readonly #strangers = new Set<ServerResponse>()
  readonly #platformRequests = new Set<ServerResponse>()
  readonly #streams = new Set<ServerResponse>()
  readonly #streamsOfTokens = new Map<string, number>()

  constructor(private readonly limits: OpenLimits) {}

  /** Contract: throws `overloaded` if too many are open. */
  admit(request: FastifyRequest, reply: FastifyReply): void {
    const { openRequests, openStrangers, openPlatformRequests, openStreams } = this.limits
    const { isStream, isPlatform } = request.routeOptions.config
    if (request.tokenHash === undefined) {
      const [open, most] = isPlatform
        ? [this.#platformRequests, openPlatformRequests]
        : [this.#strangers, openStrangers]
      if (open.size >= most) endOldestWaiting(open)
      if (open.size >= most) throw tooMany('requests', reply)
      this.#limitBodyTime(request, reply)
      return keep(open, reply)
    }
    const [open, most, what] = isStream
      ? [this.#streams, openStreams, 'event streams']
      : [this.#requests, openRequests, 'requests']
    if (open.size >= most) throw tooMany(what, reply)
    return keep(open, reply)
  }

  #limitBodyTime({ raw }: FastifyRequest, reply: FastifyReply): void {
    const timer = setTimeout(() => {
      if (!raw.complete) refuseUnfinished(raw.socket, '408 Request Timeout')
    }, this.limits.strangerBodyMs)
    reply.raw.once('close', () => clearTimeout(timer))
  }

  /** Contract: throws `overloaded` if one token has too many streams. */
  admitStreamOf({ tokenId }: Caller, reply: FastifyReply): void {
    const count = this.#streamsOfTokens.get(tokenId) ?? 0
    if (count >= this.limits.openStreamsOfToken) throw tooMany('event streams with this token', reply)
    this.#streamsOfTokens.set(tokenId, count + 1)
    reply.raw.once('close', () => {
      const left = (this.#streamsOfTokens.get(tokenId) ?? 0) - 1
      if (left > 0) this.#streamsOfTokens.set(tokenId, left)
      else this.#streamsOfTokens.delete(tokenId)
    })
  }

  /** Ends the event streams; their clients reconnect to the next gateway and continue. */
  endStreams(): void {
    for (const stream of this.#streams) endStream(stream)
  }
}

function keep(open: Set<ServerResponse>, { raw }: FastifyReply): void {
  open.add(raw)
  raw.once('close', () => open.delete(raw))
}

/** Makes room by ending the oldest response that is waiting for its client to send the rest or read the answer. */
function endOldestWaiting(open: Set<ServerResponse>): void {
  const oldest = [...open].find(({ req, writableEnded }) => !req.complete || writableEnded)
  if (!oldest) return
  open.delete(oldest)
  oldest.destroy()
}

function tooMany(what: string, reply: FastifyReply): GatewayError {
  reply.raw.setHeader('retry-after', RETRY_AFTER_SECONDS)
  return new GatewayError('overloaded', `Too many ${what} are open at once. Try again in a moment.`)
}

function endStream(stream: ServerResponse): void {
  // The writer sees the end as `close`; anything written before that has nowhere to go.
  stream.on('error', () => stream.destroy())
  stream.end()
  stream.socket?.destroySoon()
}

interface Guards {
  config: HostConfig
  authenticator: Authenticator
  open: OpenResponses
  limits: Limits
}

/** Contract: the rate-limit plugin is already registered. */
export function addGuards(app: App, { config, authenticator, open, limits }: Guards): void {
  const timeWindow = 60_000
  const limitStranger = app.createRateLimit({ max: limits.strangerRequestsPerMinute, timeWindow })
  const limitDashboard = app.createRateLimit({ max: limits.dashboardRequestsPerMinute, timeWindow })
  const limitPlatform = app.createRateLimit({ max: limits.platformRequestsPerMinute, timeWindow })
  const limitToken = app.createRateLimit({
    max: limits.requestsPerMinute,
    timeWindow,
    keyGenerator: (request) => request.tokenHash ?? '',
  })

  const limitRate = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { isPlatform, isDashboard } = request.routeOptions.config
    const limitAddress = isPlatform ? limitPlatform : isDashboard ? limitDashboard : limitStranger
    const isKnown = request.tokenHash !== undefined
    const rate = await (isKnown ? limitToken : limitAddress)(request)
    if (rate.isAllowed || !rate.isExceeded) return
    reply.raw.setHeader('retry-after', rate.ttlInSeconds)
    const sender = isKnown ? 'with this token' : 'from this address'
    throw new GatewayError('too_many', `Too many requests ${sender}. Try again in ${rate.ttlInSeconds} s.`)
  }

  /** A stream may be open for days: it ends when its token is revoked. */
  const endWithToken = (caller: Caller, stream: ServerResponse): void => {
    const timer = setInterval(() => {
      void authenticator.isStillGood(caller).then((isGood) => isGood || endStream(stream))
    }, limits.streamTokenCheckMs)
    stream.once('close', () => clearInterval(timer))
  }

  app.addHook('onRequest', async (request, reply) => {
    checkSender(request, config, app.server.address())
    const { isUnlimited, isLogin } = request.routeOptions.config
    if (!isUnlimited) {
      // An unknown token counts towards its address, or guessing with a new token each time would have no limit.
      const hash = await authenticator.knownHash(request)
      if (hash !== undefined) request.tokenHash = hash
      if (!isLogin) await limitRate(request, reply)
      open.admit(request, reply)
    }
    // Unknown routes have no scope and nothing to protect.
    if (request.is404 || request.routeOptions.config.scope === 'public') return
    const caller = await authenticator.admit(request)
    request.caller = caller
    if (!request.routeOptions.config.isStream) return
    open.admitStreamOf(caller, reply)
    endWithToken(caller, reply.raw)
  })
  // The token is in the body, so it is not known earlier.
  app.addHook('preValidation', async (request, reply) => {
    if (!request.routeOptions.config.isLogin) return
    const { token } = (request.body ?? {}) as { token?: unknown }
    const hash = typeof token === 'string' ? await authenticator.knownToken(token.trim()) : undefined
    if (hash !== undefined) request.tokenHash = hash
    await limitRate(request, reply)
  })
  app.addHook('onRoute', ({ method, url, config: routeConfig }) => {
    if (routeConfig?.scope === undefined) throw new Error(`The route ${String(method)} ${url} has no scope.`)
  })
}
