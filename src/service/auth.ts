// Who asks, and what they may do.
//
// - A token is 32 random bytes; only its hash is kept. It is looked up for every request, so that one that was revoked
//   or replaced is worth nothing from then on.
// - A token is never taken from a URL: those stand in logs and histories. Event streams take a ticket instead.
// - A header counts more than a ticket, and that more than the cookie, which browsers send without being asked.
// - A login is looked up as a token is, by the hash of what the browser has, and is worth what its token is worth then.

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

/** Nobody asks more exactly when a token was last used; a write for each request would be too many. */
const USED_EVERY_MS = 60_000
const READ_HASHES_EVERY_MS = 2_000
/** For those who ask whether the database is there. */
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

/** Makes a token. Contract: `token` is in nobody's hands but the caller's. */
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

/** The hash of the token or the login of a request, valid or not. */
export function presentedHash({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const presented = headers.authorization === undefined ? cookieLogin({ headers }) : bearerToken({ headers })
  return presented === undefined ? undefined : hashOf(presented)
}

function bearerToken({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
}

/** What a browser and its page keep from then on, each its own. */
export interface NewLogin {
  caller: Caller
  secret: string
  pageKey: string
  lastsMs: number
}

interface AuthenticatorDependencies {
  tokens: Tokens
  tickets: Tickets
  /** Hears of the tokens that are in use: an agent may find one. */
  scrubber: Pick<Scrubber, 'add'>
  log: Log
  now: () => number
}

export class Authenticator {
  /** Of all tokens and logins, each with that of its token, as they were last read. */
  #hashes = new Map<string, string>()
  #hashesReadAt = 0
  /** Whose tokens were good when they were last seen, by their hashes. */
  readonly #known = new Map<string, Caller>()

  constructor(private readonly dependencies: AuthenticatorDependencies) {}

  /**
   * The hash of the token that a request comes with, or that its login or ticket stands for, if there is such a token.
   *
   * For limits, which come before the real look: it costs a query every few seconds, however many strangers there are.
   */
  async knownHash(request: FastifyRequest): Promise<string | undefined> {
    const ticket = ticketOf(request)
    const hash = presentedHash(request) ?? (ticket === undefined ? undefined : this.dependencies.tickets.peek(ticket))
    return hash === undefined ? undefined : this.#tokenHashOf(hash)
  }

  /** The same for a token by itself. */
  async knownToken(token: string): Promise<string | undefined> {
    return this.#tokenHashOf(hashOf(token))
  }

  async #tokenHashOf(hash: string): Promise<string | undefined> {
    if (this.#hashes.has(hash)) return this.#hashes.get(hash)
    const { tokens, now } = this.dependencies
    if (now() - this.#hashesReadAt >= READ_HASHES_EVERY_MS) {
      this.#hashesReadAt = now()
      // While the database is away nobody new comes in.
      const hashes = await within(STORE_TIMEOUT_MS, tokens.hashes()).catch(() => undefined)
      if (hashes) this.#hashes = hashes
    }
    return this.#hashes.get(hash)
  }

  /** Contract: throws `unauthorized` without a good token or ticket, `forbidden` when it may not do this. */
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

  /** Contract: throws `unauthorized` when the token is nobody's. */
  async login(token: string): Promise<NewLogin> {
    const { tokens, scrubber, now } = this.dependencies
    const tokenHash = hashOf(token)
    const caller = await this.#identify(tokenHash, false)
    scrubber.add([token])
    const [secret, pageKey] = [randomSecret(), randomSecret()]
    const hash = hashOf(joinedLogin(secret, pageKey))
    await tokens.addLogin({ hash, tokenHash, expiresAt: now() + LOGIN_MS }, now())
    this.#hashes.set(hash, tokenHash)
    return { caller, secret, pageKey, lastsMs: LOGIN_MS }
  }

  /** Ends the login that a request comes with, if it does. */
  async logout({ headers }: Pick<FastifyRequest, 'headers'>): Promise<void> {
    const login = cookieLogin({ headers })
    if (login !== undefined) await this.dependencies.tokens.removeLogin(hashOf(login))
  }

  /** Whether somebody who was admitted may still do the same; while the database is away, they may. */
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
      throw unauthorized('The Authorization header must be "Bearer" and a token that begins with aet_.')
    }
    const ticket = ticketOf(request)
    if (ticket === undefined) {
      const hash = presentedHash(request)
      if (hash === undefined) {
        throw unauthorized('A token is needed: send "Authorization: Bearer" with one of "aetheel tokens create".')
      }
      requireOwnPage(request)
      return hash
    }
    const hash = this.dependencies.tickets.redeem(ticket, pathOf(request))
    if (hash === undefined) {
      throw unauthorized('The ticket is used, too old or for another path. Ask for a new one: POST /tickets.')
    }
    return hash
  }

  /** Contract: throws `store_unavailable` when the database fails; one that hangs is given up soon where that is told. */
  async #find(hash: string, isHurried: boolean): Promise<(TokenRecord & { hash: string }) | undefined> {
    const looked = this.dependencies.tokens.find(hash).then((record) => ({ record }))
    const answer = await (isHurried ? within(STORE_TIMEOUT_MS, looked) : looked).catch((error: unknown) => {
      throw error instanceof GatewayError ? error : unavailable(error)
    })
    if (!answer) throw unavailable()
    return answer.record
  }

  /** `trustsMemory`: who was known before is let in while the database is away. */
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
    // The database compares as it likes; this does not tell by its time how much of a hash was right.
    if (!record || !timingSafeEqual(Buffer.from(record.hash), Buffer.from(hash))) {
      this.#known.delete(hash)
      throw unauthorized('This token is not known; it may have been revoked or replaced.')
    }
    const { id, name, scope, projects, expiresAt, usedAt } = record
    if (expiresAt !== undefined && expiresAt <= now()) {
      this.#known.delete(hash)
      throw unauthorized('This token has expired. Make another with "aetheel tokens create".')
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
  const message = 'The database does not answer, so no token can be looked up. Try again later.'
  return new GatewayError('store_unavailable', message, { cause })
}

/** The path as it was asked for, without what follows the question mark. */
export function pathOf({ url }: Pick<FastifyRequest, 'url'>): string {
  return url.split('?', 1)[0] ?? url
}

function ticketOf({ routeOptions, query }: FastifyRequest): string | undefined {
  if (!routeOptions.config.isStream) return undefined
  const { ticket } = query as { ticket?: unknown }
  return typeof ticket === 'string' ? ticket : undefined
}

/** Contract: a route without a scope lets nobody in. */
function requireScope(caller: Caller, needed: Scope | 'public' = 'admin'): void {
  if (needed === 'public' || SCOPES.indexOf(caller.scope) >= SCOPES.indexOf(needed)) return
  throw new GatewayError('forbidden', `This needs a token with the scope ${needed}; this one has ${caller.scope}.`)
}

function requireProject({ projects }: Caller, { routeOptions, params }: FastifyRequest): void {
  if (projects === undefined || routeOptions.config.allowsProjectTokens) return
  if (!/^\/projects\/:id(\/|$)/.test(routeOptions.url ?? '')) {
    throw new GatewayError('forbidden', 'This token is for single projects; what concerns all needs another one.')
  }
  const { id } = params as { id: string }
  if (projects.includes(id)) return
  throw new GatewayError(
    'forbidden',
    `This token is not for the project ${id}, only for: ${projects.join(', ') || 'none'}.`,
  )
}

function unauthorized(message: string): GatewayError {
  return new GatewayError('unauthorized', message)
}
