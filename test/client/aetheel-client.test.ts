// The client against a whole gateway, over a socket, with an agent in a process.

import { expect, it } from 'vitest'
import { AetheelApiError, AetheelClient } from '../../src/client/aetheel-client.js'
import { release, steps } from '../kit/steps-agent.js'
import { serve } from '../service/routes/served.js'
import { Place } from '../service/routes/stage.js'
import { until } from '../kit/waiting.js'

it('creates a project, lets its agent work, follows it and removes the project', async () => {
  const { client } = await serve()
  const project = await client.projects.create({ name: 'My Shop', template: { name: 'empty' } })
  const command = await client.execute('my-shop', { prompt: steps({ text: 'Hello', result: 'Done' }) })
  const names: string[] = []
  for await (const event of command.events()) {
    names.push(event.name === 'output' ? event.data.line : event.name)
  }
  const details = await command.get()
  expect(names).toEqual(['started', 'Hello', 'agent_complete', 'complete'])
  expect(details).toMatchObject({ command_id: command.id, state: 'answered', result: 'Done', project_id: 'my-shop' })
  const changed = await client.projects.update('my-shop', { model: 'opus', agent_provider: 'codex' })
  expect(changed).toEqual({
    ...project,
    model: 'opus',
    agent_provider: 'codex',
    agent_capabilities: changed.agent_capabilities,
    updated_at: changed.updated_at,
  })
  expect(await client.projects.get('my-shop')).toEqual(changed)
  await client.projects.remove('my-shop', { deletesFiles: true })
  expect((await client.projects.list()).map(({ id }) => id)).toEqual(['site'])
})

it('follows a command over a restart of the gateway, without a gap', async () => {
  const place = new Place()
  const first = await serve(place)
  let { url } = first
  const client = new AetheelClient({
    baseUrl: 'http://gateway',
    token: first.token,
    fetch: (address, init) => fetch(new URL(new URL(address).pathname, url), init),
  })
  const command = await client.execute('site', {
    prompt: steps({ text: 'Begun. ' }, { hold: 'restart' }, { text: 'Finished.' }),
  })
  const ids: number[] = []
  let isRestarted = false
  let last = ''
  for await (const event of command.events()) {
    ids.push(event.id)
    last = event.name === 'complete' ? event.data.status : event.name
    if (event.name !== 'output' || isRestarted) continue
    isRestarted = true
    await first.stop()
    release(place.site, 'restart')
    url = (await serve(place)).url
  }
  expect([last, ids]).toEqual(['answered', ids.map((_, index) => index + 1)])
})

it('runs programs and git, and waits for their end', async () => {
  const { client } = await serve()
  const shell = await client.shell('site', { command: ['node', '-e', 'console.log(6 * 7)'] })
  const git = await client.git('site', { command: ['init', '--quiet'] })
  const ended = await Promise.all([shell.finished(), git.finished()])
  expect(ended.map(({ kind, state, exit_code: exitCode, result }) => [kind, state, exitCode, result])).toEqual([
    ['shell', 'answered', 0, '42\n'],
    ['git', 'answered', 0, ''],
  ])
})

it('gives the same command for the same key, and lists the commands page by page', async () => {
  const { client } = await serve()
  const options = { idempotencyKey: 'once' }
  const first = await client.execute('site', { prompt: 'hello' }, options)
  const again = await client.execute('site', { prompt: 'hello' }, options)
  await client.execute('site', { prompt: 'second' })
  const page = await client.commands('site', { limit: 1 })
  const rest = await client.commands('site', { limit: 1, before: page.next ?? '' })
  expect([again.id, page.commands[0]?.prompt, rest.commands[0]?.command_id, rest.next]).toEqual([
    first.id,
    'second',
    first.id,
    null,
  ])
})

it('ends a command by its id, once more, too', async () => {
  const { client } = await serve()
  const { id } = await client.execute('site', { prompt: steps({ text: 'Begun' }, { hold: 'ever' }) })
  const command = client.command('site', id)
  for await (const { name } of command.events()) if (name === 'output') break
  expect([await command.cancel(), await command.cancel()]).toEqual([
    { command_id: id, outcome: 'stopped' },
    { command_id: id, outcome: 'finished' },
  ])
  expect(await command.finished()).toMatchObject({ state: 'cancelled' })
})

it('shows the queue, and retries and drops failed commands', async () => {
  const { client } = await serve()
  const prompt = steps({ fail: 'Invalid API key' })
  const command = await client.execute('site', { prompt })
  await command.finished()
  const { open, failed, undelivered } = await client.queue.list({ limit: 10 })
  const message = {
    id: command.id,
    kind: 'message',
    state: 'failed',
    job: null,
    channel: 'http',
    conversation_id: expect.any(String),
    author: 'admin token',
    text: prompt,
    problem: expect.stringContaining('Invalid API key'),
    received_at: expect.any(String),
    finished_at: expect.any(String),
  }
  expect({ open, failed, undelivered }).toEqual({ open: [], failed: [message], undelivered: [] })
  expect(await client.queue.get(command.id)).toEqual(message)
  expect(await client.queue.retry(command.id)).toMatchObject({ kind: 'message', state: 'open' })
  await until(async () => (await client.queue.get(command.id)).state === 'failed', 'its failure')
  expect(await client.queue.drop(command.id)).toMatchObject({ kind: 'message', state: 'dropped' })
})

it('continues with the events of a command that is retried', async () => {
  const { client } = await serve()
  const command = await client.execute('site', { prompt: steps({ fail: 'Invalid API key' }) })
  const idsAndNames = async (after: number): Promise<string[]> => {
    const seen: string[] = []
    for await (const { id, name } of command.events({ after })) seen.push(`${id} ${name}`)
    return seen
  }
  const first = await idsAndNames(0)
  await client.queue.retry(command.id)
  const second = await idsAndNames(first.length)
  const whole = await idsAndNames(0)
  const names = whole.map((line) => line.split(' ')[1])
  expect([first.at(-1), second.at(-1)]).toEqual([`${first.length} complete`, `${whole.length} complete`])
  expect(whole.slice(first.length)).toEqual(second)
  expect(whole.map((line) => line.split(' ')[0])).toEqual(whole.map((_, index) => String(index + 1)))
  expect(names.filter((name) => name === 'complete')).toEqual(['complete'])
})

it('shows the agents, and chooses that of new projects', async () => {
  const { client } = await serve()
  const agents = await client.agents.list()
  expect(agents.map(({ provider, status, is_default: isDefault }) => [provider, status, isDefault])).toEqual([
    ['claudecode', 'available', true],
    ['codex', 'available', false],
    ['gemini', 'unavailable', false],
    ['opencode', 'unavailable', false],
    ['pi', 'unavailable', false],
  ])
  expect([await client.agents.setDefault('codex'), await client.agents.default()]).toEqual(['codex', 'codex'])
  expect(await client.agents.setDefault('claude')).toBe('claudecode')
})

it('knows templates, credentials, tickets and the audit log, and what a command was answered with', async () => {
  const { client, url } = await serve()
  const { entries: before } = await client.audit({ limit: 200 })
  await client.credentials.set('NPM_TOKEN', { value: 'correct horse battery' })
  await client.credentials.set('DEPLOY_KEY', { value: 'correct horse battery', kind: 'file' }, { projectId: 'site' })
  const names = [await client.credentials.list(), await client.credentials.list({ projectId: 'site' })]
  const rotated = await client.credentials.rotate()
  await client.credentials.remove('NPM_TOKEN')
  const { submitted, id } = await client.shell('site', { command: ['node', '-e', '0'] })
  const ticket = await client.ticket(submitted.stream_url)
  const events = await (await fetch(`${url}${ticket.url}`)).text()
  expect({
    templates: (await client.templates()).map(({ name }) => name),
    names: names.map((list) => list.map(({ name, kind }) => `${name} ${kind}`)),
    rotated,
    left: await client.credentials.list(),
    submitted,
    isComplete: events.includes('event: complete'),
    audit: (await client.audit({ limit: 200 })).entries.length - before.length,
  }).toEqual({
    templates: ['empty', 'go', 'node-typescript', 'python'],
    names: [['NPM_TOKEN variable'], ['DEPLOY_KEY file']],
    rotated: 2,
    left: [],
    submitted: {
      command_id: id,
      stream_url: `/projects/site/commands/${id}/events`,
      session_id: null,
      agent_provider: 'shell',
    },
    isComplete: true,
    audit: 5,
  })
})

it('reports the health of the gateway, even if it is bad', async () => {
  const { client } = await serve()
  expect(await client.health()).toEqual({
    status: 'healthy',
    agents: {
      claudecode: 'available',
      codex: 'available',
      gemini: 'unavailable',
      opencode: 'unavailable',
      pi: 'unavailable',
    },
    channels: expect.arrayContaining(['http']),
    store: { engine: 'sqlite', status: 'available', latency_ms: expect.any(Number) },
    queue: { waiting: 0, active: 0, failed: 0 },
  })
  const unhealthy = { status: 'unhealthy', agents: {}, store: {}, queue: null }
  const answering = clientWith(() => Response.json(unhealthy, { status: 503 }))
  expect(await answering.health()).toEqual(unhealthy)
})

it("throws the gateway's error, with its code, status and problems", async () => {
  const { client, url } = await serve()
  const unknown = await errorOf(client.projects.get('no/such'))
  const invalid = await errorOf(client.execute('site', { prompt: ' ', timeout: -1 }))
  const stranger = await errorOf(new AetheelClient({ baseUrl: url, token: 'aet_wrong' }).health())
  expect([unknown.code, unknown.status, stranger.code, stranger.status]).toEqual([
    'not_found',
    404,
    'unauthorized',
    401,
  ])
  expect(invalid).toMatchObject({
    code: 'request_invalid',
    status: 400,
    problems: [{ path: 'prompt', message: 'prompt is required' }, { path: 'timeout' }],
  })
})

it('says so when something else answers, or nobody does', async () => {
  const page = await errorOf(clientWith(() => new Response('<h1>Bad gateway</h1>', { status: 502 })).projects.list())
  const json = await errorOf(clientWith(() => Response.json({ error: 'bad' }, { status: 502 })).projects.remove('site'))
  const empty = await errorOf(clientWith(() => new Response('')).agents.list())
  const away = await errorOf(clientWith(() => Promise.reject(new TypeError('fetch failed'))).health())
  expect([page, json, empty, away].map(({ code, status }) => [code, status])).toEqual([
    ['unexpected_answer', 502],
    ['unexpected_answer', 502],
    ['unexpected_answer', 200],
    ['unreachable', 0],
  ])
})

it('refuses a token that cannot be one, and does not show it', () => {
  const make = (): AetheelClient => new AetheelClient({ baseUrl: 'http://127.0.0.1', token: 'aet_secret\nx: y' })
  expect(make).toThrow('The token is empty or has invalid characters. Create one with "aetheel tokens create".')
})

it('works in a page by the cookie of its login, until the logout', async () => {
  const { url, token } = await serve()
  const page = new AetheelClient({ baseUrl: url, fetch: browserAt(url) })
  const stranger = await errorOf(page.me())
  const me = await page.login(token)
  const seen = await page.me()
  const { outcome } = await (await page.execute('site', { prompt: steps({ hold: 'page' }) })).cancel()
  await page.logout()
  expect([stranger.code, me, seen, outcome, (await errorOf(page.me())).code]).toEqual([
    'unauthorized',
    { name: 'admin token', scopes: ['read', 'run', 'admin'], projects: null },
    me,
    expect.stringMatching(/^(stopped|dropped)$/),
    'unauthorized',
  ])
})

it('is logged out even if the gateway cannot be reached', async () => {
  const { url, token } = await serve()
  const reach = browserAt(url)
  let isAway = false
  const page = new AetheelClient({
    baseUrl: url,
    fetch: (address, init) => (isAway ? Promise.reject(new TypeError('fetch failed')) : reach(address, init)),
  })
  await page.login(token)
  isAway = true
  const unheard = await errorOf(page.logout())
  isAway = false
  expect([unheard.code, (await errorOf(page.me())).code]).toEqual(['unreachable', 'unauthorized'])
})

/** A `fetch` that keeps cookies and sends its origin, as a browser does. */
function browserAt(origin: string): typeof fetch {
  let cookie = ''
  return async (address, init) => {
    const headers = new Headers(init?.headers)
    headers.set('origin', origin)
    headers.set('cookie', cookie)
    const response = await fetch(address, { ...init, headers })
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie
    return response
  }
}

function clientWith(answer: () => Response | Promise<Response>): AetheelClient {
  return new AetheelClient({ baseUrl: 'http://gateway', token: 'token', fetch: async () => answer() })
}

async function errorOf(asked: Promise<unknown>): Promise<AetheelApiError> {
  try {
    await asked
  } catch (error) {
    if (error instanceof AetheelApiError) return error
    throw error
  }
  throw new Error('It did not fail.')
}
