import { expect, it, onTestFinished } from 'vitest'
import { createDatabase, postgresUrl } from '../../kit/postgres.js'
import { until } from '../../kit/waiting.js'
import { steps } from '../../kit/steps-agent.js'
import { commandIn, openStage } from './stage.js'

it('ends a command even if the request claims JSON and has no body', async () => {
  const { ask } = await openStage()
  const { body } = await ask('POST', '/projects/site/shell', { command: ['sleep', '1000'] })
  await commandIn(ask, body.command_id, 'running')
  const url = `/projects/site/commands/${body.command_id}/cancel`
  const cancelled = await ask('POST', url, undefined, { 'content-type': 'application/json' })
  expect([cancelled.status, cancelled.body.outcome]).toEqual([200, 'stopped'])
})

it.skipIf(postgresUrl() === undefined)('ends a command that another gateway works on, at once', async () => {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  // With so long a lease, no renewal notices the cancel before the test is over.
  const settings = { databaseUrl: database.url, leaseMs: 600_000 }
  const first = await openStage(settings)
  const { body } = await first.ask('POST', '/projects/site/shell', { command: ['sleep', '1000'] })
  await commandIn(first.ask, body.command_id, 'running')
  const { ask } = await openStage(settings)
  const cancelled = await ask('POST', `/projects/site/commands/${body.command_id}/cancel`)
  const { state } = await commandIn(ask, body.command_id, 'cancelled')
  expect([cancelled.body.outcome, state, first.alive()]).toEqual(['asked', 'cancelled', []])
})

it('lists the commands of a project page by page, newest first', async () => {
  const { ask } = await openStage()
  const ids: string[] = []
  for (const prompt of ['one', 'two', 'three']) {
    const { body } = await ask('POST', '/projects/site/execute', { prompt })
    ids.unshift(body.command_id)
    await commandIn(ask, body.command_id, 'answered')
    await ask('POST', '/projects/shop/execute', { prompt: 'elsewhere' })
  }
  const first = await ask('GET', '/projects/site/commands?limit=2')
  const second = await ask('GET', `/projects/site/commands?limit=2&before=${first.body.next}`)
  const listed = (page: typeof first): unknown[] => page.body.commands.map(({ prompt, state }) => [prompt, state])
  expect([listed(first), first.body.next, listed(second), second.body.next]).toEqual([
    [
      ['three', 'answered'],
      ['two', 'answered'],
    ],
    ids[1],
    [['one', 'answered']],
    null,
  ])
})

it('shows no command of another project', async () => {
  const { ask } = await openStage()
  const { body } = await ask('POST', '/projects/site/execute', { prompt: 'one' })
  const id = body.command_id
  const answers = [
    await ask('GET', `/projects/shop/commands/${id}`),
    await ask('GET', `/projects/shop/commands/${id}/events`),
    await ask('POST', `/projects/shop/commands/${id}/cancel`),
    await ask('GET', `/projects/shop/commands?before=${id}`),
    await ask('GET', '/projects/none/commands'),
  ]
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404])
})

it('cancels a command while it runs, with all it started, and once more without harm', async () => {
  const { ask, alive } = await openStage()
  const prompt = steps({ run: ['sleep', '1000'] }, { text: 'begun' }, { hold: 'ever' })
  const { body } = await ask('POST', '/projects/site/execute', { prompt })
  await commandIn(ask, body.command_id, 'running')
  const cancel = (): ReturnType<typeof ask> => ask('POST', `/projects/site/commands/${body.command_id}/cancel`)
  const answers = await Promise.all([cancel(), cancel()])
  answers.push(await cancel())
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(answers.at(-1)?.body).toEqual({ command_id: body.command_id, outcome: 'finished' })
  const command = await commandIn(ask, body.command_id, 'cancelled')
  expect([command.error, alive()]).toEqual([{ reason: 'cancelled', message: expect.any(String) }, []])
})

it('cancels a command at once after it was sent, before its session is known', async () => {
  const { ask, alive } = await openStage()
  const { body } = await ask('POST', '/projects/site/execute', { prompt: steps({ hold: 'ever' }) })
  const { body: cancelled } = await ask('POST', `/projects/site/commands/${body.command_id}/cancel`)
  expect(['stopped', 'dropped']).toContain(cancelled.outcome)
  await commandIn(ask, body.command_id, 'cancelled', 'dropped')
  expect(alive()).toEqual([])
})

it('takes a command out that waits behind another of its session', async () => {
  const { ask, journal, release } = await openStage()
  const first = await ask('POST', '/projects/site/execute', { prompt: 'one' })
  const { session_id: sessionId } = await commandIn(ask, first.body.command_id, 'answered')
  const inSession = (prompt: string): ReturnType<typeof ask> =>
    ask('POST', '/projects/site/execute', { prompt, session_id: sessionId })
  const second = await inSession(steps({ hold: 'second' }, { text: 'two' }))
  await commandIn(ask, second.body.command_id, 'running')
  const third = await inSession('three')
  const { body } = await ask('POST', `/projects/site/commands/${third.body.command_id}/cancel`)
  const events = await ask('GET', `/projects/site/commands/${third.body.command_id}/events`)
  release('second')
  await commandIn(ask, second.body.command_id, 'answered')
  expect([body.outcome, journal().length]).toEqual(['dropped', 2])
  expect(namesOf(events.text)).toEqual(['complete'])
  const dropped = await ask('GET', `/projects/site/commands/${third.body.command_id}`)
  expect(dropped.body).toMatchObject({
    state: 'dropped',
    agent_provider: 'claudecode',
    error: { reason: null, message: expect.stringContaining('removed from the queue') },
  })
})

it('refuses a command of a session in which too many wait', async () => {
  const { ask, release } = await openStage({ maxQueueDepth: 1 })
  const first = await ask('POST', '/projects/site/execute', { prompt: 'one' })
  const { session_id: sessionId } = await commandIn(ask, first.body.command_id, 'answered')
  const inSession = (prompt: string): ReturnType<typeof ask> =>
    ask('POST', '/projects/site/execute', { prompt, session_id: sessionId }, { 'idempotency-key': prompt })
  const busy = await inSession(steps({ hold: 'busy' }))
  await commandIn(ask, busy.body.command_id, 'running')
  await inSession('waits')
  const refused = await inSession('too-many')
  release('busy')
  await commandIn(ask, busy.body.command_id, 'answered')
  const again = await until(async () => {
    const answer = await inSession('too-many')
    return answer.status !== 429 && answer
  }, 'a place')
  expect([refused.status, refused.body.error.code, again.status]).toEqual([429, 'too_many', 202])
})

it('refuses a command of a project in which too many wait, and takes it later', async () => {
  const { ask, release } = await openStage({ maxWaitingCommands: 2, maxConcurrentQueries: 1 })
  const send = (project: string, prompt: string): ReturnType<typeof ask> =>
    ask('POST', `/projects/${project}/execute`, { prompt }, { 'idempotency-key': prompt })
  const busy = await send('site', steps({ hold: 'busy' }))
  await commandIn(ask, busy.body.command_id, 'running')
  const answers = [await send('site', 'one'), await send('site', 'two'), await send('site', 'three')]
  answers.push(await send('site', 'one'), await send('shop', 'four'))
  release('busy')
  const later = await until(async () => {
    const answer = await send('site', 'three')
    return answer.status !== 429 && answer
  }, 'a place')
  expect([answers.map(({ status }) => status), answers[2]?.body.error.code, later.status]).toEqual([
    [202, 202, 429, 202, 202],
    'too_many',
    202,
  ])
})

it('streams the events of a command, and replays them after an id', async () => {
  const { ask } = await openStage()
  const { body } = await ask('POST', '/projects/site/execute', { prompt: steps({ tool: 'Bash' }, { text: 'Hi' }) })
  const whole = await ask('GET', `/projects/site/commands/${body.command_id}/events`)
  const rest = await ask('GET', body.stream_url, undefined, { 'last-event-id': '4' })
  const last = idsOf(whole.text).length
  const over = await ask('GET', body.stream_url, undefined, { 'last-event-id': String(last) })
  expect(namesOf(whole.text)).toEqual(['started', 'tool_use', 'tool_result', 'output', 'agent_complete', 'complete'])
  expect(idsOf(whole.text)).toEqual([1, 2, 3, 4, 5, 6])
  expect([idsOf(rest.text), over.status]).toEqual([[5, 6], 204])
})

it('streams stdout and stderr of a command', async () => {
  const { ask } = await openStage()
  const script = 'process.stdout.write("out"); setTimeout(() => process.stderr.write("err"), 200)'
  const { body } = await ask('POST', '/projects/site/shell', { command: ['node', '-e', script] })
  const { text: events } = await ask('GET', body.stream_url)
  expect(dataOf(events, 'output')).toEqual([
    { line: 'out', stream: 'stdout' },
    { line: 'err', stream: 'stderr' },
  ])
  expect(dataOf(events, 'complete')).toEqual([
    { exit_code: 0, duration_ms: expect.any(Number), session_id: null, provider: 'shell', status: 'answered' },
  ])
})

it('refuses an invalid event id', async () => {
  const { ask } = await openStage()
  const { body } = await ask('POST', '/projects/site/execute', { prompt: 'one' })
  const answer = await ask('GET', body.stream_url, undefined, { 'last-event-id': 'x\ty' })
  expect([answer.status, answer.body.error.code]).toEqual([400, 'request_invalid'])
})

it('streams a command by the name of its stream, too', async () => {
  const { ask } = await openStage()
  const { body } = await ask('POST', '/projects/site/execute', {
    prompt: steps({ text: 'one' }),
    stream_id: 'screen-1',
  })
  const { text: events } = await ask('GET', '/projects/site/streams/screen-1')
  const elsewhere = await ask('GET', '/projects/shop/streams/screen-1')
  expect([body.stream_url, dataOf(events, 'output'), elsewhere.status]).toEqual([
    `/projects/site/commands/${body.command_id}/events`,
    [{ line: 'one', stream: 'stdout' }],
    404,
  ])
})

it('gives the name of a stream to one command of a project for good', async () => {
  const { ask } = await openStage()
  const send = (project: string, prompt: string): ReturnType<typeof ask> =>
    ask('POST', `/projects/${project}/execute`, { prompt, stream_id: 'ui' }, { 'idempotency-key': prompt })
  const first = await send('site', 'one')
  await commandIn(ask, first.body.command_id, 'answered')
  const answers = [await send('site', 'one'), await send('site', 'two'), await send('shop', 'two')]
  const { text: events } = await ask('GET', '/projects/site/streams/ui', undefined, { 'last-event-id': '2' })
  const { text: whole } = await ask('GET', first.body.stream_url)
  const listed = await ask('GET', '/projects/site/commands')
  expect([answers.map(({ status }) => status), answers[0]?.body, idsOf(events), listed.body.commands.length]).toEqual([
    [202, 409, 202],
    first.body,
    idsOf(whole).slice(2),
    1,
  ])
})

function frames(text: string): Array<{ id: number; name: string; data: unknown }> {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('id: '))
    .map((frame) => {
      const [id = '', name = '', data = ''] = frame.split('\n').map((line) => line.slice(line.indexOf(': ') + 2))
      return { id: Number(id), name, data: JSON.parse(data) as unknown }
    })
}

function idsOf(text: string): number[] {
  return frames(text).map(({ id }) => id)
}

function namesOf(text: string): string[] {
  return frames(text).map(({ name }) => name)
}

function dataOf(text: string, wanted: string): unknown[] {
  return frames(text)
    .filter(({ name }) => name === wanted)
    .map(({ data }) => data)
}

it('shows nothing of a project that had the same id before', async () => {
  const { ask } = await openStage()
  const key = { 'idempotency-key': 'key-1' }
  const make = () => ask('POST', '/projects', { id: 'shop2', template: 'empty' })
  const run = (body: object, headers = {}) =>
    ask('POST', '/projects/shop2/execute', { prompt: 'hello', ...body }, headers)
  await make()
  const earlier = (await run({ stream_id: 'main' }, key)).body.command_id
  const ended = await until(async () => {
    const { body } = await ask('GET', `/projects/shop2/commands/${earlier}`)
    return body.state === 'answered' && body
  }, 'the earlier answer')
  await ask('DELETE', '/projects/shop2?delete_files=true')
  const gone = await ask('GET', `/projects/shop2/commands/${earlier}`)
  await make()
  const answers = [
    await ask('GET', `/projects/shop2/commands/${earlier}`),
    await ask('GET', `/projects/shop2/commands/${earlier}/events`),
    await ask('POST', `/projects/shop2/commands/${earlier}/cancel`),
    await ask('GET', '/projects/shop2/streams/main'),
    await run({ session_id: ended.session_id }),
  ]
  const listed = await ask('GET', '/projects/shop2/commands')
  const fresh = await run({ prompt: 'another' }, key)
  expect([gone.status, answers.map(({ status }) => status), listed.body.commands, fresh.status]).toEqual([
    404,
    [404, 404, 404, 404, 404],
    [],
    202,
  ])
})
