// Fetches files from URLs that strangers can choose.
//
// Invariants:
// - Nothing is requested from a machine that is not on the public internet: such a request would come from inside our
//   network, where others trust it. A name is resolved once, and the connection goes to an address that was checked.
// - Credentials go to the origin they are meant for, and no further.
// - The other side controls neither size nor time.

import { lookup } from 'node:dns/promises'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { abortable, startDeadline } from '../core/async.js'
import { GatewayError, messageOf } from '../errors.js'
import { describeBytes } from './byte-size.js'
import { extensionOf } from './file-types.js'
import { isPublicAddress } from './public-address.js'
import { safeFileNames } from './safe-file-names.js'

export interface FetchOptions {
  signal: AbortSignal
  maxBytes: number
  /** Sent to the origin of the URL only, not to where it redirects. */
  headers?: Record<string, string>
  /**
   * An origin configured by the operator, which need not be public. It is trusted until a redirect leads away from it.
   */
  trustedOrigin?: string
  timeoutMs?: number
}

export interface FetchedFile {
  /** A plain name, safe in any directory. */
  name: string
  /** As the server reports it, without parameters. */
  type?: string
  content: Buffer
}

/** How names are resolved, and which addresses may be contacted. */
export interface Network {
  resolve(hostname: string): Promise<Array<{ address: string; family: number }>>
  isPublic(address: string): boolean
}

const INTERNET: Network = {
  resolve: (hostname) => lookup(hostname, { all: true }),
  isPublic: isPublicAddress,
}

const DEFAULT_TIMEOUT_MS = 60_000

/** Names that mean something else, or nothing, on another network. */
const LOCAL_NAME = /^[^.]*\.?$|\.(localhost|local|internal|lan|home\.arpa)\.?$/i

const MAX_REDIRECTS = 5
const REDIRECTS = [301, 302, 303, 307, 308]

/**
 * Contract: throws `request_invalid` if it may not or cannot be fetched, `too_large` if it exceeds the limit; the
 * message is a reason that fits into a sentence for the person. If the signal aborts, its reason is thrown.
 */
export async function fetchPublic(
  url: string,
  options: FetchOptions,
  network: Network = INTERNET,
): Promise<FetchedFile> {
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const limit = startDeadline(timeoutMs, signal, refusal(`it took longer than ${timeoutMs / 1000} s`))
  try {
    return await abortable(limit.signal, (inTime) => follow(url, { ...options, signal: inTime }, network))
  } catch (error) {
    if (limit.signal.aborted) throw limit.signal.reason
    throw error instanceof GatewayError ? error : refusal(`it cannot be reached (${problemOf(error)})`, error)
  } finally {
    limit.clear()
  }
}

/**
 * For URLs that a third party fetches for us over its own network. Contract: throws as `fetchPublic` does if the URL
 * itself rules it out; no name is resolved.
 */
export function requirePublicUrl(text: string): void {
  const { hostname, host } = readUrl(text)
  const name = hostname.replace(/^\[|\]$/g, '')
  if (isIP(name) === 0 ? LOCAL_NAME.test(name) : !isPublicAddress(name)) throw notPublic(host)
}

async function follow(
  url: string,
  { signal, maxBytes, headers = {}, trustedOrigin }: FetchOptions,
  network: Network,
): Promise<FetchedFile> {
  let here = readUrl(url)
  const { origin } = here
  let isSameOrigin = true
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const lookup = await checkedLookup(here, isSameOrigin && here.origin === trustedOrigin, network)
    const response = await ask(here, isSameOrigin ? headers : {}, lookup, signal)
    try {
      const { statusCode = 0, headers: answered } = response
      if (REDIRECTS.includes(statusCode) && answered.location !== undefined) {
        here = readUrl(answered.location, here)
        // A server that redirects us away and back must not choose what we request with our credentials.
        isSameOrigin &&= here.origin === origin
        continue
      }
      if (statusCode !== 200) throw refusal(`${here.host} answered with status ${statusCode}`)
      return { ...describe(response, here), content: await read(response, maxBytes) }
    } finally {
      response.destroy()
    }
  }
  throw refusal(`${here.host} redirects more than ${MAX_REDIRECTS} times`)
}

function readUrl(text: string, base?: URL): URL {
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw refusal('only http:// and https:// URLs are fetched')
  }
  if (url.username !== '' || url.password !== '') throw refusal('its URL contains a user name or a password')
  return url
}

/** Resolves the host, and returns a lookup that yields only the addresses found and checked here. */
async function checkedLookup(
  { hostname, host }: URL,
  isTrusted: boolean,
  { resolve, isPublic }: Network,
): Promise<LookupFunction> {
  const name = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(name)
  const found = family === 0 ? await resolve(name) : [{ address: name, family }]
  // One private address is enough to refuse: we do not control which of them is used.
  if (!isTrusted && !found.every(({ address }) => isPublic(address))) {
    throw notPublic(host)
  }
  const [first] = found
  if (!first) throw refusal(`${host} has no address`)
  return (_, { all }, done) => {
    // Deferred until the caller listens to the connection: an immediate failure would go unhandled and crash the
    // gateway.
    setImmediate(() => (all ? done(null, found) : done(null, first.address, first.family)))
  }
}

async function ask(
  url: URL,
  headers: Record<string, string>,
  lookup: LookupFunction,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    request(url, {
      // Prevents compression bombs.
      headers: { 'user-agent': 'aetheel', accept: '*/*', ...headers, 'accept-encoding': 'identity' },
      agent: false,
      lookup,
      signal,
    })
      .on('response', resolve)
      .on('error', reject)
      .end()
  })
}

async function read(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const { 'content-encoding': encoding = 'identity', 'content-length': length = '0' } = response.headers
  if (encoding !== 'identity') throw refusal(`the server compressed it (${encoding}), which was not requested`)
  if (Number(length) > maxBytes) throw tooLarge(maxBytes)
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response) {
    parts.push(part as Buffer)
    bytes += (part as Buffer).length
    if (bytes > maxBytes) throw tooLarge(maxBytes)
  }
  return Buffer.concat(parts, bytes)
}

function describe({ headers }: IncomingMessage, url: URL): Omit<FetchedFile, 'content'> {
  const [type = ''] = (headers['content-type'] ?? '').toLowerCase().split(';', 1)
  const given = declaredName(headers['content-disposition']) ?? decode(url.pathname.split('/').at(-1) ?? '')
  const extension = /\.[a-z\d]{1,15}$/i.test(given) ? '' : (extensionOf(type.trim()) ?? '')
  const [name = ''] = safeFileNames([`${given === '' ? 'file' : given}${extension}`])
  return { name, ...(type.trim() !== '' && { type: type.trim() }) }
}

function declaredName(disposition = ''): string | undefined {
  const encoded = /filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(disposition)?.[1]
  if (encoded !== undefined) return decode(encoded)
  const [, quoted, plain] = /filename\s*=\s*(?:"([^"]+)"|([^;\s"]+))/i.exec(disposition) ?? []
  return quoted ?? plain
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // Contains a literal percent sign.
    return text
  }
}

function problemOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? messageOf(error)
}

function notPublic(host: string): GatewayError {
  return refusal(`${host} is not on the public internet, and files are fetched only from there`)
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('too_large', `it is larger than the limit of ${describeBytes(maxBytes)}`)
}

function refusal(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('request_invalid', reason, { cause })
}
