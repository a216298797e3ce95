import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { until } from '../../kit/waiting.js'
import { journalIn, steps } from '../../kit/steps-agent.js'
import { type AnswerBody, commandIn, openStage } from './stage.js'

it('takes a command, and shows its result, usage and cost', async () => {
  const { ask } = await openStage()
  const submitted = await ask('POST', '/projects/site/claude', {
    prompt: steps({ text: 'Hello ' }, { text: 'there', result: 'All done' }),
    metadata: { ticket: '7' },
  })
  const { command_id: id } = submitted.body
  expect(submitted).toMatchObject({
    status: 202,
    body: { stream_url: `/projects/site/commands/${id}/events`, session_id: null, agent_provider: 'claudecode' },
  })
  const command = await commandIn(ask, id, 'answered')
  expect(command).toEqual({
    command_id: id,
    project_id: 'site',
    kind: 'agent',
    state: 'answered',
    prompt: expect.stringContaining('Hello'),
    command: null,
    agent_provider: 'claudecode',
    session_id: expect.any(String),
    stream_url: `/projects/site/commands/${id}/events`,
    result: 'All done',
    files: [],
    exit_code: 0,
    error: null,
    duration_ms: expect.any(Number),
    usage: expect.objectContaining({ input_tokens: 100, output_tokens: 20, total_tokens: 120 }),
    cost_usd: 0.25,
    metadata: { ticket: '7' },
    created_at: expect.any(String),
    finished_at: expect.any(String),
    runs: [
      {
        id: expect.any(String),
        provider: 'claudecode',
        model: null,
        state: 'answered',
        is_paused: false,
        session_id: command.session_id,
        exit_code: 0,
        duration_ms: expect.any(Number),
        usage: expect.objectContaining({ total_tokens: 120 }),
        cost_usd: 0.25,
        error: null,
        started_at: expect.any(String),
        ended_at: expect.any(String),
      },
    ],
  })
})

it('lists the files of an answer apart from its text, and leaves the output of commands alone', async () => {
  const { ask } = await openStage()
  const named = 'Drawn.\n\nMEDIA: "out/my plot.png"\nMEDIA:https://host.example/a.png'
  const agent = await ask('POST', '/projects/site/execute', { prompt: steps({ text: '…', result: named }) })
  const shell = await ask('POST', '/projects/site/shell', {
    command: ['node', '-e', 'console.log("MEDIA:out/plot.png")'],
  })
  const commands = [
    await commandIn(ask, agent.body.command_id, 'answered'),
    await commandIn(ask, shell.body.command_id, 'answered'),
  ]
  expect(commands.map(({ result, files }) => ({ result, files }))).toEqual([
    { result: 'Drawn.', files: [{ path: 'out/my plot.png' }, { url: 'https://host.example/a.png' }] },
    { result: 'MEDIA:out/plot.png\n', files: [] },
  ])
})

it('gives the metadata of a command to its run and to hooks', async () => {
  const hooks = [{ on: ['run-started'], command: ['sh', '-c', 'read -r line; printf "%s\\n" "$line" > told'] }]
  const { ask, gateway, config } = await openStage({ hooks })
  const metadata = { ticket: 'SHOP-7', 'a "b"': '' }
  const { body } = await ask('POST', '/projects/site/execute', { prompt: 'one', metadata })
  await commandIn(ask, body.command_id, 'answered')
  const [run] = await gateway.store.runs.ofMessage(body.command_id)
  const told = await until(() => {
    const file = join(config.workingDir, 'told')
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    return text.endsWith('\n') && text
  }, 'what the hook was told')
  expect([run?.metadata, JSON.parse(told)]).toEqual([metadata, expect.objectContaining({ runId: run?.id, metadata })])
})

it('continues a session that an earlier command began, and passes the model on', async () => {
  const { ask, journal } = await openStage()
  const first = await ask('POST', '/projects/site/execute', { prompt: 'one' })
  const { session_id: sessionId } = await commandIn(ask, first.body.command_id, 'answered')
  const second = await ask('POST', '/projects/site/execute', { prompt: 'two', session_id: sessionId, model: 'opus' })
  await commandIn(ask, second.body.command_id, 'answered')
  expect([second.body.session_id, journal().map(({ prompt, isResumed, model }) => [prompt, isResumed, model])]).toEqual(
    [
      sessionId,
      [
        ['one', false, 'none'],
        ['two', true, 'opus'],
      ],
    ],
  )
})

it('begins in a session of the project that no command knows yet', async () => {
  const { ask, gateway, journal } = await openStage()
  const first = await ask('POST', '/projects/site/execute', { prompt: 'one' })
  const { session_id: sessionId } = await commandIn(ask, first.body.command_id, 'answered')
  const { conversationId } = (await gateway.store.inbox.get(first.body.command_id)) ?? { conversationId: '' }
  await gateway.store.sessions.reset(conversationId, Date.now())
  const second = await ask('POST', '/projects/site/execute', { prompt: 'two', session_id: sessionId })
  await commandIn(ask, second.body.command_id, 'answered')
  expect(journal().at(-1)).toMatchObject({ prompt: 'two', sessionId, isResumed: true })
})

it('refuses a session of another project', async () => {
  const { ask } = await openStage()
  const first = await ask('POST', '/projects/site/execute', { prompt: 'one' })
  const { session_id: sessionId } = await commandIn(ask, first.body.command_id, 'answered')
  const answer = await ask('POST', '/projects/shop/execute', { prompt: 'two', session_id: sessionId })
  expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found'])
})

it('refuses a session that another project has had, and one that nobody knows', async () => {
  const { ask, gateway } = await openStage()
  const first = await ask('POST', '/projects/site/execute', { prompt: 'one' })
  const { session_id: sessionId } = await commandIn(ask, first.body.command_id, 'answered')
  const { conversationId } = (await gateway.store.inbox.get(first.body.command_id)) ?? { conversationId: '' }
  await gateway.store.sessions.reset(conversationId, Date.now())
  const answers = [
    await ask('POST', '/projects/shop/execute', { prompt: 'two', session_id: sessionId }),
    await ask('POST', '/projects/shop/execute', { prompt: 'two', session_id: 'nobodys' }),
  ]
  expect(answers.map(({ status, body }) => [status, body.error.code])).toEqual([
    [404, 'not_found'],
    [404, 'not_found'],
  ])
})

it('takes a command once under one Idempotency-Key', async () => {
  const { ask, journal } = await openStage()
  const again = (): ReturnType<typeof ask> =>
    ask('POST', '/projects/site/execute', { prompt: 'once', metadata: { a: 'b' } }, { 'idempotency-key': 'key-1' })
  const answers = await Promise.all([again(), again(), again()])
  await commandIn(ask, answers[0].body.command_id, 'answered')
  answers.push(await again())
  expect(new Set(answers.map(({ status, body }) => `${status} ${body.command_id}`)).size).toBe(1)
  expect(journal().map(({ prompt }) => prompt)).toEqual(['once'])
})

it.each([{ prompt: 'another' }, { prompt: 'once', model: 'opus' }, { prompt: 'once', session_id: 'some-session' }])(
  'answers a used Idempotency-Key with a conflict when the body is %j',
  async (body) => {
    const { ask } = await openStage()
    await ask('POST', '/projects/site/execute', { prompt: 'once' }, { 'idempotency-key': 'key-1' })
    const answer = await ask('POST', '/projects/site/execute', body, { 'idempotency-key': 'key-1' })
    expect([answer.status, answer.body.error.code]).toEqual([409, 'conflict'])
  },
)

it('knows a prompt again that holds what cannot be kept', async () => {
  const { ask } = await openStage()
  const send = (): ReturnType<typeof ask> =>
    ask('POST', '/projects/site/execute', { prompt: 'a \ud800 b\0' }, { 'idempotency-key': 'key-1' })
  const first = await send()
  const second = await send()
  const { prompt } = await commandIn(ask, first.body.command_id, 'answered')
  expect([second.status, second.body.command_id, prompt]).toEqual([202, first.body.command_id, 'a \ufffd b'])
})

it('answers a command alike under its Idempotency-Key when its project has other tools since', async () => {
  const { ask, gateway, site } = await openStage()
  const send = (): ReturnType<typeof ask> =>
    ask('POST', '/projects/site/execute', { prompt: 'x', allowed_tools: ['Bash'] }, { 'idempotency-key': 'key-1' })
  const first = await send()
  await gateway.store.projects.put({ id: 'site', directory: site, allowedTools: ['Read'] }, 'file', Date.now())
  expect(await send()).toMatchObject({ status: 202, body: first.body })
})

it('keeps the keys of two projects apart', async () => {
  const { ask } = await openStage()
  const first = await ask('POST', '/projects/site/execute', { prompt: 'once' }, { 'idempotency-key': 'key-1' })
  const second = await ask('POST', '/projects/shop/execute', { prompt: 'else' }, { 'idempotency-key': 'key-1' })
  expect([second.status, second.body.command_id === first.body.command_id]).toEqual([202, false])
})

it.each([
  [{}, 'prompt', 'prompt is required'],
  [{ prompt: '  \n' }, 'prompt', 'prompt is required'],
  [{ prompt: 7 }, 'prompt', 'prompt is required'],
  [{ prompt: 'a', timeout: 0 }, 'timeout', 'invalid timeout'],
  [{ prompt: 'a', timeout: -1 }, 'timeout', 'invalid timeout'],
  [{ prompt: 'a', timeout: 'soon' }, 'timeout', 'invalid timeout'],
  [{ prompt: 'a', timeout: 90_000 }, 'timeout', 'invalid timeout'],
  [{ prompt: 'a', model: '--settings=x' }, 'model', 'invalid model'],
  [{ prompt: 'a', session_id: '--last' }, 'session_id', 'invalid session_id'],
  [{ prompt: 'a', allowed_tools: ['--x'] }, 'allowed_tools.0', 'invalid tool'],
  [{ prompt: 'a', allowed_tools: ['Read', 'Read(x) Bash Read(y)'] }, 'allowed_tools.1', '"Read(x) Bash Read(y)"'],
  [{ prompt: 'a', allowed_tools: [] }, 'allowed_tools', 'name at least one tool'],
  [{ prompt: 'a', stream_id: '../x' }, 'stream_id', 'invalid stream_id'],
])('refuses the body %j', async (body, path, message) => {
  const { ask } = await openStage()
  const answer = await ask('POST', '/projects/site/execute', body)
  expect([answer.status, answer.body.error.code, answer.body.error.problems]).toEqual([
    400,
    'request_invalid',
    [{ path, message: expect.stringContaining(message) }],
  ])
})

it('refuses unknown fields in a body, and an unknown project', async () => {
  const { ask } = await openStage()
  const unknownKey = await ask('POST', '/projects/site/execute', { prompt: 'a', promt: 'b' })
  const unknownProject = await ask('POST', '/projects/none/execute', { prompt: 'a' })
  expect([unknownKey.status, unknownProject.status, unknownProject.body.error.code]).toEqual([400, 404, 'not_found'])
})

it('runs a command, and reports its output and exit code', async () => {
  const { ask, site } = await openStage()
  const submitted = await ask('POST', '/projects/site/shell', { command: ['sh', '-c', 'pwd; exit 3'] })
  const command = await commandIn(ask, submitted.body.command_id, 'answered')
  expect(submitted.body.agent_provider).toBe('shell')
  expect(command).toMatchObject({
    kind: 'shell',
    prompt: "sh -c 'pwd; exit 3'",
    command: ['sh', '-c', 'pwd; exit 3'],
    result: `${site}\n`,
    exit_code: 3,
    agent_provider: 'shell',
    runs: [{ provider: 'shell', exit_code: 3 }],
  })
})

it('runs git in the directory of the project', async () => {
  const { ask } = await openStage()
  const init = await ask('POST', '/projects/site/git', { command: ['init', '-q', '-b', 'main'] })
  await commandIn(ask, init.body.command_id, 'answered')
  const status = await ask('POST', '/projects/site/git', { command: ['status', '--short', '--branch'] })
  const command = await commandIn(ask, status.body.command_id, 'answered')
  expect(command).toMatchObject({ kind: 'git', agent_provider: 'git', result: '## No commits yet on main\n' })
})

it('lets a command use fewer tools than its project allows, and no others', async () => {
  const { gateway, ask, site, journal } = await openStage()
  const allowedTools = ['Read', 'Bash', 'Edit(/docs/*)']
  await gateway.store.projects.put({ id: 'site', directory: site, allowedTools }, 'file', Date.now())
  const execute = (tools: string[]): ReturnType<typeof ask> =>
    ask('POST', '/projects/site/execute', { prompt: 'x', allowed_tools: tools })
  const refused = [await execute(['Read', 'Write']), await execute(['Edit']), await execute(['Read(a),Write()'])]
  const { body } = await execute(['Read', 'Bash(git log:*)', 'Edit(/docs/*)'])
  await commandIn(ask, body.command_id, 'answered')
  expect([
    refused.map(({ status, body: { error } }) => [status, error.code]),
    journal().map(({ tools }) => tools),
  ]).toEqual([[400, 400, 400].map((status) => [status, 'request_invalid']), ['Read,Bash,Edit']])
})

it('refuses tools for an agent that cannot be restricted to them', async () => {
  const { ask } = await openStage()
  await ask('PATCH', '/projects/shop', { agent_provider: 'codex' })
  const answer = await ask('POST', '/projects/shop/execute', { prompt: 'x', allowed_tools: ['Read'] })
  expect([answer.status, answer.body.error]).toMatchObject([
    400,
    { code: 'request_invalid', message: expect.stringContaining('codex cannot be restricted to certain tools') },
  ])
})

it('says in the stream that ALLOWED_TOOLS has no effect on an agent that cannot be restricted to tools', async () => {
  const { ask, directory } = await openStage({ allowedTools: ['Read'] })
  const lines = [
    { type: 'thread.started', thread_id: '0199a213-81c0-7800-8aa1-bbab2a035a53' },
    { type: 'item.completed', item: { id: 'item_0', type: 'agent_message', text: 'Done' } },
    { type: 'turn.completed', usage: { input_tokens: 1, cached_input_tokens: 0, output_tokens: 1 } },
  ]
  const script = `#!/bin/sh\n${lines.map((line) => `echo '${JSON.stringify(line)}'`).join('\n')}\n`
  writeFileSync(join(directory, 'bin/codex'), script)
  await ask('PATCH', '/projects/shop', { agent_provider: 'codex' })
  const { body } = await ask('POST', '/projects/shop/execute', { prompt: 'x' })
  const { text: events } = await ask('GET', body.stream_url)
  expect(events).toMatch(/event: started\n[^]*event: notice\ndata: .*ALLOWED_TOOLS has no effect/)
})

it('does not run an agent that cannot hold the limits that the configuration file gives to its project', async () => {
  const { ask, gateway, site } = await openStage()
  await gateway.store.projects.put({ id: 'site', directory: site, backend: 'codex', maxTurns: 3 }, 'file', Date.now())
  const answer = await ask('POST', '/projects/site/execute', { prompt: 'x' })
  expect([answer.status, answer.body.error.message]).toEqual([
    400,
    expect.stringContaining('does not support a turn limit'),
  ])
})

it('lets a command use fewer tools than the configuration allows, and no others', async () => {
  const { ask } = await openStage({ allowedTools: ['Read'] })
  const execute = (tools: string[]): ReturnType<typeof ask> =>
    ask('POST', '/projects/site/execute', { prompt: 'x', allowed_tools: tools })
  expect([(await execute(['Bash'])).status, (await execute(['Read'])).status]).toEqual([400, 202])
})

it('does not run a command whose tools its project has taken back while it waited', async () => {
  const { ask, gateway, site, release, journal } = await openStage({ maxConcurrentQueries: 1 })
  const busy = await ask('POST', '/projects/site/execute', { prompt: steps({ hold: 'busy' }) })
  await commandIn(ask, busy.body.command_id, 'running')
  const waiting = await ask('POST', '/projects/site/execute', { prompt: 'two', allowed_tools: ['Bash'] })
  await gateway.store.projects.put({ id: 'site', directory: site, allowedTools: ['Read'] }, 'file', Date.now())
  release('busy')
  const { error } = await commandIn(ask, waiting.body.command_id, 'failed')
  expect([error, journal().length]).toEqual([{ reason: null, message: expect.stringContaining('Bash') }, 1])
})

it('leaves a command that waits to the agent and the session that it was answered with', async () => {
  const { ask, gateway, release, directory } = await openStage({ maxConcurrentQueries: 1 })
  const first = await ask('POST', '/projects/shop/execute', { prompt: 'one' })
  const shown = async (id: string): Promise<AnswerBody> => (await ask('GET', `/projects/shop/commands/${id}`)).body
  const { session_id: sessionId } = await until(async () => {
    const command = await shown(first.body.command_id)
    return command.state === 'answered' && command
  }, 'the first answer')
  const busy = await ask('POST', '/projects/site/execute', { prompt: steps({ hold: 'busy' }) })
  await commandIn(ask, busy.body.command_id, 'running')
  const body = { prompt: 'two', session_id: sessionId, model: 'opus', allowed_tools: ['Read'] }
  const send = (): ReturnType<typeof ask> => ask('POST', '/projects/shop/execute', body, { 'idempotency-key': 'two' })
  const waiting = await send()
  const queued = await shown(waiting.body.command_id)
  await ask('PATCH', '/projects/shop', { agent_provider: 'codex' })
  release('busy')
  const ended = await until(async () => {
    const command = await shown(waiting.body.command_id)
    return command.state !== 'queued' && command.state !== 'running' && command
  }, 'the end of the one that waits')
  const run = (await gateway.store.runs.ofMessage(waiting.body.command_id)).at(-1)
  expect([queued.agent_provider, ended.state, run, journalIn(join(directory, 'roots/shop')).at(-1)]).toMatchObject([
    'claudecode',
    'answered',
    { backend: 'claude', model: 'opus', sessionId },
    { prompt: 'two', sessionId, isResumed: true, tools: 'Read' },
  ])
})

it.each([
  ['execute', { prompt: steps({ hold: 'never' }) }, { error: { reason: 'timeout' } }],
  ['shell', { command: ['sleep', '1000'] }, { exit_code: 124 }],
])('ends %s after the time of its project, however long was asked for', async (path, body, end) => {
  const { ask, gateway, site } = await openStage()
  await gateway.store.projects.put({ id: 'site', directory: site, queryTimeoutMs: 500 }, 'file', Date.now())
  const submitted = await ask('POST', `/projects/site/${path}`, { ...body, timeout: 86_400 })
  const { runs } = await until(async () => {
    const command = await ask('GET', `/projects/site/commands/${submitted.body.command_id}`)
    return JSON.stringify(command.body.runs).includes('"ended_at":"') && command.body
  }, 'the end of a run')
  expect(runs[0]).toMatchObject(end)
})

it('ends a command after its timeout, and does not run it again', async () => {
  const { ask, alive } = await openStage()
  const submitted = await ask('POST', '/projects/site/shell', { command: ['sleep', '1000'], timeout: 0.2 })
  const command = await commandIn(ask, submitted.body.command_id, 'failed')
  expect([command.exit_code, command.error?.reason, command.runs.length, alive()]).toEqual([124, 'timeout', 1, []])
})

it('says that a program failed which is not there, and does not look for it again', async () => {
  const { ask } = await openStage()
  const { body } = await ask('POST', '/projects/site/shell', { command: ['no-such-program'] })
  const command = await commandIn(ask, body.command_id, 'failed')
  const events = (await ask('GET', body.stream_url)).text
  expect([command.exit_code, command.error, command.runs.length, events.split('data: ').at(-1)]).toEqual([
    127,
    { reason: 'spawn', message: expect.stringContaining('no-such-program was not found') },
    1,
    expect.stringMatching(/"exit_code":127,.*"status":"failed","error":"spawn: no-such-program was not found/),
  ])
})

it('says in the events that a credential cannot be opened, and continues when it can', async () => {
  const { ask, config } = await openStage()
  await ask('PUT', '/credentials/NPM_TOKEN', { value: 'correct horse battery' })
  const file = join(config.home, 'master.key')
  chmodSync(file, 0o644)
  const { body } = await ask('POST', '/projects/site/shell', { command: ['node', '-e', '0'] })
  await until(async () => {
    const { runs } = await commandIn(ask, body.command_id, 'queued', 'running')
    return runs[0]?.state === 'failed'
  }, 'a run that failed')
  chmodSync(file, 0o600)
  await commandIn(ask, body.command_id, 'answered')
  const names = [...(await ask('GET', body.stream_url)).text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name)
  expect(names).toEqual(['error', 'notice', 'started', 'agent_complete', 'complete'])
})

it('lets only an admin run commands, and only run tokens use an agent', async () => {
  const { askWith, tokenWith } = await openStage()
  const [read, run] = [askWith(await tokenWith('read')), askWith(await tokenWith('run'))]
  const answers = [
    await read('POST', '/projects/site/execute', { prompt: 'a' }),
    await run('POST', '/projects/site/shell', { command: ['id'] }),
    await run('POST', '/projects/site/git', { command: ['status'] }),
    await run('POST', '/projects/site/execute', { prompt: 'a' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 202])
})

it('refuses a command that names no executable', async () => {
  const { ask } = await openStage()
  const answers = [
    await ask('POST', '/projects/site/shell', { command: [] }),
    await ask('POST', '/projects/site/shell', { command: [''] }),
    await ask('POST', '/projects/site/shell', { command: 'ls -l' }),
    await ask('POST', '/projects/site/shell', { command: ['ls', '\0'] }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400])
})
