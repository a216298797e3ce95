// What every request meets before anything is done for it, whatever its route: also one that does not exist.
//
// - Host is checked against names that are ours. A web page whose name was made to point here (DNS rebinding) sends its
//   own name.
// - Origin is checked against Host, after that. There is no CORS: pages of others have no business here.
// - Limits come before the look at the token, which costs a query.

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
  /** Of one token. */
  requestsPerMinute: number
  /** Of one address, without a token that there is. */
  strangerRequestsPerMinute: number
  /** Of one address, to what platforms call: all of theirs may come by one tunnel. */
  platformRequestsPerMinute: number
  /** Of one address, to the files of the dashboard: what else comes from there must not keep them back. */
  dashboardRequestsPerMinute: number
  /** Of all tokens together. */
  openRequests: number
  /** Of all who have no token that there is. */
  openStrangers: number
  /** Of all platforms. */
  openPlatformRequests: number
  /** In which a body must have come, but for those who have a token. */
  strangerBodyMs: number
  openStreams: number
  openStreamsOfToken: number
  /** How often the token of an open stream is looked up again, in milliseconds. */
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
const WILDCARDS = ['0.0.0.0', '::']
const RETRY_AFTER_SECONDS = 1

/** Whether nobody but this machine reaches an address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host)
}

type HostConfig = Pick<GatewayConfig, 'httpHost' | 'httpAllowedHosts' | 'publicUrl'>

/**
 * Contract: throws `host_unknown` unless the request is for a name of ours, `forbidden` when a page of another origin
 * sends it. The port is looked at once the server listens: before, nobody can connect.
 */
export function checkSender(request: FastifyRequest, config: HostConfig, address: AddressInfo | string | null): void {
  const hosts = request.raw.rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host')
  if (hosts.length > 1) {
    throw new GatewayError('request_invalid', 'This request has more than one Host header. Send it with one.')
  }
  const header = request.headers.host?.toLowerCase() ?? ''
  // As requests to a proxy have it; it counts more than the header.
  const target = /^[a-z]+:\/\/([^/?#]*)/i.exec(request.raw.url ?? '')?.[1]?.toLowerCase()
  const port = typeof address === 'object' && address !== null ? String(address.port) : undefined
  // Of a path that cannot be read there is no route, and no configuration of one.
  const route = request.routeOptions.config as FastifyContextConfig | undefined
  const isAllowed = (name: string): boolean =>
    (route?.isPlatform === true && isPublicHost(name, config)) ||
    isOurs(name, port, config, request.socket.localAddress)
  if (![header, target ?? header].every(isAllowed)) {
    const advice = 'Use an address that it listens on, or add the name to HTTP_ALLOWED_HOSTS.'
    throw new GatewayError('host_unknown', `This gateway does not answer for the host of this request. ${advice}`)
  }
  const { origin } = request.headers
  if (origin === undefined || [`http://${header}`, `https://${header}`].includes(origin.toLowerCase())) return
  throw new GatewayError('forbidden', 'Web pages of other origins may not use this gateway. Ask it from a server.')
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
    // A proxy in front has the ports that everybody leaves out.
    return allowed.port === undefined ? [undefined, '80', '443', port].includes(host.port) : allowed.port === host.port
  })
}

/** Names in a URL leave the usual port out; in a header it may stand. */
function isPublicHost(header: string, { publicUrl }: HostConfig): boolean {
  if (publicUrl === undefined || !parseHost(header)) return false
  const { protocol, host } = new URL(publicUrl)
  return new URL(`${protocol}//${header}`).host === host
}

function parseHost(header: string): { name: string; port: string | undefined } | undefined {
  const [, name, port] = /^(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/.exec(header) ?? []
  return name === undefined ? undefined : { name, port }
}

/** As an address stands in a Host header. */
function bracketed(address: string): string {
  const plain = address.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '')
  return isIPv6(plain) ? `[${plain}]` : plain
}

type OpenLimits = Pick<
  Limits,
  'openRequests' | 'openStrangers' | 'openPlatformRequests' | 'strangerBodyMs' | 'openStreams' | 'openStreamsOfToken'
>

/** How many are open, each kind for itself, so that none crowds out another: least of all strangers those with a token. */
export class OpenResponses {
  readonly #requests = new Set<ServerResponse>()
  readonly #strangers = new Set<ServerResponse>()
  readonly #platformRequests = new Set<ServerResponse>()
  readonly #streams = new Set<ServerResponse>()
  readonly #streamsOfTokens = new Map<string, number>()

  constructor(private readonly limits: OpenLimits) {}

  /** Contract: throws `overloaded` when there are too many already. */
  admit(request: FastifyRequest, reply: FastifyReply): void {
    const { openRequests, openStrangers, openPlatformRequests, openStreams } = this.limits
    const { isStream, isPlatform } = request.routeOptions.config
    if (request.tokenHash === undefined) {
      const [open, most] = isPlatform
        ? [this.#platformRequests, openPlatformRequests]
        : [this.#strangers, openStrangers]
      if (open.size >= most) endOneThatWaits(open)
      if (open.size >= most) throw tooMany('requests', reply)
      this.#hurry(request, reply)
      return keep(open, reply)
    }
    const [open, most, what] = isStream
      ? [this.#streams, openStreams, 'event streams']
      : [this.#requests, openRequests, 'requests']
    if (open.size >= most) throw tooMany(what, reply)
    return keep(open, reply)
  }

  #hurry({ raw }: FastifyRequest, reply: FastifyReply): void {
    const timer = setTimeout(() => {
      if (!raw.complete) refuseUnfinished(raw.socket, '408 Request Timeout')
    }, this.limits.strangerBodyMs)
    reply.raw.once('close', () => clearTimeout(timer))
  }

  /** Contract: throws `overloaded` when all streams would be those of one token. */
  admitStreamOf({ tokenId }: Caller, reply: FastifyReply): void {
    const count = this.#streamsOfTokens.get(tokenId) ?? 0
    if (count >= this.limits.openStreamsOfToken) throw tooMany('event streams of this token', reply)
    this.#streamsOfTokens.set(tokenId, count + 1)
    reply.raw.once('close', () => {
      const left = (this.#streamsOfTokens.get(tokenId) ?? 0) - 1
      if (left > 0) this.#streamsOfTokens.set(tokenId, left)
      else this.#streamsOfTokens.delete(tokenId)
    })
  }

  /** Ends the event streams, whose clients come back to the next gateway and go on where they were. */
  endStreams(): void {
    for (const stream of this.#streams) endStream(stream)
  }
}

function keep(open: Set<ServerResponse>, { raw }: FastifyReply): void {
  open.add(raw)
  raw.once('close', () => open.delete(raw))
}

/** Makes room at the cost of the oldest that waits for its client, to send the rest or to read the answer. */
function endOneThatWaits(open: Set<ServerResponse>): void {
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
  // Whoever writes to it hears of the end by its `close`; what comes before that has nowhere to go.
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

/** Contract: the rate-limit plugin is registered before. */
export function addGuards(app: App, { config, authenticator, open, limits }: Guards): void {
  const timeWindow = 60_000
  const ofStranger = app.createRateLimit({ max: limits.strangerRequestsPerMinute, timeWindow })
  const ofDashboard = app.createRateLimit({ max: limits.dashboardRequestsPerMinute, timeWindow })
  const ofPlatform = app.createRateLimit({ max: limits.platformRequestsPerMinute, timeWindow })
  const ofToken = app.createRateLimit({
    max: limits.requestsPerMinute,
    timeWindow,
    keyGenerator: (request) => request.tokenHash ?? '',
  })

  const limitRate = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { isPlatform, isDashboard } = request.routeOptions.config
    const ofAddress = isPlatform ? ofPlatform : isDashboard ? ofDashboard : ofStranger
    const isKnown = request.tokenHash !== undefined
    const rate = await (isKnown ? ofToken : ofAddress)(request)
    if (rate.isAllowed || !rate.isExceeded) return
    reply.raw.setHeader('retry-after', rate.ttlInSeconds)
    const sender = isKnown ? 'with this token' : 'from this address'
    throw new GatewayError('too_many', `Too many requests ${sender}. Try again in ${rate.ttlInSeconds} s.`)
  }

  /** A stream may be open for a day: a token that is revoked meanwhile ends it. */
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
      // A token that does not exist counts for its address, or one could guess on with a new one each time.
      const hash = await authenticator.knownHash(request)
      if (hash !== undefined) request.tokenHash = hash
      if (!isLogin) await limitRate(request, reply)
      open.admit(request, reply)
    }
    // An unknown route has nothing to protect, and no scope.
    if (request.is404 || request.routeOptions.config.scope === 'public') return
    const caller = await authenticator.admit(request)
    request.caller = caller
    if (!request.routeOptions.config.isStream) return
    open.admitStreamOf(caller, reply)
    endWithToken(caller, reply.raw)
  })
  // Before, nobody knows whether the token is a good one: it comes in the body.
  app.addHook('preValidation', async (request, reply) => {
    if (!request.routeOptions.config.isLogin) return
    const { token } = (request.body ?? {}) as { token?: unknown }
    const hash = typeof token === 'string' ? await authenticator.knownToken(token.trim()) : undefined
    if (hash !== undefined) request.tokenHash = hash
    await limitRate(request, reply)
  })
  app.addHook('onRoute', ({ method, url, config: routeConfig }) => {
    if (routeConfig?.scope === undefined) throw new Error(`The route ${String(method)} ${url} names no scope.`)
  })
}
