import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { App } from '../../src/service/dependencies.js'
import { isLoopback } from '../../src/service/guards.js'
import { until } from '../kit/waiting.js'
import { allRoutes, bearer, createStage, pathFor, type Stage } from './app-stage.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

describe('every route, even one that does not exist,', () => {
  it('answers 421 to a foreign host', async () => {
    const { app, dependencies, tokenWith } = await createStage()
    const routes = [...allRoutes(dependencies), { method: 'GET', url: '/nowhere' }, { method: 'GET', url: '/%zz' }]
    const headers = { ...bearer(await tokenWith('admin')), host: 'evil.example' }
    const answers = await Promise.all(
      routes.map(async ({ method, url }) => {
        const response = await app.inject({ method: method as 'GET', url: pathFor(url), headers })
        return [method, url, response.statusCode, response.json().error.code]
      }),
    )
    expect(answers).toEqual(routes.map(({ method, url }) => [method, url, 421, 'host_unknown']))
  })

  it('answers 403 to a foreign origin, and allows none to read', async () => {
    const { app, dependencies, tokenWith } = await createStage()
    const routes = [...allRoutes(dependencies), { method: 'GET', url: '/nowhere' }, { method: 'OPTIONS', url: '/docs' }]
    const headers = { ...bearer(await tokenWith('admin')), host: 'localhost', origin: 'https://evil.example' }
    const answers = await Promise.all(
      routes.map(async ({ method, url }) => {
        const response = await app.inject({ method: method as 'GET', url: pathFor(url), headers })
        return [method, url, response.statusCode, response.headers['access-control-allow-origin']]
      }),
    )
    expect(answers).toEqual(routes.map(({ method, url }) => [method, url, 403, undefined]))
  })

  it('answers 413 to a body of 20 MB, if it takes one that is no file', async () => {
    const { app, dependencies, tokenWith } = await createStage()
    const routes = allRoutes(dependencies).filter(({ method, url }) => method !== 'GET' && !url.endsWith('/files'))
    const headers = { ...bearer(await tokenWith('admin')), 'content-type': 'application/json' }
    const payload = `"${'x'.repeat(20 * 1024 * 1024)}"`
    const answers: unknown[] = []
    for (const { method, url } of routes) {
      const response = await app.inject({ method: method as 'POST', url: pathFor(url), headers, payload })
      answers.push([method, url, response.statusCode, response.json().error.code, response.headers.connection])
    }
    expect(answers).toEqual(routes.map(({ method, url }) => [method, url, 413, 'too_large', 'close']))
  })
})

describe('the host', () => {
  it('is a name of this machine with the port that it listens on, or a configured one', async () => {
    const stage = await createStage({
      environment: { HTTP_ALLOWED_HOSTS: 'gateway.example, other.example:8443' },
      addRoutes,
    })
    const port = await listen(stage)
    const hosts = [
      `localhost:${port}`,
      `LOCALHOST:${port}`,
      `127.0.0.1:${port}`,
      `[::1]:${port}`,
      'gateway.example',
      `gateway.example:${port}`,
      'gateway.example:443',
      'other.example:8443',
    ]
    expect(await Promise.all(hosts.map((host) => statusFor(port, { host })))).toEqual(hosts.map(() => 200))
  })

  it('is nothing else', async () => {
    const stage = await createStage({ environment: { HTTP_ALLOWED_HOSTS: 'other.example:8443' }, addRoutes })
    const port = await listen(stage)
    const hosts = [
      'localhost',
      'localhost:1',
      `localhost.:${port}`,
      `localhost.evil.example:${port}`,
      `evil.example:${port}`,
      `user@localhost:${port}`,
      `localhost:${port}/`,
      `0.0.0.0:${port}`,
      'other.example',
      `other.example:${port}`,
      '',
    ]
    expect(await Promise.all(hosts.map((host) => statusFor(port, { host })))).toEqual(hosts.map(() => 421))
  })

  it('is the address that a client reached, if the gateway listens on all', async () => {
    const stage = await createStage({ environment: { HTTP_HOST: '0.0.0.0' }, addRoutes })
    const port = await listen(stage)
    const hosts = [`127.0.0.1:${port}`, `0.0.0.0:${port}`]
    expect(await Promise.all(hosts.map((host) => statusFor(port, { host })))).toEqual([200, 421])
  })
})

describe('the origin', () => {
  it('is left out or that of the host itself', async () => {
    const stage = await createStage({ addRoutes })
    const port = await listen(stage)
    const host = `localhost:${port}`
    const origins = [
      `http://localhost:${port}`,
      `https://localhost:${port}`,
      'http://localhost',
      'http://localhost:3000',
      `http://127.0.0.1:${port}`,
      `http://localhost:${port}.evil.example`,
      'null',
      '',
    ]
    const statuses = await Promise.all(origins.map((origin) => statusFor(port, { host, origin })))
    expect(statuses).toEqual([200, 200, 403, 403, 403, 403, 403, 403])
  })
})

describe('isLoopback', () => {
  it('knows the addresses that only this machine reaches', () => {
    const hosts = ['localhost', '127.0.0.1', '127.8.9.1', '::1', '0.0.0.0', '::', '192.168.1.1', '127.evil.example']
    expect(hosts.map(isLoopback)).toEqual([true, true, true, true, false, false, false, false])
  })
})

describe('the limits', () => {
  it('count per token, and without a token per address, so that strangers lock nobody out', async () => {
    const { app, tokenWith } = await createStage({
      limits: { requestsPerMinute: 2, strangerRequestsPerMinute: 3 },
      addRoutes,
    })
    const good = bearer(await tokenWith('read'))
    const ask = async (headers: Record<string, string>): Promise<number> =>
      (await app.inject({ url: '/read', headers })).statusCode
    const statuses: number[] = []
    for (const token of ['one', 'two', 'three', 'four']) statuses.push(await ask(bearer(token)))
    for (const headers of [good, good, good]) statuses.push(await ask(headers))
    expect(statuses).toEqual([401, 401, 401, 429, 200, 200, 429])
  })

  it('do not hold for /ready, so that strangers shut no balancer out', async () => {
    const { app } = await createStage({ limits: { strangerRequestsPerMinute: 1 } })
    const statuses: number[] = []
    for (const url of ['/docs', '/docs', '/ready', '/ready']) statuses.push((await app.inject(url)).statusCode)
    expect(statuses).toEqual([200, 429, 200, 200])
  })

  it('say when to come back', async () => {
    const { app } = await createStage({ limits: { strangerRequestsPerMinute: 1 } })
    await app.inject('/docs')
    const response = await app.inject('/nowhere')
    expect([response.statusCode, response.json(), Number(response.headers['retry-after']) > 0]).toEqual([
      429,
      {
        error: {
          code: 'too_many',
          message: expect.stringMatching(/^Too many requests from this address\. Try again in/),
        },
      },
      true,
    ])
  })

  it('apply to requests and streams separately, and let clients in again who wait', async () => {
    const stage = await createStage({ limits: { openRequests: 1, openStreams: 1 }, addRoutes })
    const port = await listen(stage)
    const headers = { host: `localhost:${port}`, ...bearer(await stage.tokenWith('read')) }
    const [slow, stream] = [openRequest(port, '/slow', headers), openRequest(port, '/stream', headers)]
    await until(async () => (await statusFor(port, headers, '/public')) === 503, 'that no more is taken')
    await until(async () => (await statusFor(port, headers, '/stream')) === 503, 'that no more streams are taken')
    slow.destroy()
    stream.destroy()
    await until(async () => (await statusFor(port, headers, '/public')) === 200, 'that more is taken again')
    expect(await statusFor(port, headers, '/read')).toBe(200)
  })

  it('leave streams for others when one token has as many as it may', async () => {
    const stage = await createStage({ limits: { openStreamsOfToken: 1 }, addRoutes })
    const port = await listen(stage)
    const [headers, others] = [
      { host: `localhost:${port}`, ...bearer(await stage.tokenWith('read')) },
      { host: `localhost:${port}`, ...bearer(await stage.tokenWith('read')) },
    ]
    const stream = openRequest(port, '/stream', headers)
    await until(async () => (await statusFor(port, headers, '/stream')) === 503, 'no place')
    const status = await statusFor(port, others, '/stream')
    stream.destroy()
    await until(async () => (await statusFor(port, headers, '/stream')) === 200, 'a place')
    expect(status).toBe(200)
  })
})

describe('strangers', () => {
  const unfinished = (path: string, headers: Record<string, string> = {}): string =>
    [
      `POST ${path} HTTP/1.1`,
      ...Object.entries({ 'content-type': 'application/json', ...headers }).map(([name, value]) => `${name}: ${value}`),
      'content-length: 50',
      '\r\n{',
    ].join('\r\n')

  it('with requests that never end keep out neither tokens nor logins nor /ready', async () => {
    const limits = { openRequests: 2, openStrangers: 2, openPlatformRequests: 2 }
    const stage = await createStage({ limits, addRoutes })
    const port = await listen(stage)
    const host = `localhost:${port}`
    const token = await stage.tokenWith('read')
    for (const path of ['/login', '/login', '/login', '/platform', '/platform', '/platform']) {
      const socket = connect(port, '127.0.0.1')
      onTestFinished(() => void socket.destroy())
      // `expect` makes the server answer once it has read the headers.
      socket.write(unfinished(path, { host, expect: '100-continue' }))
      await once(socket, 'data')
    }
    const login = await fetch(`http://127.0.0.1:${port}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    })
    expect([
      await statusFor(port, { host, ...bearer(token) }, '/read'),
      await statusFor(port, { host }, '/ready'),
      await statusFor(port, { host }, '/public'),
      login.status,
    ]).toEqual([200, 200, 200, 200])
  })

  it('are refused if all their requests are busy, and nobody else is', async () => {
    const stage = await createStage({ limits: { openStrangers: 1 }, addRoutes })
    const port = await listen(stage)
    const host = `localhost:${port}`
    const slow = openRequest(port, '/slow-public', { host })
    await until(async () => (await statusFor(port, { host }, '/public')) === 503, 'that no stranger is taken')
    const good = await statusFor(port, { host, ...bearer(await stage.tokenWith('read')) }, '/read')
    slow.destroy()
    expect(good).toBe(200)
  })

  it('have less time than others to send a request', async () => {
    const stage = await createStage({ limits: { strangerBodyMs: 20 }, addRoutes })
    const port = await listen(stage)
    const host = `localhost:${port}`
    const known = connect(port, '127.0.0.1')
    known.write(unfinished('/tickets', { host, connection: 'close', ...bearer(await stage.tokenWith('read')) }))
    const told = await Promise.all(
      ['/login', '/platform'].map((path) => {
        const socket = connect(port, '127.0.0.1')
        socket.write(unfinished(path, { host }))
        return text(socket)
      }),
    )
    known.write(' '.repeat(48) + '}')
    expect([...told, await text(known)].map((answer) => answer.split('\r\n')[0])).toEqual([
      'HTTP/1.1 408 Request Timeout',
      'HTTP/1.1 408 Request Timeout',
      'HTTP/1.1 400 Bad Request',
    ])
    expect(stage.logged.filter((line) => line.includes('http.failed'))).toEqual([])
  })

  it('who guess tokens do not block the dashboard for their address', async () => {
    const dashboardDirectory = temporaryDirectory()
    writeFileSync(join(dashboardDirectory, 'index.html'), 'hello')
    const { app } = await createStage({ limits: { strangerRequestsPerMinute: 1 }, dashboardDirectory })
    const statuses: number[] = []
    for (const url of ['/me', '/me', '/', '/assets/none.js']) statuses.push((await app.inject(url)).statusCode)
    expect(statuses).toEqual([401, 429, 200, 404])
  })
})

describe('a long body', () => {
  it('is refused before it comes, and the connection with it', async () => {
    const stage = await createStage()
    const port = await listen(stage)
    const token = await stage.tokenWith('admin')
    const answers = await Promise.all(
      [`authorization: Bearer ${token}`, 'x-no-token: 1'].map(async (line) => {
        const socket = connect(port, '127.0.0.1')
        const head = ['POST /tickets HTTP/1.1', `host: localhost:${port}`, 'content-type: application/json', line]
        socket.write(`${head.join('\r\n')}\r\ncontent-length: 20971520\r\n\r\n`)
        return (await text(socket)).split('\r\n')[0]
      }),
    )
    expect(answers).toEqual(['HTTP/1.1 413 Payload Too Large', 'HTTP/1.1 401 Unauthorized'])
  })
})

describe('a request to two hosts', () => {
  it.each([
    ['by two headers', 'GET /ready HTTP/1.1\r\nhost: localhost:PORT\r\nHost: evil.example', 400],
    ['by its target', 'GET http://evil.example/ready HTTP/1.1\r\nhost: localhost:PORT', 421],
    ['by a target of ours', 'GET http://localhost:PORT/ready HTTP/1.1\r\nhost: localhost:PORT', 200],
  ])('%s gets %s', async (_, head, status) => {
    const port = await listen(await createStage())
    const socket = connect(port, '127.0.0.1')
    socket.write(`${head.replaceAll('PORT', String(port))}\r\nconnection: close\r\n\r\n`)
    expect((await text(socket)).split(' ')[1]).toBe(String(status))
  })
})

describe('a body', () => {
  it('may be left out if none is needed, and must be JSON if there is one', async () => {
    const { app, tokenWith } = await createStage()
    const ask = async (type: string, payload: string) => {
      const headers = { ...bearer(await tokenWith('admin')), 'content-type': type }
      const { statusCode, body } = await app.inject({ method: 'POST', url: '/tickets', headers, payload })
      return [statusCode, (JSON.parse(body) as { error: { message: string } }).error.message]
    }
    expect([
      await ask('application/json', ''),
      await ask('application/json', '{"path"'),
      await ask('text/csv', 'a,b'),
    ]).toEqual([
      [400, expect.stringMatching(/^Invalid request\. body: /)],
      [400, 'The body is not valid JSON. Check quotes, commas and line breaks.'],
      [415, 'The body must be JSON. Send it with "content-type: application/json".'],
    ])
  })
})

describe('invalid requests', () => {
  it('is answered in the same shape', async () => {
    const stage = await createStage()
    const port = await listen(stage)
    const socket = connect(port, '127.0.0.1')
    socket.end('this is not HTTP\r\n\r\n')
    const [head, body = ''] = (await text(socket)).split('\r\n\r\n')
    expect([head?.split('\r\n')[0], JSON.parse(body)]).toEqual([
      'HTTP/1.1 400 Bad Request',
      {
        error: {
          code: 'request_invalid',
          message: 'Incomplete or malformed HTTP request. Check what the client sends.',
        },
      },
    ])
  })
})

function addRoutes(app: App): void {
  app.get('/public', { config: { scope: 'public' } }, async () => 'hello')
  app.get('/slow-public', { config: { scope: 'public' } }, async ({ signal }) => {
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve)
    })
  })
  app.post('/platform', { config: { scope: 'public', isPlatform: true } }, async () => 'hello')
  app.get('/read', { config: { scope: 'read' } }, async () => 'hello')
  app.get('/slow', { config: { scope: 'read' } }, async ({ signal }) => {
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve)
    })
  })
  app.get('/stream', { config: { scope: 'read', isStream: true } }, async (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
    reply.raw.write(': hello\n\n')
  })
}

async function listen({ app, config }: Stage): Promise<number> {
  await app.listen({ host: config.httpHost, port: 0 })
  const address = app.server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

function openRequest(port: number, path: string, headers: Record<string, string>): ReturnType<typeof httpRequest> {
  const request = httpRequest({ host: '127.0.0.1', port, path, headers })
  // The test ends it, which the client reports as an error.
  request.on('error', () => request.destroy())
  request.end()
  return request
}

function statusFor(port: number, headers: Record<string, string>, path = '/public'): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, headers, setHost: false }, (response) => {
      resolve(response.statusCode)
      response.destroy()
    })
    request.on('error', reject)
    request.end()
  })
}
