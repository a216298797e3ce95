import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { AgentBackend } from '../../../src/backends/types.js'
import { until } from '../../kit/waiting.js'
import { journalIn, steps } from '../../kit/steps-agent.js'
import { commandIn, openStage } from './stage.js'

it('lists the agents with version, availability and abilities', async () => {
  const { ask } = await openStage()
  const { body } = await ask('GET', '/agents')
  const agents = body.agents.map(({ provider, status, version, is_default: isDefault }) => [
    provider,
    status,
    version,
    isDefault,
  ])
  expect(agents.slice(0, 2)).toEqual([
    ['claudecode', 'available', expect.stringContaining('2.1.197'), true],
    ['codex', 'available', expect.stringContaining('0.142.5'), false],
  ])
  expect(body.agents.map(({ provider }) => provider)).toEqual(['claudecode', 'codex', 'gemini', 'opencode', 'pi'])
})

it('says of each agent whether it is warm, and why not', async () => {
  const { ask } = await openStage({ agentMode: 'auto' })
  const { body } = await ask('GET', '/agents')
  expect(body.agents.slice(0, 3)).toMatchObject([
    { provider: 'claudecode', mode: 'live', why_not_live: null },
    { provider: 'codex', mode: 'oneshot', why_not_live: expect.stringContaining('0.142.5 is older than') },
    { provider: 'gemini', mode: null, why_not_live: null },
  ])
})

it('tells of each agent how it is logged in, or how it is installed', async () => {
  const { ask } = await openStage()
  const agents = async () =>
    (await ask('GET', '/agents')).body.agents.map(({ login, install }) => [
      login?.state,
      login?.how,
      login?.fix,
      install,
    ])
  const before = await agents()
  await ask('PUT', '/credentials/ANTHROPIC_API_KEY', { value: 'sk-0123456789' })
  const after = await agents()
  expect([before.slice(0, 3), after[0]]).toEqual([
    [
      ['unknown', null, 'claude auth login', null],
      ['unknown', null, 'codex login', 'npm install -g @openai/codex'],
      [undefined, undefined, undefined, 'npm install -g @google/gemini-cli'],
    ],
    ['logged-in', 'the stored credential ANTHROPIC_API_KEY', 'aetheel credentials set ANTHROPIC_API_KEY', null],
  ])
})

it('says of the demo agent what it is, and asks it for no login', async () => {
  const { ask } = await openStage({ agentBackend: 'demo', backendCliPath: undefined })
  const [claude, codex] = (await ask('GET', '/agents')).body.agents
  expect([claude, codex?.is_demo]).toMatchObject([
    {
      is_demo: true,
      status: 'available',
      login: null,
      problems: ['The built-in demo agent replaces it, and uses no model. Run "aetheel init" to choose a real agent.'],
    },
    false,
  ])
})

it('says why an agent is not available, whatever the reason', async () => {
  const { ask, gateway } = await openStage()
  const claude = gateway.agents.get('claude')
  if (!claude) throw new Error('There is no claude.')
  const busy: AgentBackend = {
    name: () => claude.name(),
    models: async () => [],
    capabilities: () => claude.capabilities(),
    probe: (options) => claude.probe(options),
    run: (request, signal) => claude.run(request, signal),
    execute: (...turn) => claude.execute(...turn),
    validate: async () => false,
  }
  gateway.agents.register(busy)
  const { body } = await ask('GET', '/agents')
  expect(body.agents[0]).toMatchObject({
    status: 'unavailable',
    problems: expect.arrayContaining(['It is installed, but did not respond in time. Try again in a moment.']),
  })
})

it('refuses an unknown default agent', async () => {
  const { ask } = await openStage()
  const answer = await ask('PUT', '/agents/default', { agent_provider: 'nope' })
  const { body } = await ask('GET', '/agents/default')
  expect([answer.status, answer.body.error.problems[0]?.message, body]).toEqual([
    400,
    expect.stringContaining('invalid agent provider'),
    { agent_provider: 'claudecode' },
  ])
})

it('reports its health by agents, store and queue', async () => {
  const { ask } = await openStage()
  const answer = await ask('GET', '/health')
  expect(answer).toMatchObject({
    status: 200,
    body: {
      status: 'healthy',
      agents: { claudecode: 'available', codex: 'available' },
      store: { engine: 'sqlite', status: 'available', latency_ms: expect.any(Number) },
      queue: { waiting: 0, active: 0, failed: 0 },
    },
  })
})

it('reports within seconds that its database hangs', async () => {
  const { ask, gateway } = await openStage()
  await ask('GET', '/health')
  const hanging = (): Promise<never> => new Promise(() => {})
  gateway.store.tokens.find = hanging
  gateway.store.inbox.countByState = hanging
  const startedAt = performance.now()
  const { status, body } = await ask('GET', '/health')
  expect([status, body, performance.now() - startedAt < 9_000]).toMatchObject([503, { status: 'unhealthy' }, true])
})

it('reports an unavailable database to tokens that it knew before', async () => {
  const { ask, askWith, gateway } = await openStage()
  await ask('GET', '/health')
  const away = () => Promise.reject(new Error('connection refused'))
  gateway.store.tokens.find = away
  gateway.store.inbox.countByState = away
  const answers = [
    await ask('GET', '/health'),
    await ask('GET', '/metrics'),
    await askWith('aet_unknown')('GET', '/health'),
  ]
  expect(answers).toMatchObject([
    { status: 503, body: { status: 'unhealthy', store: { status: 'unavailable', latency_ms: null }, queue: null } },
    { status: 200 },
    { status: 503, body: { error: { code: 'store_unavailable' } } },
  ])
})

it('says to everybody whether it is ready', async () => {
  const { app } = await openStage()
  const response = await app.inject({ url: '/ready', headers: { host: '127.0.0.1' } })
  expect([response.statusCode, response.json()]).toEqual([200, { status: 'ready' }])
})

it('gives metrics as text', async () => {
  const { ask } = await openStage()
  const { status, headers } = await ask('GET', '/metrics')
  expect([status, headers['content-type']]).toEqual([200, expect.stringContaining('text/plain')])
})

it('shows the queue, retries a dead letter and drops it', async () => {
  const { ask } = await openStage()
  const failing = await ask('POST', '/projects/site/execute', { prompt: steps({ fail: 'Invalid API key' }) })
  const id = failing.body.command_id
  await commandIn(ask, id, 'failed')
  const listed = await ask('GET', '/queue')
  const retried = await ask('POST', `/queue/${id}/retry`)
  await commandIn(ask, id, 'failed')
  const dropped = await ask('DELETE', `/queue/${id}`)
  const again = await ask('DELETE', `/queue/${id}`)
  expect(listed.body).toEqual({
    open: [],
    failed: [expect.objectContaining({ id, kind: 'message', state: 'failed', problem: expect.any(String), job: null })],
    undelivered: [],
  })
  expect([retried.status, dropped.body.state, again.status, again.body.error.code]).toEqual([
    200,
    'dropped',
    409,
    'conflict',
  ])
})

it('shows a running message, and does not drop it', async () => {
  const { ask, release } = await openStage()
  const { body } = await ask('POST', '/projects/site/execute', { prompt: steps({ hold: 'busy' }) })
  await commandIn(ask, body.command_id, 'running')
  const listed = await ask('GET', '/queue')
  const shown = await ask('GET', `/queue/${body.command_id}`)
  const dropped = await ask('DELETE', `/queue/${body.command_id}`)
  release('busy')
  await commandIn(ask, body.command_id, 'answered')
  expect(listed.body.open).toEqual([
    expect.objectContaining({
      id: body.command_id,
      state: 'active',
      channel: 'http',
      author: 'admin token',
      position: 0,
    }),
  ])
  expect([shown.body.job, dropped.status]).toEqual(['active', 409])
})

it('answers 404 for what is not in the queue', async () => {
  const { ask } = await openStage()
  const id = '00000000-0000-4000-8000-000000000000'
  const answers = [
    await ask('GET', `/queue/${id}`),
    await ask('POST', `/queue/${id}/retry`),
    await ask('DELETE', `/queue/${id}`),
  ]
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404])
})

it('hides a credential in an error that would repeat it', async () => {
  const { ask } = await openStage()
  await ask('PUT', '/credentials/NPM_TOKEN', { value: 'npm_0123456789' })
  const { status, text } = await ask('GET', '/projects/npm_0123456789')
  expect([status, text.includes('npm_0123456789'), text.includes('[secret]')]).toEqual([404, false, true])
})

it('keeps credentials, and never reveals their values', async () => {
  const { ask, logged } = await openStage()
  const secret = 'correct horse battery'
  await ask('PUT', '/credentials/NPM_TOKEN', { value: secret })
  await ask('PUT', '/projects/shop/credentials/DEPLOY_KEY', { value: secret, kind: 'file' })
  const global = await ask('GET', '/credentials')
  const own = await ask('GET', '/projects/shop/credentials')
  const rotated = await ask('POST', '/credentials/rotate')
  const removed = await ask('DELETE', '/projects/shop/credentials/DEPLOY_KEY')
  const again = await ask('DELETE', '/projects/shop/credentials/DEPLOY_KEY')
  const about = { created_at: expect.any(String), updated_at: expect.any(String) }
  expect([global.body, own.body]).toEqual([
    { credentials: [{ name: 'NPM_TOKEN', kind: 'variable', project_id: null, ...about }] },
    { credentials: [{ name: 'DEPLOY_KEY', kind: 'file', project_id: 'shop', ...about }] },
  ])
  expect([rotated.body, removed.status, again.status]).toEqual([{ count: 2 }, 204, 404])
  const audit = await ask('GET', '/audit')
  expect(JSON.stringify([logged, global, own, audit])).not.toContain(secret)
})

it('hides its own keys and tokens in what a command prints', async () => {
  const { ask, config, askWith, tokenWith } = await openStage()
  await ask('PUT', '/credentials/NPM_TOKEN', { value: 'correct horse battery' })
  const token = await tokenWith('admin')
  const file = join(config.home, 'master.key')
  const { keys } = JSON.parse(readFileSync(file, 'utf8')) as { keys: Record<string, string> }
  const script = 'console.log(process.argv[1], require("fs").readFileSync(process.argv[2], "utf8"))'
  const command = ['node', '-e', script, token, file]
  const { body } = await askWith(token)('POST', '/projects/site/shell', { command })
  await commandIn(ask, body.command_id, 'answered')
  const printed = (await ask('GET', body.stream_url)).text
  expect([printed, printed.includes(token), Object.values(keys).some((key) => printed.includes(key))]).toEqual([
    expect.stringContaining('[secret]'),
    false,
    false,
  ])
})

it('reveals to nobody a known secret that somebody sent in a prompt, in arguments or in metadata', async () => {
  const { ask } = await openStage()
  const secret = 'correct-horse-battery'
  await ask('PUT', '/credentials/NPM_TOKEN', { value: secret })
  const about = { metadata: { note: `uses ${secret}` } }
  const shell = await ask('POST', '/projects/site/shell', { command: ['node', '-e', '0', secret], ...about })
  // The list shows just enough of a prompt to cut the secret in two.
  const prompt = steps({ fail: `Invalid API key ${'x'.repeat(365)} ${secret}` })
  const agent = await ask('POST', '/projects/site/execute', { prompt, ...about })
  const details = [
    await commandIn(ask, shell.body.command_id, 'answered'),
    await commandIn(ask, agent.body.command_id, 'failed'),
  ]
  const texts = [await ask('GET', '/projects/site/commands'), await ask('GET', '/queue')].map(({ text }) => text)
  expect(details.map(({ command, metadata }) => [command, metadata])).toEqual([
    [['node', '-e', '0', '[secret]'], { note: 'uses [secret]' }],
    [null, { note: 'uses [secret]' }],
  ])
  expect([JSON.stringify(details), ...texts].map((text) => text.includes('correct'))).toEqual([false, false, false])
})

it('refuses credentials that cannot be, without quoting them', async () => {
  const { ask } = await openStage()
  const answers = [
    await ask('PUT', '/credentials/PATH', { value: 'long enough' }),
    await ask('PUT', '/credentials/lower', { value: 'long enough' }),
    await ask('PUT', '/credentials/SHORT', { value: 'x7y' }),
    await ask('PUT', '/projects/none/credentials/A', { value: 'long enough' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 404])
  expect(JSON.stringify(answers)).not.toContain('x7y')
})

it('removes the credentials of a project with it', async () => {
  const { ask, directory } = await openStage()
  await ask('PUT', '/projects/shop/credentials/DEPLOY_KEY', { value: 'long enough' })
  await ask('DELETE', '/projects/shop')
  await ask('POST', '/projects', { id: 'shop', directory: join(directory, 'roots/shop') })
  const { body } = await ask('GET', '/projects/shop/credentials')
  expect(body).toEqual({ credentials: [] })
})

it('puts every change on record with the id and the name of the token', async () => {
  const { ask, gateway } = await openStage()
  await ask('POST', '/projects', { id: 'fresh', template: { name: 'empty' } })
  await ask('PATCH', '/projects/fresh', { model: 'opus', timeout: 5 })
  await ask('PUT', '/projects/fresh/credentials/A_KEY', { value: 'long enough' })
  await ask('DELETE', '/projects/fresh/credentials/A_KEY')
  await ask('POST', '/credentials/rotate')
  await ask('PUT', '/agents/default', { agent_provider: 'codex' })
  const { body } = await ask('POST', '/projects/site/shell', { command: ['sleep', '1000'] })
  await commandIn(ask, body.command_id, 'running')
  await ask('POST', `/projects/site/commands/${body.command_id}/cancel`)
  await ask('DELETE', '/projects/fresh')
  const { entries } = (await ask('GET', '/audit')).body
  expect(new Set(entries.map(({ actor }) => actor))).toEqual(
    new Set([`token:${(await gateway.store.tokens.list())[0]?.id} admin token`]),
  )
  // Entries of the same millisecond are in any order.
  expect(new Set(entries.map(({ action, subject, detail }) => `${action} ${subject} ${detail}`))).toEqual(
    new Set([
      'project.create fresh null',
      'project.update fresh model, queryTimeoutMs',
      'credential.set fresh/A_KEY null',
      'credential.remove fresh/A_KEY null',
      'credential.rotate all null',
      'agent.default codex null',
      `command.shell ${body.command_id} site`,
      `command.cancel ${body.command_id} site`,
      'project.remove fresh null',
    ]),
  )
})

it('describes every route', async () => {
  const { app } = await openStage()
  const { paths } = (await app.inject({ url: '/openapi.json', headers: { host: '127.0.0.1' } })).json()
  expect(Object.keys(paths)).toEqual(
    expect.arrayContaining(['/projects/{id}/execute', '/credentials/{name}', '/queue/{id}/retry']),
  )
})

it('refuses an agent that is not there as the one of new projects', async () => {
  const { ask } = await openStage()
  const answer = await ask('PUT', '/agents/default', { agent_provider: 'gemini' })
  const { body } = await ask('GET', '/agents/default')
  expect([answer.status, answer.body.error.code, body.agent_provider]).toEqual([503, 'backend_missing', 'claudecode'])
})

it('does not retry a dead letter of a removed project in another with its id', async () => {
  const { ask, directory } = await openStage()
  const make = (): ReturnType<typeof ask> => ask('POST', '/projects', { id: 'client', template: 'empty' })
  await make()
  const prompt = steps({ fail: 'Invalid API key · Please run /login' })
  const { body } = await ask('POST', '/projects/client/execute', { prompt })
  await until(async () => (await ask('GET', `/queue/${body.command_id}`)).body.state === 'failed', 'its failure')
  await ask('DELETE', '/projects/client?delete_files=true')
  const answers = [await ask('POST', `/queue/${body.command_id}/retry`)]
  await make()
  answers.push(await ask('POST', `/queue/${body.command_id}/retry`))
  expect([
    answers.map(({ status, body: { error } }) => [status, error.code]),
    journalIn(join(directory, 'roots/client')),
  ]).toEqual([
    [
      [409, 'conflict'],
      [409, 'conflict'],
    ],
    [],
  ])
})

it('makes tokens, lists them without their values, and revokes all but the last that allows everything', async () => {
  const { ask, askWith, gateway, tokenWith } = await openStage()
  const made = (await ask('POST', '/tokens', { name: 'ci', projects: ['site'], days: 1 })).body as unknown as {
    id: string
    token: string
  }
  const used = await askWith(made.token)('GET', '/projects/site')
  const listed = (await ask('GET', '/tokens')).text
  const { tokens } = JSON.parse(listed) as { tokens: { id: string; name: string; is_current: boolean }[] }
  const own = tokens.find((token) => token.is_current)?.id ?? ''
  const other = await tokenWith('admin', ['site'])
  const last = (await gateway.store.tokens.list()).filter(({ scope, projects }) => scope === 'admin' && !projects)
  const statuses = [
    used.status,
    (await ask('DELETE', `/tokens/${own}`)).status,
    (await ask('DELETE', `/tokens/${made.id}`)).status,
    (await askWith(made.token)('GET', '/projects/site')).status,
    (await ask('DELETE', `/tokens/${made.id}`)).status,
    (await ask('POST', '/tokens', { name: 'x', projects: ['nope'] })).status,
    (await ask('POST', '/tokens', { name: '\u0001' })).status,
    (await askWith(other)('GET', '/tokens')).status,
    (await askWith(await tokenWith('run'))('POST', '/tokens', { name: 'x' })).status,
  ]
  expect([statuses, listed.includes(made.token), last.map(({ id }) => id)]).toEqual([
    [200, 409, 204, 401, 404, 404, 400, 403, 403],
    false,
    [own],
  ])
})

it('pages the audit log without gap or repetition, also among changes of one moment', async () => {
  const { ask, gateway } = await openStage()
  for (const subject of ['a', 'b', 'c', 'd']) {
    await gateway.store.audit.add({ at: Date.UTC(2030, 0, subject === 'd' ? 1 : 2), actor: 'x', action: 'y', subject })
  }
  const subjects: string[] = []
  let next: string | null = ''
  while (next !== null && subjects.length < 4) {
    const { body } = await ask('GET', `/audit?limit=1${next === '' ? '' : `&before=${next}`}`)
    subjects.push(...body.entries.map(({ subject }) => subject))
    next = body.next
  }
  expect([subjects.slice(0, 3).toSorted(), subjects[3]]).toEqual([['a', 'b', 'c'], 'd'])
})
