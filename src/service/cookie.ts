// A browser's login: a secret in a cookie that scripts cannot read, and a key that the page sends along.
//
// - Each is useless without the other, and neither is the token. Browsers send the cookie to programs on other ports of
//   this host too; those do not have the key, which the page keeps in storage of its origin.
// - Browsers send the cookie whichever page makes the request. So a request with a cookie must come from our own page,
//   and must prove it with an Origin if it changes anything.

import type { FastifyRequest } from 'fastify'
import { PAGE_KEY_HEADER } from '../core/wire-names.js'
import { GatewayError } from '../errors.js'

export const COOKIE = 'aetheel_login'
const SAFE_METHODS = ['GET', 'HEAD']
/** `Sec-Fetch-Site` of same-origin requests and of typed addresses. */
const OWN_SITES = ['same-origin', 'none']

/** The combined login of the browser and its page. */
export function cookieLogin({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const secret = new RegExp(`(?:^|;) *${cookieName(headers.host)}=([\\w-]+) *(?:;|$)`).exec(headers.cookie ?? '')?.[1]
  const key = headers[PAGE_KEY_HEADER]
  return secret === undefined || typeof key !== 'string' || key === '' ? undefined : joinedLogin(secret, key)
}

export function joinedLogin(secret: string, pageKey: string): string {
  return `${secret}.${pageKey}`
}

/**
 * Contract: throws `forbidden` for requests that another page may have caused. A present Origin has already been
 * checked.
 */
export function requireOwnPage({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): void {
  const site = headers['sec-fetch-site']
  const isOwn = site === undefined || OWN_SITES.includes(site)
  if (isOwn && (SAFE_METHODS.includes(method) || headers.origin !== undefined)) return
  const advice = 'Programs must send a token as "Authorization: Bearer".'
  throw new GatewayError('forbidden', `The cookie works only for pages of this gateway. ${advice}`)
}

/** The header that sets the cookie or, without a secret, clears it. */
export function setCookie(
  { headers }: Pick<FastifyRequest, 'headers'>,
  login?: { secret: string; lastsMs: number },
): string {
  // The page's Origin tells whether a proxy in front uses TLS.
  const isSecure = headers.origin?.toLowerCase().startsWith('https:') ?? false
  const maxAge = Math.floor((login?.lastsMs ?? 0) / 1000)
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${maxAge}`, ...(isSecure ? ['Secure'] : [])]
  return [`${cookieName(headers.host)}=${login?.secret ?? ''}`, ...attributes].join('; ')
}

/** Includes the port, or two gateways on one host would log each other out. */
function cookieName(host = ''): string {
  const port = /:(\d+)$/.exec(host)?.[1]
  return port === undefined ? COOKIE : `${COOKIE}_${port}`
}
