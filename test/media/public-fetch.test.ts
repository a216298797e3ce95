import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { GatewayError } from '../../src/errors.js'
import { fetchPublic, type FetchOptions, type Network, requirePublicUrl } from '../../src/media/public-fetch.js'
import { listen } from '../kit/loopback.js'

const MAX_BYTES = 1_000
const NOT_PUBLIC = 'is not on the public internet, and files are fetched only from there'

/** The host names in these tests. Everything listens on 127.0.0.1, which counts as the public internet here. */
const ADDRESSES: Record<string, string[]> = {
  'public.test': ['127.0.0.1'],
  'cdn.test': ['127.0.0.1'],
  'private.test': ['127.0.0.2'],
  'mixed.test': ['127.0.0.1', '127.0.0.2'],
  'nowhere.test': [],
}

interface Asked {
  host: string | undefined
  url: string | undefined
  authorization: string | undefined
  encoding: string | undefined
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void

async function setup(answers: Record<string, Answer> = {}, more: Partial<Network> = {}) {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    const { host, authorization, 'accept-encoding': encoding } = request.headers
    asked.push({ host, url: request.url, authorization, encoding: String(encoding) })
    const answer = answers[request.url ?? '']
    if (answer) answer(response, request)
    else response.writeHead(404).end()
  })
  const port = await listen(server)
  const lookups: string[] = []
  const network: Network = {
    resolve: async (name) => {
      lookups.push(name)
      return (ADDRESSES[name] ?? []).map((address) => ({ address, family: 4 }))
    },
    isPublic: (address) => address === '127.0.0.1',
    ...more,
  }
  const get = (url: string, options: Partial<FetchOptions> = {}) =>
    fetchPublic(url, { signal: new AbortController().signal, maxBytes: MAX_BYTES, ...options }, network)
  return {
    asked,
    lookups,
    port,
    get,
    refusal: async (url: string, options?: Partial<FetchOptions>): Promise<string> => {
      const answer: unknown = await get(url, options).catch((error: unknown) => error)
      if (answer instanceof GatewayError && ['request_invalid', 'too_large'].includes(answer.code))
        return answer.message
      throw new Error('It was not refused', { cause: answer })
    },
  }
}

const text =
  (content: string, headers: Record<string, string> = { 'content-type': 'text/plain; charset=utf-8' }): Answer =>
  (response) =>
    response.writeHead(200, headers).end(content)

const redirect =
  (location: string, status = 302): Answer =>
  (response) =>
    response.writeHead(status, { location }).end('elsewhere')

it('fetches a file unchanged, from the address that the name resolves to', async () => {
  const { get, port, asked, lookups } = await setup({ '/a/report.txt?x=1': text('hello') })
  const file = await get(`http://public.test:${port}/a/report.txt?x=1#top`)
  expect([file, asked, lookups]).toEqual([
    { name: 'report.txt', type: 'text/plain', content: Buffer.from('hello') },
    [{ host: `public.test:${port}`, url: '/a/report.txt?x=1', authorization: undefined, encoding: 'identity' }],
    ['public.test'],
  ])
})

it.each<[what: string, path: string, headers: Record<string, string>, name: string]>([
  ['the path', '/a/b%20c.png', {}, 'b c.png'],
  ['the path, with an ending by its type', '/media/ME1', { 'content-type': 'image/jpeg' }, 'ME1.jpg'],
  ['nothing', '/', {}, 'file'],
  ['its type alone', '/', { 'content-type': 'application/pdf' }, 'file.pdf'],
  ['a path that would lead out', '/..%2f..%2fetc%2fpasswd', {}, 'etc-passwd'],
  ['a path with a plain percent sign', '/100%.png', {}, '100%.png'],
  ['what the server says', '/x', { 'content-disposition': 'attachment; filename="a b.csv"' }, 'a b.csv'],
  ['what it says without quotes', '/x', { 'content-disposition': 'inline; filename=a.csv' }, 'a.csv'],
  ['what it says in other letters', '/x', { 'content-disposition': "attachment; filename*=UTF-8''%C3%BC.md" }, 'ü.md'],
  ['what it says and must not', '/x', { 'content-disposition': 'attachment; filename="../.env"' }, 'env'],
])('names a file by %s', async (_, path, headers, name) => {
  const { get, port } = await setup({ [path]: text('x', headers) })
  expect((await get(`http://public.test:${port}${path}`)).name).toEqual(name)
})

it.each<[what: string, url: (port: number) => string, reason: (port: number) => string]>([
  [
    'a name with a private address',
    (port) => `http://private.test:${port}/`,
    (port) => `private.test:${port} ${NOT_PUBLIC}`,
  ],
  [
    'a name with one private address',
    (port) => `http://mixed.test:${port}/`,
    (port) => `mixed.test:${port} ${NOT_PUBLIC}`,
  ],
  ['a private address', (port) => `http://127.0.0.2:${port}/`, (port) => `127.0.0.2:${port} ${NOT_PUBLIC}`],
  ['one in hexadecimal', (port) => `http://0x7f000002:${port}/`, (port) => `127.0.0.2:${port} ${NOT_PUBLIC}`],
  ['one as a number', (port) => `http://2130706434:${port}/`, (port) => `127.0.0.2:${port} ${NOT_PUBLIC}`],
  [
    'one with letters of other scripts',
    (port) => `http://①②⑦.0.0.2:${port}/`,
    (port) => `127.0.0.2:${port} ${NOT_PUBLIC}`,
  ],
  ['one of IPv6', (port) => `http://[::1]:${port}/`, (port) => `[::1]:${port} ${NOT_PUBLIC}`],
  ['a mapped one', (port) => `http://[::ffff:127.0.0.1]:${port}/`, (port) => `[::ffff:7f00:1]:${port} ${NOT_PUBLIC}`],
  ['a name without an address', () => 'http://nowhere.test/', () => 'nowhere.test has no address'],
  [
    'a user in the address',
    (port) => `http://ann@public.test:${port}/`,
    () => 'its URL contains a user name or a password',
  ],
  [
    'a password in the address',
    (port) => `http://:x@public.test:${port}/`,
    () => 'its URL contains a user name or a password',
  ],
  ['a file', () => 'file:///etc/passwd', () => 'only http:// and https:// URLs are fetched'],
  ['another scheme', () => 'ftp://public.test/', () => 'only http:// and https:// URLs are fetched'],
  ['no address', () => 'public.test', () => 'only http:// and https:// URLs are fetched'],
])('refuses %s, and asks nothing', async (_, url, reason) => {
  const { refusal, port, asked } = await setup({ '/': text('secret') })
  expect([await refusal(url(port)), asked]).toEqual([reason(port), []])
})

it('looks a name up once, so that a second answer cannot lead elsewhere', async () => {
  const answers = [['127.0.0.1'], ['127.0.0.2'], ['127.0.0.2']]
  const { get, port } = await setup(
    { '/': text('public') },
    { resolve: async () => (answers.shift() ?? []).map((address) => ({ address, family: 4 })) },
  )
  const { content } = await get(`http://public.test:${port}/`)
  expect([content.toString(), answers.length]).toEqual(['public', 2])
})

it.each([301, 302, 303, 307, 308])('follows a redirect with the status %i', async (status) => {
  const { get, port } = await setup({ '/a': redirect('/b/c.txt', status), '/b/c.txt': text('there') })
  const { name, content } = await get(`http://public.test:${port}/a`)
  expect([name, content.toString()]).toEqual(['c.txt', 'there'])
})

it.each<[what: string, location: (port: number) => string, reason: (port: number) => string]>([
  ['a private name', (port) => `http://private.test:${port}/b`, (port) => `private.test:${port} ${NOT_PUBLIC}`],
  ['a private address', (port) => `//127.0.0.2:${port}/b`, (port) => `127.0.0.2:${port} ${NOT_PUBLIC}`],
  ['a file', () => 'file:///etc/passwd', () => 'only http:// and https:// URLs are fetched'],
  [
    'an address with a user',
    (port) => `http://a:b@public.test:${port}/b`,
    () => 'its URL contains a user name or a password',
  ],
  ['what is no address', () => 'http://', () => 'only http:// and https:// URLs are fetched'],
])('does not follow a redirect to %s', async (_, location, reason) => {
  const world: Record<string, Answer> = { '/b': text('secret') }
  const { refusal, port, asked } = await setup(world)
  world['/a'] = redirect(location(port))
  const answer = await refusal(`http://public.test:${port}/a`)
  expect([answer, asked.map(({ url }) => url)]).toEqual([reason(port), ['/a']])
})

it('follows five redirects, and not a sixth', async () => {
  const answers = Object.fromEntries(
    Array.from({ length: 6 }, (_, index) => [`/${index}`, redirect(`/${index + 1}`)] as const),
  )
  const { get, refusal, port } = await setup({ ...answers, '/6': text('end') })
  const { content } = await get(`http://public.test:${port}/1`)
  expect([content.toString(), await refusal(`http://public.test:${port}/0`)]).toEqual([
    'end',
    `public.test:${port} redirects more than 5 times`,
  ])
})

it('sends headers only to their own origin, and not after a redirect elsewhere', async () => {
  const world: Record<string, Answer> = { '/d': text('x') }
  const { get, port, asked } = await setup(world)
  world['/a'] = redirect('/b')
  world['/b'] = redirect(`http://cdn.test:${port}/c`)
  world['/c'] = redirect(`http://public.test:${port}/d`)
  await get(`http://public.test:${port}/a`, { headers: { authorization: 'Basic secret' } })
  expect(asked.map(({ url, authorization }) => [url, authorization])).toEqual([
    ['/a', 'Basic secret'],
    ['/b', 'Basic secret'],
    ['/c', undefined],
    ['/d', undefined],
  ])
})

it('needs no public address for the origin set by the operator', async () => {
  const world: Record<string, Answer> = { '/b': text('x') }
  const { get, port } = await setup(world, { isPublic: () => false })
  world['/a'] = redirect('/b')
  const trustedOrigin = `http://public.test:${port}`
  expect((await get(`${trustedOrigin}/a`, { trustedOrigin })).content.toString()).toEqual('x')
})

it.each<[what: string, start: string, path: string]>([
  ['that leads to a private one', 'operator.test', '/away'],
  ['to which a stranger leads', 'public.test', '/back'],
  ['that has led away before', 'operator.test', '/around'],
])('trusts no origin of the operator %s', async (_, start, path) => {
  const world: Record<string, Answer> = { '/b': text('secret') }
  let name = ''
  const { refusal, port, asked } = await setup(world, {
    resolve: async (hostname) => {
      name = hostname
      return [{ address: '127.0.0.1', family: 4 }]
    },
    isPublic: () => name === 'public.test',
  })
  world['/away'] = redirect(`http://private.test:${port}/b`)
  world['/back'] = redirect(`http://operator.test:${port}/b`)
  world['/around'] = redirect(`http://public.test:${port}/back`)
  const trustedOrigin = `http://operator.test:${port}`
  const answer = await refusal(`http://${start}:${port}${path}`, { trustedOrigin })
  expect([answer, asked.some(({ url }) => url === '/b')]).toEqual([
    `${path === '/away' ? 'private' : 'operator'}.test:${port} ${NOT_PUBLIC}`,
    false,
  ])
})

it.each<[what: string, answer: Answer]>([
  ['said', (response) => response.writeHead(200, { 'content-length': MAX_BYTES + 1 }).write('x')],
  ['not said', (response) => endless(response)],
])('stops at the largest size, when the size is %s', async (_, answer) => {
  const { refusal, port } = await setup({ '/': answer })
  expect(await refusal(`http://public.test:${port}/`)).toEqual('it is larger than the limit of 1000 bytes')
})

it('takes a file of exactly the largest size', async () => {
  const { get, port } = await setup({ '/': text('x'.repeat(MAX_BYTES)) })
  expect((await get(`http://public.test:${port}/`)).content.length).toEqual(MAX_BYTES)
})

it.each<[what: string, answer: Answer, reason: RegExp]>([
  ['another status', (response) => response.writeHead(403).end(), /^public\.test:\d+ answered with status 403$/],
  ['a redirect to nowhere', (response) => response.writeHead(302).end(), /answered with status 302$/],
  [
    'compressed content',
    (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(9_999))),
    /^the server compressed it \(gzip\), which was not requested$/,
  ],
  ['half a file', halfAFile, /^it cannot be reached \(ECONNRESET\)$/],
  [
    'not HTTP',
    (response) => response.socket?.end('220 mail.test\r\n'),
    /^it cannot be reached \(HPE_INVALID_CONSTANT\)$/,
  ],
])('reports %s', async (_, answer, reason) => {
  const { refusal, port } = await setup({ '/': answer })
  expect(await refusal(`http://public.test:${port}/`)).toMatch(reason)
})

it('reports an unknown name, and a port where nobody listens', async () => {
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
  const { refusal } = await setup({}, { resolve: () => Promise.reject(unknown) })
  const { refusal: refusalThere } = await setup()
  expect([await refusal('http://unknown.test/'), await refusalThere('http://public.test:1/')]).toEqual([
    'it cannot be reached (ENOTFOUND)',
    'it cannot be reached (ECONNREFUSED)',
  ])
})

it('reports a connection that fails before anybody could listen to it', async () => {
  // As it does for IPv6 if there is none.
  const { refusal } = await setup({}, { resolve: async () => [{ address: '127.0.0.1', family: 6 }] })
  expect(await refusal('http://public.test/')).toMatch(/^it cannot be reached \(E[A-Z]+\)$/)
})

it.each<[what: string, answers: Record<string, Answer>, more: Partial<Network>]>([
  ['does not answer', { '/': () => {} }, {}],
  ['does not finish', { '/': (response) => response.writeHead(200).write('x') }, {}],
  ['cannot be resolved', {}, { resolve: () => new Promise(() => {}) }],
])('waits no longer than its time for a server that %s', async (_, answers, more) => {
  const { refusal, port } = await setup(answers, more)
  expect(await refusal(`http://public.test:${port}/`, { timeoutMs: 100 })).toEqual('it took longer than 0.1 s')
})

it('does not start when its caller has aborted', async () => {
  const { get, port } = await setup({ '/': text('x') })
  const signal = AbortSignal.abort(new Error('stopped'))
  await expect(get(`http://public.test:${port}/`, { signal })).rejects.toThrow('stopped')
})

it("rejects with its caller's reason for aborting", async () => {
  const caller = new AbortController()
  const { get, port } = await setup({ '/': () => caller.abort(new Error('stopped')) })
  await expect(get(`http://public.test:${port}/`, { signal: caller.signal })).rejects.toThrow('stopped')
})

it('by default, requests nothing from this machine by any of its names', async () => {
  const { port, asked } = await setup({ '/': text('secret') })
  const hosts = ['localhost', '127.0.0.1', '127.1', '0', '[::]', '[::1]', '[::ffff:7f00:1]', 'LOCALHOST.', '0177.0.0.1']
  const answers = await Promise.all(
    hosts.map((host) =>
      fetchPublic(`http://${host}:${port}/`, { signal: new AbortController().signal, maxBytes: MAX_BYTES }).catch(
        (error: unknown) => error instanceof GatewayError,
      ),
    ),
  )
  expect([answers, asked]).toEqual([hosts.map(() => true), []])
})

function endless(response: ServerResponse): void {
  response.writeHead(200)
  const write = (): void => {
    while (!response.destroyed && response.write('x'.repeat(100)));
  }
  response.on('drain', write)
  write()
}

function halfAFile(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': 100 })
  response.write('x', () => response.destroy())
}

it('judges an address that others fetch by its text alone', () => {
  const judge = (url: string): string => {
    try {
      requirePublicUrl(url)
      return 'public'
    } catch (error) {
      return (error as GatewayError).message
    }
  }
  const hosts = ['localhost', 'printer', 'LOCALHOST.', 'nas.local', 'metadata.google.internal', '[::1]', '10.1.2.3']
  expect([
    ...hosts.map((host) => judge(`http://${host}/x.png`)),
    judge('http://2130706433/x.png'),
    judge('https://u:p@example.com/x.png'),
    judge('ftp://example.com/x.png'),
    judge('https://example.com/x.png'),
    judge('https://93.184.215.14/x.png'),
  ]).toEqual([
    ...hosts.map((host) => `${host.toLowerCase()} ${NOT_PUBLIC}`),
    `127.0.0.1 ${NOT_PUBLIC}`,
    'its URL contains a user name or a password',
    'only http:// and https:// URLs are fetched',
    'public',
    'public',
  ])
})
