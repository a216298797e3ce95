import { describe, expect, it } from 'vitest'
import { hashOf, newToken } from '../../src/service/auth.js'
import type { App } from '../../src/service/dependencies.js'
import { SCOPES } from '../../src/store/tokens.js'
import { allRoutes, bearer, createStage, pathFor, START_AT } from './app-stage.js'

describe('every route', () => {
  it('that is not public answers 401 without a token', async () => {
    const { app, dependencies } = await createStage()
    const routes = allRoutes(dependencies).filter(({ scope }) => scope !== 'public')
    const answers = await Promise.all(
      routes.map(async ({ method, url }) => {
        const response = await app.inject({ method: method as 'GET', url: pathFor(url) })
        return [method, url, response.statusCode, response.json().error.code, response.headers['www-authenticate']]
      }),
    )
    expect(answers).toEqual(routes.map(({ method, url }) => [method, url, 401, 'unauthorized', 'Bearer']))
  })

  it('answers 401 to a token that nobody made', async () => {
    const { app, dependencies } = await createStage()
    const routes = allRoutes(dependencies).filter(({ scope }) => scope !== 'public')
    const headers = bearer(newToken())
    const answers = await Promise.all(
      routes.map(async ({ method, url }) => {
        return [url, (await app.inject({ method: method as 'GET', url: pathFor(url), headers })).statusCode]
      }),
    )
    expect(answers).toEqual(routes.map(({ url }) => [url, 401]))
  })

  it('answers 403 to a token of the scope before its own', async () => {
    const { app, dependencies, tokenWith } = await createStage()
    const routes = allRoutes(dependencies).filter(({ scope }) => scope === 'run' || scope === 'admin')
    const answers = await Promise.all(
      routes.map(async ({ method, url, scope }) => {
        const lesser = SCOPES[SCOPES.findIndex((known) => known === scope) - 1] ?? 'read'
        const headers = bearer(await tokenWith(lesser))
        const response = await app.inject({ method: method as 'GET', url: pathFor(url), headers })
        return [method, url, response.statusCode, response.json().error.code]
      }),
    )
    expect(answers).toEqual(routes.map(({ method, url }) => [method, url, 403, 'forbidden']))
  })

  it('under a project answers 403 to a token of another project', async () => {
    const { app, dependencies, tokenWith } = await createStage()
    const routes = allRoutes(dependencies).filter(({ url }) => url.startsWith('/projects/:id'))
    const headers = bearer(await tokenWith('admin', { projects: ['other'] }))
    const answers = await Promise.all(
      routes.map(async ({ method, url }) => {
        return [method, url, (await app.inject({ method: method as 'GET', url: pathFor(url), headers })).statusCode]
      }),
    )
    expect(answers).toEqual(routes.map(({ method, url }) => [method, url, 403]))
  })
})

describe('a route', () => {
  it('without a scope is refused when it is registered', async () => {
    const { app } = await createStage()
    expect(() => app.get('/open', async () => 'hello')).toThrow('The route GET /open has no scope.')
  })
})

describe('a token', () => {
  it('lets in tokens of its scope or a greater one, and tells the route which', async () => {
    const { app, tokenWith } = await createStage({ addRoutes })
    const answers = await Promise.all(
      SCOPES.map(async (scope) => {
        const response = await app.inject({ url: '/run', headers: bearer(await tokenWith(scope)) })
        return [scope, response.statusCode]
      }),
    )
    expect(answers).toEqual([
      ['read', 403],
      ['run', 200],
      ['admin', 200],
    ])
  })

  it('of projects reaches theirs, and beside them what says that it may', async () => {
    const { app, tokenWith } = await createStage({ addRoutes })
    const headers = bearer(await tokenWith('admin', { projects: ['site'] }))
    const answers = await Promise.all(
      ['/projects/site/x', '/projects/other/x', '/projects/%73ite/x', '/run', '/shared'].map(async (url) => {
        return [url, (await app.inject({ url, headers })).statusCode]
      }),
    )
    expect(answers).toEqual([
      ['/projects/site/x', 200],
      ['/projects/other/x', 403],
      ['/projects/%73ite/x', 200],
      ['/run', 403],
      ['/shared', 200],
    ])
  })

  it('is worth nothing from the moment it is replaced or removed', async () => {
    const { app, store, tokenWith } = await createStage({ addRoutes })
    const [first, second] = [await tokenWith('run'), await tokenWith('run')]
    const ask = async (token: string): Promise<number> =>
      (await app.inject({ url: '/run', headers: bearer(token) })).statusCode
    const before = [await ask(first), await ask(second)]
    await store.tokens.replace((await store.tokens.find(hashOf(first)))?.id ?? '', hashOf('aet_another'))
    await store.tokens.remove((await store.tokens.find(hashOf(second)))?.id ?? '')
    expect([before, [await ask(first), await ask(second)], await ask('aet_another')]).toEqual([
      [200, 200],
      [401, 401],
      200,
    ])
  })

  it('expires', async () => {
    const { app, clock, tokenWith } = await createStage({ addRoutes })
    const headers = bearer(await tokenWith('run', { expiresAt: START_AT + 1000 }))
    const before = await app.inject({ url: '/run', headers })
    clock.now += 1000
    const after = await app.inject({ url: '/run', headers })
    expect([before.statusCode, after.statusCode, after.json()]).toEqual([
      200,
      401,
      {
        error: {
          code: 'unauthorized',
          message: 'This token has expired. Create another with "aetheel tokens create".',
        },
      },
    ])
  })

  it('notes its use at most once a minute', async () => {
    const { app, store, clock, tokenWith } = await createStage({ addRoutes })
    const headers = bearer(await tokenWith('run'))
    const uses: Array<number | undefined> = []
    for (const waitMs of [0, 59_999, 1]) {
      clock.now += waitMs
      await app.inject({ url: '/run', headers })
      // The use is recorded in the background; this query waits for it, as SQLite has one connection.
      uses.push((await store.tokens.list())[0]?.usedAt)
    }
    expect(uses).toEqual([START_AT, START_AT, START_AT + 60_000])
  })

  it('is nowhere in the database, nor in the log', async () => {
    const { app, store, logged, tokenWith } = await createStage({ addRoutes })
    const token = await tokenWith('run')
    await app.inject({ url: `/run?token=${token}`, headers: bearer(token) })
    const kept = JSON.stringify([await store.tokens.find(hashOf(token)), logged])
    expect([kept.includes(token), token]).toEqual([false, expect.stringMatching(/^aet_[\w-]{43}$/)])
  })

  it('is not taken from a URL, nor in another form than Bearer', async () => {
    const { app, tokenWith } = await createStage({ addRoutes })
    const token = await tokenWith('admin')
    const attempts = [
      { url: `/run?token=${token}` },
      { url: `/run?access_token=${token}` },
      { url: `/run?ticket=${token}` },
      { url: '/run', headers: { authorization: token } },
      { url: '/run', headers: { authorization: `Basic ${token}` } },
      { url: '/run', headers: { authorization: `Bearer ${token} ${token}` } },
      { url: '/run', headers: { cookie: `token=${token}` } },
    ]
    const statuses = await Promise.all(attempts.map(async (attempt) => (await app.inject(attempt)).statusCode))
    expect(statuses).toEqual(attempts.map(() => 401))
  })
})

describe('a database that is away', () => {
  it('is said to be, and lets nobody in', async () => {
    const { app, store, logged, tokenWith } = await createStage({ addRoutes })
    const headers = bearer(await tokenWith('run'))
    store.tokens.find = () => Promise.reject(new Error('connection lost'))
    const response = await app.inject({ url: '/run', headers })
    const line = logged.map((text) => JSON.parse(text)).find(({ msg }) => msg === 'http.failed')
    expect([response.statusCode, response.json(), line.cause]).toEqual([
      503,
      {
        error: {
          code: 'store_unavailable',
          message: 'The database does not answer, so tokens cannot be checked. Try again later.',
        },
      },
      'connection lost',
    ])
  })
})

describe('an open stream', () => {
  it.each(['removed', 'replaced'])('ends when its token is %s', async (how) => {
    const { app, store, tokenWith } = await createStage({ limits: { streamTokenCheckMs: 20 }, addRoutes })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const response = await fetch(`${url}/stream`, { headers: bearer(await tokenWith('read')) })
    const read = response.text()
    const [token] = await store.tokens.list()
    if (how === 'removed') await store.tokens.remove(token?.id ?? '')
    else await store.tokens.replace(token?.id ?? '', hashOf(newToken()))
    expect([response.status, await read]).toEqual([200, ': open\n\n'])
  })

  it('ends when its token is for other projects since', async () => {
    const { app, store, tokenWith } = await createStage({ limits: { streamTokenCheckMs: 20 }, addRoutes })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const headers = bearer(await tokenWith('read', { projects: ['site', 'shop'] }))
    const response = await fetch(`${url}/stream`, { headers })
    const read = response.text()
    await store.tokens.forgetProject('shop')
    expect([response.status, await read]).toEqual([200, ': open\n\n'])
  })

  it('stays open while the database is unavailable', async () => {
    const { app, store, tokenWith } = await createStage({ limits: { streamTokenCheckMs: 5 }, addRoutes })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    let lookups = 0
    const response = await fetch(`${url}/stream`, { headers: bearer(await tokenWith('read')) })
    store.tokens.find = () => {
      lookups += 1
      return Promise.reject(new Error('connection lost'))
    }
    const read = response.text()
    await expect.poll(() => lookups).toBeGreaterThan(3)
    const state = await Promise.race([read.then(() => 'ended'), Promise.resolve('open')])
    await app.close()
    expect(state).toBe('open')
  })
})

function addRoutes(app: App): void {
  app.get('/stream', { config: { scope: 'read', isStream: true, allowsProjectTokens: true } }, (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
    reply.raw.write(': open\n\n')
  })
  app.get('/run', { config: { scope: 'run' } }, async ({ caller }) => caller)
  app.get('/shared', { config: { scope: 'read', allowsProjectTokens: true } }, async ({ caller }) => caller)
  app.get('/projects/:id/x', { config: { scope: 'read' } }, async ({ caller }) => caller)
}
