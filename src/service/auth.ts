// Authentication and authorisation.
//
// - A token is 32 random bytes; only its hash is stored. It is looked up on every request, so a revoked or replaced one
//   stops working at once.
// - Tokens are never read from URLs, which end up in logs and histories. Event streams take a ticket instead.
// - A header takes precedence over a ticket, and a ticket over the cookie, which browsers send unasked.
// - A login is looked up like a token, by the hash of the browser's two secrets, and has its token's current rights.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { within } from '../core/async.js'
import type { FastifyRequest } from 'fastify'
import { GatewayError, messageOf } from '../errors.js'
import type { Scrubber } from '../credentials/scrubber.js'
import type { Log } from '../log.js'
import { type Scope, SCOPES, type TokenRecord, type Tokens } from '../store/tokens.js'
import { cookieLogin, joinedLogin, requireOwnPage } from './cookie.js'
import type { Caller } from './dependencies.js'
import type { Tickets } from './tickets.js'

/** Precision of "last used"; a write per request would be too many. */
const USED_EVERY_MS = 60_000
const READ_HASHES_EVERY_MS = 2_000
/** Timeout where the caller wants to know soon whether the database answers. */
const STORE_TIMEOUT_MS = 2_000
const LOGIN_MS = 30 * 86_400_000

export function newToken(): string {
  return `aet_${randomSecret()}`
}

function randomSecret(): string {
  return randomBytes(32).toString('base64url')
}

export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** For the audit log. */
export function describeRights({ name, scope, projects }: TokenRecord): string {
  return `${name}: ${scope}, ${projects === undefined ? 'all projects' : projects.join(', ')}`
}

/** Creates a token. Contract: only the caller ever has `token`. */
export async function issueToken(
  tokens: Tokens,
  rights: Pick<TokenRecord, 'name' | 'scope' | 'projects' | 'expiresAt'>,
  { now, newId }: { now: () => number; newId: () => string },
): Promise<{ token: string; record: TokenRecord }> {
  const token = newToken()
  const record = { ...rights, id: newId(), createdAt: now() }
  await tokens.add(record, hashOf(token))
  return { token, record }
}

/** The hash of a request's token or login, valid or not. */
export function presentedHash({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const presented = headers.authorization === undefined ? cookieLogin({ headers }) : bearerToken({ headers })
  return presented === undefined ? undefined : hashOf(presented)
}

function bearerToken({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
}

/** `secret` is stored by the browser, `pageKey` by the page. */
export interface NewLogin {
  caller: Caller
  secret: string
  pageKey: string
  lastsMs: number
}

interface AuthenticatorDependencies {
  tokens: Tokens
  tickets: Tickets
  /** Gets every token in use, since an agent may come across one. */
  scrubber: Pick<Scrubber, 'add'>
  log: Log
  now: () => number
}

export class Authenticator {
  /** The hashes of all tokens and logins, each mapped to its token's hash, as last read. */
  #hashes = new Map<string, string>()
  #hashesReadAt = 0
  /** Callers whose tokens were valid when last seen, by hash. */
  readonly #known = new Map<string, Caller>()

  constructor(private readonly dependencies: AuthenticatorDependencies) {}

  /**
   * The hash of the existing token that a request, its login or its ticket stands for.
   *
   * For rate limits, which come before the real lookup: costs a query every few seconds, however many strangers there
   * are.
   */
  async knownHash(request: FastifyRequest): Promise<string | undefined> {
    const ticket = ticketOf(request)
    const hash = presentedHash(request) ?? (ticket === undefined ? undefined : this.dependencies.tickets.peek(ticket))
    return hash === undefined ? undefined : this.#tokenHashOf(hash)
  }

  /** Like `knownHash`, for a bare token. */
  async knownToken(token: string): Promise<string | undefined> {
    return this.#tokenHashOf(hashOf(token))
  }

  async #tokenHashOf(hash: string): Promise<string | undefined> {
    if (this.#hashes.has(hash)) return this.#hashes.get(hash)
    const { tokens, now } = this.dependencies
    if (now() - this.#hashesReadAt >= READ_HASHES_EVERY_MS) {
      this.#hashesReadAt = now()
      // While the database is unavailable, no new token is recognised.
      const hashes = await within(STORE_TIMEOUT_MS, tokens.hashes()).catch(() => undefined)
      if (hashes) this.#hashes = hashes
    }
    return this.#hashes.get(hash)
  }

  /** Contract: throws `unauthorized` without a valid token or ticket, `forbidden` if it does not allow this. */
  async admit(request: FastifyRequest): Promise<Caller> {
    const hash = this.#hashFor(request)
    const { answersWithoutStore = false } = request.routeOptions.config
    const caller = await this.#identify(hash, answersWithoutStore)
    const token = bearerToken(request)
    if (token !== undefined) this.dependencies.scrubber.add([token])
    requireScope(caller, request.routeOptions.config.scope)
    requireProject(caller, request)
    return caller
  }

  /** Contract: throws `unauthorized` for an unknown token. */
  async login(token: string): Promise<NewLogin> {
    const login = await this.loginAs(hashOf(token))
    // Only now: callers without a valid token must not choose what is redacted.
    this.dependencies.scrubber.add([token])
    return login
  }

  /** Like `login`, by the token's hash. */
  async loginAs(tokenHash: string): Promise<NewLogin> {
    const { tokens, now } = this.dependencies
    const caller = await this.#identify(tokenHash, false)
    const [secret, pageKey] = [randomSecret(), randomSecret()]
    const hash = hashOf(joinedLogin(secret, pageKey))
    await tokens.addLogin({ hash, tokenHash, expiresAt: now() + LOGIN_MS }, now())
    this.#hashes.set(hash, tokenHash)
    return { caller, secret, pageKey, lastsMs: LOGIN_MS }
  }

  /** Ends the request's login, if any. */
  async logout({ headers }: Pick<FastifyRequest, 'headers'>): Promise<void> {
    const login = cookieLogin({ headers })
    if (login !== undefined) await this.dependencies.tokens.removeLogin(hashOf(login))
  }

  /** Whether an admitted caller still has the same rights; assumed while the database is unavailable. */
  async isStillGood(caller: Caller): Promise<boolean> {
    try {
      return isDeepStrictEqual(await this.#identify(caller.tokenHash, true), caller)
    } catch (error) {
      return !(error instanceof GatewayError && error.code === 'unauthorized')
    }
  }

  #hashFor(request: FastifyRequest): string {
    if (request.headers.authorization !== undefined) {
      const hash = presentedHash(request)
      if (hash !== undefined) return hash
      throw unauthorized('The Authorization header must be "Bearer" followed by a token, which begins with aet_.')
    }
    const ticket = ticketOf(request)
    if (ticket === undefined) {
      const hash = presentedHash(request)
      if (hash === undefined) {
        const advice = 'Send "Authorization: Bearer" with a token from "aetheel tokens create".'
        throw unauthorized(`This request needs a token. ${advice}`)
      }
      requireOwnPage(request)
      return hash
    }
    const hash = this.dependencies.tickets.redeem(ticket, pathOf(request))
    if (hash === undefined) {
      throw unauthorized('The ticket was used, has expired or is for another path. Get a new one with POST /tickets.')
    }
    return hash
  }

  /** Contract: throws `store_unavailable` if the database fails or, when `hasTimeout`, does not answer soon. */
  async #find(hash: string, hasTimeout: boolean): Promise<(TokenRecord & { hash: string }) | undefined> {
    const lookup = this.dependencies.tokens.find(hash).then((record) => ({ record }))
    const answer = await (hasTimeout ? within(STORE_TIMEOUT_MS, lookup) : lookup).catch((error: unknown) => {
      throw error instanceof GatewayError ? error : unavailable(error)
    })
    if (!answer) throw unavailable()
    return answer.record
  }

  /** `trustsMemory`: accept a previously valid token while the database is unavailable. */
  async #identify(hash: string, trustsMemory: boolean): Promise<Caller> {
    const { tokens, log, now } = this.dependencies
    const remembered = trustsMemory ? this.#known.get(hash) : undefined
    let record: (TokenRecord & { hash: string }) | undefined
    try {
      record = await this.#find(hash, trustsMemory)
    } catch (error) {
      if (remembered) return remembered
      throw error
    }
    // The database's comparison may leak timing; this one does not.
    if (!record || !timingSafeEqual(Buffer.from(record.hash), Buffer.from(hash))) {
      this.#known.delete(hash)
      throw unauthorized(
        'Unknown token. It may have been revoked or replaced. Create one with "aetheel tokens create".',
      )
    }
    const { id, name, scope, projects, expiresAt, usedAt } = record
    if (expiresAt !== undefined && expiresAt <= now()) {
      this.#known.delete(hash)
      throw unauthorized('This token has expired. Create another with "aetheel tokens create".')
    }
    const caller = { tokenId: id, tokenHash: hash, name, scope, projects }
    this.#known.set(hash, caller)
    if (usedAt === undefined || now() - usedAt >= USED_EVERY_MS) {
      tokens.used(id, now()).catch((error: unknown) => {
        log.warn('token.use-not-kept', { tokenId: id, error: messageOf(error) })
      })
    }
    return caller
  }
}

function unavailable(cause?: unknown): GatewayError {
  const message = 'The database does not answer, so tokens cannot be checked. Try again later.'
  return new GatewayError('store_unavailable', message, { cause })
}

/** The requested path without the query. */
export function pathOf({ url }: Pick<FastifyRequest, 'url'>): string {
  return url.split('?', 1)[0] ?? url
}

function ticketOf({ routeOptions, query }: FastifyRequest): string | undefined {
  if (!routeOptions.config.isStream) return undefined
  const { ticket } = query as { ticket?: unknown }
  return typeof ticket === 'string' ? ticket : undefined
}

/** Contract: without a scope it requires `admin`. */
function requireScope(caller: Caller, needed: Scope | 'public' = 'admin'): void {
  if (needed === 'public' || SCOPES.indexOf(caller.scope) >= SCOPES.indexOf(needed)) return
  throw new GatewayError('forbidden', `This needs a token with scope ${needed}; this one has scope ${caller.scope}.`)
}

function requireProject({ projects }: Caller, { routeOptions, params }: FastifyRequest): void {
  if (projects === undefined || routeOptions.config.allowsProjectTokens) return
  if (!/^\/projects\/:id(\/|$)/.test(routeOptions.url ?? '')) {
    throw new GatewayError('forbidden', 'This token is limited to certain projects. Use a token for all projects.')
  }
  const { id } = params as { id: string }
  if (projects.includes(id)) return
  const allowed = projects.join(', ') || 'none'
  throw new GatewayError('forbidden', `This token is not for project ${id}. Its projects: ${allowed}.`)
}

function unauthorized(message: string): GatewayError {
  return new GatewayError('unauthorized', message)
}
