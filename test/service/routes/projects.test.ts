import { existsSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { until } from '../../kit/waiting.js'
import { commandIn, openStage } from './stage.js'

it('shows a project with its agent and what that can do', async () => {
  const { ask, site } = await openStage()
  const { body } = await ask('GET', '/projects/site')
  expect(body).toEqual({
    id: 'site',
    name: 'site',
    is_default: false,
    directory: site,
    pod: null,
    source: 'file',
    agent_provider: 'claudecode',
    agent_capabilities: {
      supports_session_continuation: true,
      supports_model_selection: true,
      supports_tool_control: true,
      supports_max_turns: true,
      supports_streaming: true,
      supported_models: expect.any(Array),
      default_model: null,
      default_max_turns: 25,
      max_prompt_length: expect.any(Number),
    },
    model: null,
    allowed_tools: null,
    timeout: null,
    max_turns: null,
    is_untrusted: false,
    agent_permissions: null,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  })
})

it('lists the projects that a token may use', async () => {
  const { ask, askWith, tokenWith } = await openStage()
  const all = await ask('GET', '/projects')
  const one = await askWith(await tokenWith('read', ['shop']))('GET', '/projects')
  const ids = ({ body }: typeof all): string[] => body.projects.map(({ id }) => id)
  expect([ids(all), ids(one)]).toEqual([['shop', 'site'], ['shop']])
})

it('makes a project from a directory', async () => {
  const { ask, directory } = await openStage()
  const place = join(directory, 'roots', 'my app')
  mkdirSync(place)
  const made = await ask('POST', '/projects', {
    name: 'My App',
    directory: place,
    agent_provider: 'claude',
    model: 'opus',
    allowed_tools: ['Bash'],
    timeout: 1.5,
    max_turns: 7,
    is_untrusted: true,
    agent_permissions: 'ask',
  })
  expect(made).toMatchObject({
    status: 201,
    body: {
      id: 'my-app',
      name: 'My App',
      directory: place,
      source: 'api',
      agent_provider: 'claudecode',
      model: 'opus',
      allowed_tools: ['Bash'],
      timeout: 1.5,
      max_turns: 7,
      is_untrusted: true,
      agent_permissions: 'ask',
    },
  })
})

it('refuses an element of the allowed tools that is more than one tool, in a new project and in one there is', async () => {
  const { ask } = await openStage()
  const answers = [
    await ask('POST', '/projects', { name: 'fresh', template: 'empty', allowed_tools: ['Read Bash'] }),
    await ask('PATCH', '/projects/shop', { allowed_tools: ['Read', 'Read(x),Bash'] }),
  ]
  expect(answers.map(({ status, body }) => [status, body.error.problems])).toEqual([
    [400, [{ path: 'allowed_tools.0', message: expect.stringContaining('invalid tool "Read Bash"') }]],
    [400, [{ path: 'allowed_tools.1', message: expect.stringContaining('invalid tool "Read(x),Bash"') }]],
  ])
})

it('makes a project from a template, and removes it with its files', async () => {
  const { ask } = await openStage()
  const made = await ask('POST', '/projects', { name: 'fresh', template: { name: 'empty' } })
  const wasThere = existsSync(made.body.directory)
  const removed = await ask('DELETE', '/projects/fresh?delete_files=true')
  const after = await ask('GET', '/projects/fresh')
  expect([made.status, wasThere, removed.status, after.status, existsSync(made.body.directory)]).toEqual([
    201,
    true,
    204,
    404,
    false,
  ])
})

it('leaves nothing of a project’s credentials to another that gets its id', async () => {
  const { ask } = await openStage()
  await ask('POST', '/projects', { name: 'fresh', template: 'empty' })
  await ask('PUT', '/projects/fresh/credentials/DEPLOY_KEY', { value: 'a secret of the first' })
  const before = await ask('GET', '/projects/fresh/credentials')
  await ask('DELETE', '/projects/fresh?delete_files=true')
  await ask('POST', '/projects', { name: 'fresh', template: 'empty' })
  const after = await ask('GET', '/projects/fresh/credentials')
  expect([before.text.includes('DEPLOY_KEY'), after.status, after.text.includes('DEPLOY_KEY')]).toEqual([
    true,
    200,
    false,
  ])
})

it('makes a project in a pod, whose agent need not be here', async () => {
  const { ask, gateway } = await openStage({ kubernetesNamespace: 'agents' })
  const made = await ask('POST', '/projects', {
    pod: { selector: 'app=web', container: 'agent' },
    name: 'Web',
    directory: '/srv/web',
    agent_provider: 'gemini',
  })
  const listed = await ask('GET', '/projects/web')
  const refused = await ask('PATCH', '/projects/web', { is_untrusted: true })
  const deleted = await ask('DELETE', '/projects/web?delete_files=true')
  const removed = await ask('DELETE', '/projects/web')
  const pod = { context: null, namespace: 'agents', name: null, selector: 'app=web', container: 'agent' }
  const expected = { id: 'web', directory: '/srv/web', pod, source: 'api', agent_provider: 'gemini' }
  expect([made, listed.body]).toMatchObject([{ status: 201, body: expected }, expected])
  expect([refused.status, deleted.status, removed.status, await gateway.store.projects.get('web')]).toEqual([
    400,
    409,
    204,
    undefined,
  ])
})

it('says what is wrong with a pod, field by field', async () => {
  const { ask } = await openStage()
  const { status, body } = await ask('POST', '/projects', { name: 'a', pod: { name: '-x', selector: 'app=web' } })
  expect([status, body.error.problems]).toEqual([
    400,
    [
      { path: 'pod.name', message: '"-x" is not a pod name: use lowercase letters, digits, "-" and "."' },
      { path: 'pod', message: 'needs either "name" or "selector", not both' },
    ],
  ])
})

it('changes the settings of a project of the cluster, but not its agent, which its label says', async () => {
  const { ask, gateway } = await openStage()
  const pod = { namespace: 'agents', name: 'web-0' }
  await gateway.store.projects.add({ id: 'web', directory: '/workspace', pod, backend: 'claude' }, 1, 'cluster')
  const changed = await ask('PATCH', '/projects/web', {
    name: 'Web',
    model: 'opus',
    timeout: 5,
    agent_provider: 'claude',
  })
  const switched = await ask('PATCH', '/projects/web', { agent_provider: 'codex' })
  expect([changed.body, switched.status, switched.body.error.message]).toMatchObject([
    { name: 'Web', model: 'opus', timeout: 5, agent_provider: 'claudecode', source: 'cluster' },
    409,
    'The agent of the project web is set by the label of its pod. Change the label, then run "aetheel projects discover".',
  ])
})

it('answers with the default agent for one that is not registered, and says so in the stream', async () => {
  const { ask, gateway, directory } = await openStage()
  const place = join(directory, 'roots', 'old')
  mkdirSync(place)
  await gateway.store.projects.add({ id: 'old', directory: place, backend: 'cursor', model: 'its-own' }, 1)
  const { body: project } = await ask('GET', '/projects/old')
  const { body: sent } = await ask('POST', '/projects/old/execute', { prompt: 'hello' })
  const url = `/projects/old/commands/${sent.command_id}`
  const command = await until(async () => {
    const { body } = await ask('GET', url)
    return body.state === 'answered' && body
  }, 'its answer')
  const { text: stream } = await ask('GET', `${url}/events`)
  const events = [...stream.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)
  const again = await ask('POST', '/projects/old/execute', { prompt: 'more', session_id: command.session_id })
  const { text: metrics } = await ask('GET', '/metrics')
  expect([
    project.agent_provider,
    sent.agent_provider,
    command.agent_provider,
    events.slice(0, 2),
    again.status,
  ]).toEqual(['claudecode', 'claudecode', 'claudecode', ['started', 'notice'], 202])
  expect(stream).toContain('The agent \\"cursor\\" is not registered in this gateway, so claude answers.')
  expect([metrics.includes('provider="claudecode",project="old"'), metrics.includes('cursor')]).toEqual([true, false])
})

it('gives a new project the default agent', async () => {
  const { ask } = await openStage()
  const chosen = await ask('PUT', '/agents/default', { agent_provider: 'codex' })
  const made = await ask('POST', '/projects', { name: 'fresh', template: 'empty' })
  expect([chosen.body, made.body.agent_provider]).toEqual([{ agent_provider: 'codex' }, 'codex'])
})

it.each([
  [{ name: 'a', pod: { name: 'x' }, template: 'empty' }, 400],
  [{ name: 'a', pod: { name: 'x' }, directory: 'relative' }, 400],
  [{ name: 'a', pod: { name: 'x' }, is_untrusted: true }, 400],
  [{ name: 'a', pod: 'x' }, 400],
  [{ name: 'a' }, 400],
  [{ name: 'a', directory: '/etc' }, 400],
  [{ id: 'site', template: { name: 'empty' } }, 409],
  [{ name: 'a', template: { name: 'none' } }, 404],
  [{ name: 'a', template: { name: 'empty' }, agent_provider: 'nope' }, 400],
  [{ name: 'a', template: { name: 'empty' }, agent_provider: 'gemini' }, 503],
])('refuses to make the project %j with %i', async (body, status) => {
  const { ask } = await openStage()
  expect((await ask('POST', '/projects', body)).status).toBe(status)
})

it('switches the agent of a project, which begins a new session', async () => {
  const { ask, gateway } = await openStage()
  const { body } = await ask('POST', '/projects/shop/execute', { prompt: 'one' })
  const { conversationId = '' } = (await gateway.store.inbox.get(body.command_id)) ?? {}
  const inShop: typeof ask = (method, url) => ask(method, url.replace('site', 'shop'))
  const { session_id: sessionId } = await commandIn(inShop, body.command_id, 'answered')
  const changed = await ask('PATCH', '/projects/shop', { agent_provider: 'codex', timeout: 60 })
  const next = await ask('POST', '/projects/shop/execute', { prompt: 'two' })
  const inOld = await ask('POST', '/projects/shop/execute', { prompt: 'three', session_id: sessionId })
  expect([changed.body.agent_provider, changed.body.timeout, next.body.agent_provider, next.body.session_id]).toEqual([
    'codex',
    60,
    'codex',
    null,
  ])
  expect([inOld.status, inOld.body.error.code]).toEqual([404, 'not_found'])
  expect(await gateway.store.sessions.get(conversationId)).toBeUndefined()
})

it('takes both names of Claude, and answers with one', async () => {
  const { ask } = await openStage()
  const answers = [
    await ask('PATCH', '/projects/shop', { agent_provider: 'claude' }),
    await ask('PATCH', '/projects/shop', { agent_provider: 'claudecode' }),
  ]
  expect(answers.map(({ body }) => body.agent_provider)).toEqual(['claudecode', 'claudecode'])
})

it.each([
  [{ agent_provider: 'nope' }, 400, 'request_invalid'],
  [{ agent_provider: 'gemini' }, 503, 'backend_missing'],
  [{ directory: '/etc' }, 400, 'request_invalid'],
  [{ timeout: 0 }, 400, 'request_invalid'],
])('refuses the change %j', async (body, status, code) => {
  const { ask } = await openStage()
  const answer = await ask('PATCH', '/projects/shop', body)
  expect([answer.status, answer.body.error.code]).toEqual([status, code])
})

it('neither changes nor removes a project of the configuration file', async () => {
  const { ask } = await openStage()
  const answers = [await ask('PATCH', '/projects/site', { model: 'opus' }), await ask('DELETE', '/projects/site')]
  expect(answers.map(({ status, body }) => [status, body.error.code])).toEqual([
    [409, 'conflict'],
    [409, 'conflict'],
  ])
})

it('lists the templates with their variables', async () => {
  const { ask } = await openStage()
  const { body } = await ask('GET', '/templates')
  expect(body.templates.map(({ name }) => name)).toEqual(['empty', 'go', 'node-typescript', 'python'])
  expect(body.templates[0]).toEqual({
    name: 'empty',
    description: expect.any(String),
    is_built_in: true,
    variables: expect.any(Array),
  })
})

it('keeps a token of one project out of the others', async () => {
  const { askWith, tokenWith } = await openStage()
  const ask = askWith(await tokenWith('admin', ['shop']))
  const answers = [
    await ask('GET', '/projects/shop'),
    await ask('GET', '/projects/site'),
    await ask('POST', '/projects', { name: 'a', template: { name: 'empty' } }),
    await ask('GET', '/queue'),
    await ask('GET', '/audit'),
    await ask('GET', '/credentials'),
    await ask('GET', '/agents'),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 403, 403, 403, 403, 403, 200])
})

it('takes the right to use a project from tokens when it is removed, so that another of its id is closed to them', async () => {
  const { ask, askWith, tokenWith, gateway } = await openStage()
  const make = (): ReturnType<typeof ask> => ask('POST', '/projects', { id: 'client', template: 'empty' })
  await make()
  const single = askWith(await tokenWith('run', ['client']))
  const double = askWith(await tokenWith('run', ['client', 'shop']))
  await ask('DELETE', '/projects/client?delete_files=true')
  await make()
  const answers = [
    await single('GET', '/projects/client'),
    await double('GET', '/projects/client'),
    await double('GET', '/projects/shop'),
  ]
  const left = (await gateway.store.tokens.list()).map(({ projects }) => projects)
  expect([answers.map(({ status }) => status), left]).toEqual([
    [401, 403, 200],
    expect.arrayContaining([undefined, ['shop']]),
  ])
})

it('makes no project that tokens and credentials of the configuration file serve', async () => {
  const { ask, askWith, tokenWith, gateway, site } = await openStage()
  await ask('PUT', '/projects/site/credentials/KEY', { value: 'sk-0123456789' })
  const old = askWith(await tokenWith('run', ['site']))
  // As when the gateway starts with a configuration file that no longer has it.
  await gateway.store.projects.remove('site')
  await ask('POST', '/projects', { id: 'site', directory: site })
  const { status } = await old('GET', '/projects/site')
  expect([status, await gateway.credentials.valuesFor('site')]).toEqual([401, []])
})

it.each([
  ['an agent', 'execute', { prompt: 'hello' }],
  ['a command', 'shell', { command: ['node', '-e', 'console.log(process.cwd())'] }],
])('refuses %s in a directory that has become a link out of the roots', async (_, route, body) => {
  const { ask, directory, config } = await openStage()
  const shop = join(directory, 'roots/shop')
  const outside = join(directory, 'outside')
  mkdirSync(outside)
  renameSync(shop, `${shop}-before`)
  symlinkSync(outside, shop)
  const { body: accepted } = await ask('POST', `/projects/shop/${route}`, body)
  const command = await until(async () => {
    const { body: seen } = await ask('GET', `/projects/shop/commands/${accepted.command_id}`)
    return seen.state === 'failed' && seen
  }, 'its failure')
  const message = `"${shop}" is not a directory inside the project roots (${config.projectRoots.join()}). Use a directory inside them, or add one to PROJECT_ROOTS.`
  expect([command.error, existsSync(join(outside, 'journal'))]).toEqual([
    expect.objectContaining({ message: expect.stringContaining(message) }),
    false,
  ])
})
