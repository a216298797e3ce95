// Fetches files from the web, at addresses that strangers can choose.
//
// What must stay true:
// - Nothing is asked of a machine that is not on the public internet: such a request would come from inside our network,
//   where others trust it. A name is looked up once, and the connection goes to an address that was judged.
// - What proves who we are goes to the origin that it is meant for, and no further.
// - Neither size nor time is left to the other side.

import { lookup } from 'node:dns/promises'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { abortable, startDeadline } from '../core/async.js'
import { GatewayError, messageOf } from '../errors.js'
import { describeBytes } from './byte-size.js'
import { isPublicAddress } from './public-address.js'
import { safeFileNames } from './safe-file-names.js'

export interface FetchOptions {
  signal: AbortSignal
  maxBytes: number
  /** For the origin of the URL alone: they go nowhere that it sends us on to. */
  headers?: Record<string, string>
  /** An origin that the operator has set, which need not be public. It counts until a redirect leads away from it. */
  trustedOrigin?: string
  timeoutMs?: number
}

export interface FetchedFile {
  /** One plain name, safe in any directory. */
  name: string
  /** As the server says, without parameters. */
  type?: string
  content: Buffer
}

/** How names become addresses, and which of them may be asked. */
export interface Network {
  resolve(hostname: string): Promise<Array<{ address: string; family: number }>>
  isPublic(address: string): boolean
}

const INTERNET: Network = {
  resolve: (hostname) => lookup(hostname, { all: true }),
  isPublic: isPublicAddress,
}

const DEFAULT_TIMEOUT_MS = 60_000

/** Names that mean something else, or nothing, in another network. */
const LOCAL_NAME = /^[^.]*\.?$|\.(localhost|local|internal|lan|home\.arpa)\.?$/i

const MOST_REDIRECTS = 5
const REDIRECTS = [301, 302, 303, 307, 308]

/** So that people's programs know what to open a file with whose address does not say it. */
const EXTENSIONS: Record<string, string> = {
  'application/json': '.json',
  'application/pdf': '.pdf',
  'application/zip': '.zip',
  'audio/mpeg': '.mp3',
  'audio/ogg': '.ogg',
  'image/gif': '.gif',
  'image/jpeg': '.jpg',
  'image/png': '.png',
  'image/svg+xml': '.svg',
  'image/webp': '.webp',
  'text/csv': '.csv',
  'text/html': '.html',
  'text/plain': '.txt',
  'video/mp4': '.mp4',
}

/**
 * Contract: throws `request_invalid` when it may not or cannot be had, `too_large` when it is larger than allowed; the
 * message is the reason, to stand within a sentence for the person. When the signal ends it, its reason is thrown.
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
 * For what others fetch for us, by their own network. Contract: throws as `fetchPublic` when the address itself says that
 * it may not be had; no name is looked up.
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
  let isAtHome = true
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects += 1) {
    const lookup = await judgedLookup(here, isAtHome && here.origin === trustedOrigin, network)
    const response = await ask(here, isAtHome ? headers : {}, lookup, signal)
    try {
      const { statusCode = 0, headers: answered } = response
      if (REDIRECTS.includes(statusCode) && answered.location !== undefined) {
        here = readUrl(answered.location, here)
        // Who leads us away and back again must not choose what we ask in our own name.
        isAtHome &&= here.origin === origin
        continue
      }
      if (statusCode !== 200) throw refusal(`${here.host} answered with status ${statusCode}`)
      return { ...describe(response, here), content: await read(response, maxBytes) }
    } finally {
      response.destroy()
    }
  }
  throw refusal(`${here.host} sends on more than ${MOST_REDIRECTS} times`)
}

function readUrl(text: string, base?: URL): URL {
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw refusal('only addresses that begin with http:// or https:// are fetched')
  }
  if (url.username !== '' || url.password !== '') throw refusal('there is a user name or a password in its address')
  return url
}

/** Looks the host up, and gives a lookup that knows nothing but what was found then. */
async function judgedLookup(
  { hostname, host }: URL,
  isTrusted: boolean,
  { resolve, isPublic }: Network,
): Promise<LookupFunction> {
  const name = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(name)
  const found = family === 0 ? await resolve(name) : [{ address: name, family }]
  // One that is not public is enough: which of them is taken is not for us to say.
  if (!isTrusted && !found.every(({ address }) => isPublic(address))) {
    throw notPublic(host)
  }
  const [first] = found
  if (!first) throw refusal(`${host} has no address`)
  return (_, { all }, done) => {
    // Not before who asked listens to the connection: one that fails at once would be nobody's, and end the gateway.
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
      // What is small on the way and huge when it is unpacked must not come.
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
  if (encoding !== 'identity') throw refusal(`it comes packed as ${encoding}, and was asked for as it is`)
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
  const given = nameSaid(headers['content-disposition']) ?? decode(url.pathname.split('/').at(-1) ?? '')
  const extension = /\.[a-z\d]{1,15}$/i.test(given) ? '' : (EXTENSIONS[type.trim()] ?? '')
  const [name = ''] = safeFileNames([`${given === '' ? 'file' : given}${extension}`])
  return { name, ...(type.trim() !== '' && { type: type.trim() }) }
}

function nameSaid(disposition = ''): string | undefined {
  const encoded = /filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(disposition)?.[1]
  if (encoded !== undefined) return decode(encoded)
  const [, quoted, plain] = /filename\s*=\s*(?:"([^"]+)"|([^;\s"]+))/i.exec(disposition) ?? []
  return quoted ?? plain
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // With a percent sign that stands for itself.
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
  return new GatewayError('too_large', `it has more than the ${describeBytes(maxBytes)} that are allowed`)
}

function refusal(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('request_invalid', reason, { cause })
}
