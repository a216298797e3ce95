import { describe, expect, it } from 'vitest'
import { hashOf, newToken } from '../../src/service/auth.js'
import type { App } from '../../src/service/dependencies.js'
import { createStage, START_AT } from './app-stage.js'

interface Kept extends Record<string, string> {
  cookie: string
  'x-aetheel-page-key': string
}

type Visit = (method: string, path: string, headers?: Record<string, string>, body?: object) => Promise<Response>

/** The app on a socket, and requests to it as a browser or a program sends them. */
async function open(options: Parameters<typeof createStage>[0] = {}) {
  const stage = await createStage({ addRoutes, ...options })
  const url = await stage.app.listen({ host: '127.0.0.1', port: 0 })
  const visit: Visit = (method, path, headers = {}, body) =>
    fetch(`${url}${path}`, {
      method,
      headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
  /** What the browser sends from then on. */
  const login = async (token: string): Promise<Kept> => {
    const response = await visit('POST', '/login', { origin: url }, { token })
    const { page_key: pageKey } = (await response.json()) as { page_key: string }
    return { cookie: response.headers.get('set-cookie')?.split(';')[0] ?? '', 'x-aetheel-page-key': pageKey }
  }
  return { ...stage, url, visit, login }
}

describe('a login', () => {
  it('is kept in a cookie that no script reads and a key that no other origin has, neither of them the token', async () => {
    const { url, visit, tokenWith } = await open()
    const token = await tokenWith('run', { projects: ['site'] })
    const response = await visit('POST', '/login', { origin: url }, { token: ` ${token}\n` })
    const cookie = response.headers.get('set-cookie') ?? ''
    const body = (await response.json()) as { page_key: string }
    const name = `aetheel_login_${new URL(url).port}`
    expect([response.status, body, cookie, cookie.includes(token), cookie.includes(body.page_key)]).toEqual([
      200,
      { name: 'run', scopes: ['read', 'run'], projects: ['site'], page_key: expect.stringMatching(/^[\w-]{43}$/) },
      expect.stringMatching(new RegExp(`^${name}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000$`)),
      false,
      false,
    ])
  })

  it('is of no use to another program on this host, which gets only the cookie', async () => {
    const { visit, login, tokenWith } = await open()
    const { cookie } = await login(await tokenWith('admin'))
    const secret = cookie.split('=')[1] ?? ''
    const tries = [
      { cookie },
      { authorization: `Bearer ${secret}` },
      { cookie, 'x-aetheel-page-key': '' },
      { cookie, 'x-aetheel-page-key': secret },
      { cookie, 'x-aetheel-page-key': newToken() },
    ]
    const statuses = await Promise.all(tries.map(async (headers) => (await visit('GET', '/me', headers)).status))
    expect(statuses).toEqual(tries.map(() => 401))
  })

  it('hides its token from then on, and nothing that is no token', async () => {
    const { login, tokenWith, dependencies } = await open()
    const [token, invented] = [await tokenWith('read'), newToken()]
    for (const tried of [token, invented]) await login(tried)
    const { scrubber } = dependencies.gateway
    expect([scrubber.scrub(token).includes(token), scrubber.scrub(invented)]).toEqual([false, invented])
  })

  it('ends the one before it in the same browser, and after 30 days', async () => {
    const { url, clock, visit, login, tokenWith } = await open()
    const token = await tokenWith('read')
    const first = await login(token)
    const response = await visit('POST', '/login', { origin: url, ...first }, { token })
    const { page_key: pageKey } = (await response.json()) as { page_key: string }
    const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
    const second = { cookie, 'x-aetheel-page-key': pageKey }
    const statuses = [(await visit('GET', '/me', first)).status, (await visit('GET', '/me', second)).status]
    clock.now += 30 * 86_400_000
    statuses.push((await visit('GET', '/me', second)).status)
    expect(statuses).toEqual([401, 200, 401])
  })

  it('counts for the rate of its token, as does each login with it', async () => {
    const { visit, login, tokenWith } = await open({ limits: { requestsPerMinute: 5 } })
    const token = await tokenWith('read')
    const logins = [await login(token), await login(token), await login(token)]
    const statuses: number[] = []
    for (const kept of logins) statuses.push((await visit('GET', '/me', kept)).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  it('sets a cookie only for TLS if the page came by it', async () => {
    const { url, visit, tokenWith } = await open()
    const origin = url.replace('http:', 'https:')
    const response = await visit('POST', '/login', { origin }, { token: await tokenWith('read') })
    expect(response.headers.get('set-cookie')).toMatch(/; Secure$/)
  })

  it('of a token that is unknown or has expired is refused, without a cookie', async () => {
    const { visit, clock, tokenWith } = await open()
    const old = await tokenWith('admin', { expiresAt: START_AT + 1 })
    clock.now += 2
    const answers = await Promise.all(
      [newToken(), old, '', 'aet_; Path=/'].map(async (token) => {
        const response = await visit('POST', '/login', {}, { token })
        return [response.status, response.headers.get('set-cookie')]
      }),
    )
    expect(answers).toEqual([1, 2, 3, 4].map(() => [401, null]))
  })

  it('with an unknown token is tried as often as any from one address, which keeps no good one out', async () => {
    const { visit, tokenWith } = await open({ limits: { strangerRequestsPerMinute: 2 } })
    const good = await tokenWith('admin')
    const statuses: number[] = []
    for (const token of [newToken(), newToken(), newToken(), good]) {
      statuses.push((await visit('POST', '/login', {}, { token })).status)
    }
    expect(statuses).toEqual([401, 401, 429, 200])
  })

  it('comes from no page of another origin', async () => {
    const { visit, tokenWith } = await open()
    const token = await tokenWith('admin')
    const response = await visit('POST', '/login', { origin: 'https://evil.example' }, { token })
    expect([response.status, response.headers.get('set-cookie')]).toEqual([403, null])
  })
})

describe('a login by the code of a link', () => {
  it('works once, with the rights of a token for everything', async () => {
    const { visit, url, codes, tokenWith, logged } = await open()
    await tokenWith('read')
    await tokenWith('admin')
    const { code } = codes.issue()
    const first = await visit('POST', '/login/code', { origin: url }, { code })
    const { page_key: pageKey } = (await first.json()) as { page_key: string }
    const cookie = first.headers.get('set-cookie')?.split(';')[0] ?? ''
    const me = await visit('GET', '/me', { cookie, 'x-aetheel-page-key': pageKey })
    const second = await visit('POST', '/login/code', { origin: url }, { code })
    expect({
      me: await me.json(),
      second: [second.status, second.headers.get('set-cookie'), await second.json()],
      isLogged: logged.some((line) => line.includes(code)),
    }).toEqual({
      me: { name: 'admin', scopes: ['read', 'run', 'admin'], projects: null },
      second: [
        401,
        null,
        {
          error: {
            code: 'unauthorized',
            message: 'This link was already used or has expired. Get a new one with "aetheel dashboard".',
          },
        },
      ],
      isLogged: false,
    })
  })

  it('makes a token for it where nobody has one for everything, and no second one', async () => {
    const { visit, url, codes, tokenWith, store } = await open()
    await tokenWith('admin', { projects: ['site'] })
    await tokenWith('admin', { expiresAt: START_AT })
    for (const { code } of [codes.issue(), codes.issue()]) {
      expect((await visit('POST', '/login/code', { origin: url }, { code })).status).toBe(200)
    }
    expect((await store.tokens.list()).map(({ name }) => name).toSorted()).toEqual(['admin', 'admin', 'dashboard'])
  })

  it('is too late after ten minutes', async () => {
    const { visit, url, codes, clock } = await open()
    const [late, good] = [codes.issue(), codes.issue()]
    clock.now = late.expiresAt
    const refused = (await visit('POST', '/login/code', { origin: url }, { code: late.code })).status
    clock.now = good.expiresAt - 1
    const taken = (await visit('POST', '/login/code', { origin: url }, { code: good.code })).status
    expect([late.expiresAt - START_AT, refused, taken]).toEqual([600_000, 401, 200])
  })

  it('is tried as often as any request from one address, and by no page of another origin', async () => {
    const { visit, url, codes } = await open({ limits: { strangerRequestsPerMinute: 2 } })
    const statuses: number[] = []
    for (const origin of [url, url, url]) {
      statuses.push((await visit('POST', '/login/code', { origin }, { code: newToken() })).status)
    }
    const foreign = await visit('POST', '/login/code', { origin: 'https://evil.example' }, { code: codes.issue().code })
    expect([statuses, foreign.status]).toEqual([[401, 401, 429], 403])
  })
})

describe('a cookie', () => {
  it('is as good as its token, in whatever company', async () => {
    const { visit, login, tokenWith } = await open()
    const { cookie, ...key } = await login(await tokenWith('read'))
    const none = cookie.replace(/=.*/, '=')
    const cookies = [cookie, `theme=dark; ${cookie}; a=b`, `x${cookie}`, `theme=${cookie}`, none]
    const statuses = await Promise.all(
      cookies.map(async (sent) => (await visit('GET', '/me', { ...key, cookie: sent })).status),
    )
    expect(statuses).toEqual([200, 200, 401, 401, 401])
  })

  it('opens event streams', async () => {
    const { visit, login, tokenWith } = await open()
    const kept = await login(await tokenWith('read'))
    const response = await visit('GET', '/stream', { ...kept, 'sec-fetch-site': 'same-origin' })
    expect([response.status, await response.text()]).toEqual([200, ': open\n\n'])
  })

  it('changes something only for a page of this gateway', async () => {
    const { url, visit, login, tokenWith } = await open()
    const kept = await login(await tokenWith('admin'))
    const senders = [
      { origin: url },
      { origin: url, 'sec-fetch-site': 'same-origin' },
      // A form in a browser that hides its origin, a program, another port of this host, and another site.
      { origin: 'null' },
      {},
      { origin: 'http://127.0.0.1:1' },
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'same-site' },
      { origin: url, 'sec-fetch-site': 'cross-site' },
    ]
    const statuses = await Promise.all(
      senders.map(async (sender) => (await visit('POST', '/change', { ...kept, ...sender })).status),
    )
    expect(statuses).toEqual([200, 200, 403, 403, 403, 403, 403, 403])
  })

  it('reveals nothing to a page of another site or port', async () => {
    const { visit, login, tokenWith } = await open()
    const kept = await login(await tokenWith('admin'))
    const sites = ['same-origin', 'none', 'same-site', 'cross-site']
    const statuses = await Promise.all(
      sites.map(async (site) => (await visit('GET', '/me', { ...kept, 'sec-fetch-site': site })).status),
    )
    expect(statuses).toEqual([200, 200, 403, 403])
  })

  it('does not stand in for a header that is wrong', async () => {
    const { visit, login, tokenWith } = await open()
    const kept = await login(await tokenWith('admin'))
    const wrong = ['Basic abc', `Bearer ${newToken()}`]
    const statuses = await Promise.all(
      wrong.map(async (authorization) => (await visit('GET', '/me', { ...kept, authorization })).status),
    )
    expect(statuses).toEqual([401, 401])
  })

  it('ends with its token, and at once', async () => {
    const { store, visit, login, tokenWith } = await open()
    const token = await tokenWith('read')
    const kept = await login(token)
    const before = await visit('GET', '/me', kept)
    await store.tokens.remove((await store.tokens.find(hashOf(token)))?.id ?? '')
    const after = await visit('GET', '/me', kept)
    expect([before.status, after.status]).toEqual([200, 401])
  })

  it('is taken back by a logout, which leaves the token good', async () => {
    const { url, visit, login, tokenWith } = await open()
    const token = await tokenWith('read')
    const [kept, another] = [await login(token), await login(token)]
    const response = await visit('POST', '/logout', { origin: url, ...kept })
    const after = [kept, another, { authorization: `Bearer ${token}` }]
    const statuses = await Promise.all(after.map(async (headers) => (await visit('GET', '/me', headers)).status))
    expect([response.status, response.headers.get('set-cookie'), statuses]).toEqual([
      204,
      `aetheel_login_${new URL(url).port}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`,
      [401, 200, 200],
    ])
  })

  it('is nowhere in the log', async () => {
    const { logged, visit, login, tokenWith } = await open()
    const token = await tokenWith('read')
    const kept = await login(token)
    await visit('GET', '/me', kept)
    const secrets = [token, kept.cookie.split('=')[1] ?? '', kept['x-aetheel-page-key']]
    expect(secrets.filter((secret) => logged.join('\n').includes(secret))).toEqual([])
  })
})

function addRoutes(app: App): void {
  app.post('/change', { config: { scope: 'run' } }, async () => ({}))
  app.get('/stream', { config: { scope: 'read', isStream: true } }, (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
    reply.raw.end(': open\n\n')
  })
}
