// How Twilio proves that a request is its own: an HMAC-SHA1, keyed with the account's auth token, over the URL it
// called and the form it sent. https://www.twilio.com/docs/usage/webhooks/webhooks-security

import { createHmac, timingSafeEqual } from 'node:crypto'

/** The expected value of `X-Twilio-Signature`. */
export function signatureOf(authToken: string, url: string, form: URLSearchParams): string {
  return createHmac('sha1', authToken)
    .update(url + joined(form))
    .digest('base64')
}

/**
 * Contract: `url` is the configured one, never derived from the request. Whether Twilio includes the port has changed
 * over time and differs by product: both count.
 */
export function isSigned(authToken: string, signature: string, url: string, form: URLSearchParams): boolean {
  const given = Buffer.from(signature)
  const matches = [withoutPort(url), withPort(url)].map((candidate) => {
    const expected = Buffer.from(signatureOf(authToken, candidate, form))
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
  return matches.includes(true)
}

/** Sorted names, each with its distinct values, sorted. */
function joined(form: URLSearchParams): string {
  const names = [...new Set(form.keys())].toSorted(byCodeUnit)
  return names
    .flatMap((name) => [...new Set(form.getAll(name))].toSorted(byCodeUnit).map((value) => name + value))
    .join('')
}

function byCodeUnit(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

function withoutPort(url: string): string {
  return url.replace(AUTHORITY, (_, scheme: string, host: string) => `${scheme}${host}`)
}

function withPort(url: string): string {
  return url.replace(AUTHORITY, (_, scheme: string, host: string, port: string | undefined) => {
    return `${scheme}${host}${port ?? (/^https/i.test(scheme) ? ':443' : ':80')}`
  })
}

const AUTHORITY = /^(https?:\/\/)(\[[^\]]*\]|[^/:?#]*)(:\d+)?/i
