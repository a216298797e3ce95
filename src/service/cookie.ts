// What a browser has after a login: a secret in a cookie, which no script reads, and a key that its page sends along.
//
// - Neither is worth anything alone, nor is either the token. A browser sends the cookie also to other programs on other
//   ports of this host; they do not have the key, which the page keeps where only pages of its origin look.
// - A browser sends the cookie whoever asks. So what comes by cookie must come from a page of ours, and say so where it
//   changes something.

import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.js'

export const COOKIE = 'aetheel_login'
export const PAGE_KEY_HEADER = 'x-aetheel-page-key'
const SAFE_METHODS = ['GET', 'HEAD']
/** What browsers call a request of the same origin, or of the person at the address bar. */
const OWN_SITES = ['same-origin', 'none']

/** What the browser and its page have kept, as one. */
export function cookieLogin({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const secret = new RegExp(`(?:^|;) *${cookieName(headers.host)}=([\\w-]+) *(?:;|$)`).exec(headers.cookie ?? '')?.[1]
  const key = headers[PAGE_KEY_HEADER]
  return secret === undefined || typeof key !== 'string' || key === '' ? undefined : joinedLogin(secret, key)
}

export function joinedLogin(secret: string, pageKey: string): string {
  return `${secret}.${pageKey}`
}

/** Contract: throws `forbidden` for what another page may have caused. An Origin that is there has been checked. */
export function requireOwnPage({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): void {
  const site = headers['sec-fetch-site']
  const isOwn = site === undefined || OWN_SITES.includes(site)
  if (isOwn && (SAFE_METHODS.includes(method) || headers.origin !== undefined)) return
  const advice = 'Programs send the token as Authorization: Bearer.'
  throw new GatewayError('forbidden', `With a cookie, only pages of this gateway may ask for this. ${advice}`)
}

/** As a header that sets it or, without a secret, takes it back. */
export function setCookie(
  { headers }: Pick<FastifyRequest, 'headers'>,
  login?: { secret: string; lastsMs: number },
): string {
  // Whether a proxy in front speaks TLS is told by the page that asks.
  const isSecure = headers.origin?.toLowerCase().startsWith('https:') ?? false
  const maxAge = Math.floor((login?.lastsMs ?? 0) / 1000)
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${maxAge}`, ...(isSecure ? ['Secure'] : [])]
  return [`${cookieName(headers.host)}=${login?.secret ?? ''}`, ...attributes].join('; ')
}

/** With the port, or two gateways of one host would log each other out. */
function cookieName(host = ''): string {
  const port = /:(\d+)$/.exec(host)?.[1]
  return port === undefined ? COOKIE : `${COOKIE}_${port}`
}
