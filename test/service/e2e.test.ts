// The service as a client sees it: over a socket, with the real queue and an agent that is a process.

import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createDatabase, postgresUrl } from '../kit/postgres.js'
import { livingProcesses } from '../kit/living-processes.js'
import { until } from '../kit/waiting.js'
import { journalIn, release, steps } from '../kit/steps-agent.js'
import { serve } from './routes/served.js'
import { Place } from './routes/stage.js'
import { listen } from '../kit/loopback.js'

interface StreamedEvent {
  id: number
  name: string
  data: Record<string, unknown>
}

it('takes a client from the first token to the answer', async () => {
  const place = new Place()
  const { api } = await openApi(place)
  const project = await api.call('POST', '/projects', { name: 'My Site', template: { name: 'empty' } })
  const prompt = steps({ text: 'Working ' }, { hold: 'work' }, { text: 'on it', result: 'Done' })
  const submitted = await api.call('POST', '/projects/my-site/claude', { prompt })
  const events: StreamedEvent[] = []
  for await (const event of streamOf(api, submitted.body['stream_url'])) {
    events.push(event)
    // Seen while the agent still waits.
    if (event.name === 'output') release(String(project.body['directory']), 'work')
  }
  const command = await api.call('GET', `/projects/my-site/commands/${String(submitted.body['command_id'])}`)
  expect(textOf(events)).toBe('Working \n\non it')
  expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1))
  expect(events.at(-1)).toMatchObject({
    name: 'complete',
    data: { exit_code: 0, provider: 'claudecode', status: 'answered', session_id: command.body['session_id'] },
  })
  expect(command.body).toMatchObject({ state: 'answered', result: 'Done', cost_usd: 0.25 })
})

it('tells a client that the agent has paused, and lets it go on in its session', async () => {
  const place = new Place()
  const { api } = await openApi(place)
  const prompt = steps({ text: 'Half of it.' }, { pause: true })
  const { body } = await api.call('POST', '/projects/site/execute', { prompt })
  const end = (await all(streamOf(api, body['stream_url']))).at(-1)
  const command = await api.call('GET', `/projects/site/commands/${String(body['command_id'])}`)
  const { conversations } = (await api.call('GET', '/conversations')).body as { conversations: { id: string }[] }
  const path = `/conversations/${conversations[0]?.id}/continue`
  const [first, second] = [
    await api.call('POST', path),
    await api.call('POST', path, { message_id: body['command_id'] }),
  ]
  const continued = String(first.body['message_id'])
  const last = (await all(streamOf(api, `/projects/site/commands/${continued}/events`))).at(-1)
  const answer = await api.call('GET', `/projects/site/commands/${continued}`)
  expect({
    end,
    command: command.body,
    first: first.body,
    second: second.body,
    last,
    answer: answer.body,
  }).toMatchObject({
    end: { name: 'complete', data: { status: 'answered', exit_code: 1, reason: 'max_turns' } },
    command: {
      ...{ state: 'answered', result: 'Half of it.', error: { reason: 'max_turns' } },
      runs: [{ state: 'answered', is_paused: true }],
    },
    first: { is_change: true, text: 'Continuing.' },
    second: { is_change: false, text: 'It has already been continued.', message_id: null },
    last: { name: 'complete', data: { status: 'answered', exit_code: 0 } },
    answer: {
      ...{ result: 'You said: Continue where you stopped.', session_id: command.body['session_id'], error: null },
      runs: [{ is_paused: false }],
    },
  })
})

it('shows several clients the same events, whenever they come', async () => {
  const place = new Place()
  const { api } = await openApi(place)
  const { body } = await api.call('POST', '/projects/site/execute', {
    prompt: steps({ drip: 'a b c d e f', everyMs: 40 }),
  })
  const early = await Promise.all([1, 2, 3].map(() => all(streamOf(api, body['stream_url']))))
  const late = await all(streamOf(api, body['stream_url']))
  expect(early).toEqual([late, late, late])
  expect(textOf(late)).toBe('a b c d e f')
})

it('continues after a restart of the gateway where the client was', async () => {
  const place = new Place()
  const first = await openApi(place)
  const { body } = await first.api.call('POST', '/projects/site/execute', {
    prompt: steps({ text: 'Begun. ' }, { hold: 'restart' }, { text: 'Finished.' }),
  })
  const before: StreamedEvent[] = []
  for await (const event of streamOf(first.api, body['stream_url'])) {
    before.push(event)
    if (event.name === 'output') break
  }
  await first.stop()
  release(place.site, 'restart')
  const second = await openApi(place)
  const after = await all(streamOf(second.api, body['stream_url'], before.at(-1)?.id))
  const events = [...before, ...after]
  expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1))
  expect(events.filter(({ name }) => name === 'complete')).toEqual([events.at(-1)])
  expect([events.at(-1)?.data['status'], journalIn(place.site).length]).toEqual(['answered', 2])
})

it.skipIf(postgresUrl() === undefined)(
  'goes on at another gateway of the same database where the client was',
  async () => {
    const database = await createDatabase()
    onTestFinished(() => database.drop())
    const place = new Place({ databaseUrl: database.url })
    const other = new Place({ databaseUrl: database.url, projects: { site: { directory: place.site } } })
    const first = await openApi(place)
    const second = await openApi(other, first.token)
    const { body } = await first.api.call('POST', '/projects/site/execute', {
      prompt: steps({ text: 'Begun. ' }, { hold: 'moved' }, { drip: 'a b c', everyMs: 40 }),
    })
    const before: StreamedEvent[] = []
    for await (const event of streamOf(first.api, body['stream_url'])) {
      before.push(event)
      if (event.name === 'output') break
    }
    const rest = all(streamOf(second.api, body['stream_url'], before.at(-1)?.id))
    release(place.site, 'moved')
    const events = [...before, ...(await rest)]
    const replayed = await Promise.all([first, second].map(({ api }) => all(streamOf(api, body['stream_url']))))
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1))
    expect(events.filter(({ name }) => name === 'complete')).toEqual([events.at(-1)])
    expect(replayed).toEqual([events, events])
    expect([textOf(events), events.at(-1)?.data['status']]).toEqual(['Begun. \n\na b c', 'answered'])
  },
)

it('does not run a command again that the end of the gateway has cut off', async () => {
  const place = new Place()
  const first = await openApi(place)
  const script = 'require("fs").appendFileSync("ran", "x"); console.log("begun"); setInterval(() => {}, 1000)'
  const { body } = await first.api.call('POST', '/projects/site/shell', { command: ['node', '-e', script] })
  for await (const { name } of streamOf(first.api, body['stream_url'])) if (name === 'output') break
  await first.stop()
  const second = await openApi(place)
  const events = await all(streamOf(second.api, body['stream_url']))
  expect(events.at(-1)).toMatchObject({
    name: 'complete',
    data: { status: 'failed', error: expect.stringContaining('cut off') },
  })
  const retried = await second.api.call('POST', `/queue/${String(body['command_id'])}/retry`)
  expect([retried.status, retried.body['error']]).toMatchObject([409, { code: 'conflict' }])
  expect([readFileSync(join(place.site, 'ran'), 'utf8'), livingProcesses(place.site)]).toEqual(['x', []])
})

it('ends the stream of a command that is cancelled, and all that the agent had started', async () => {
  const place = new Place()
  const { api } = await openApi(place)
  const prompt = steps({ run: ['sleep', '1000'] }, { text: 'Begun' }, { hold: 'ever' })
  const { body } = await api.call('POST', '/projects/site/execute', { prompt })
  const events: StreamedEvent[] = []
  for await (const event of streamOf(api, body['stream_url'])) {
    events.push(event)
    if (event.name === 'output') await api.call('POST', `/projects/site/commands/${String(body['command_id'])}/cancel`)
  }
  expect(events.at(-1)).toMatchObject({
    name: 'complete',
    data: { status: 'cancelled', exit_code: expect.any(Number) },
  })
  expect(livingProcesses(place.site)).toEqual([])
})

it('opens a stream with a ticket, once', async () => {
  const place = new Place()
  const { api, url } = await openApi(place)
  const { body } = await api.call('POST', '/projects/site/execute', { prompt: 'hello' })
  const ticket = await api.call('POST', '/tickets', { path: body['stream_url'] })
  const open = (): Promise<Response> => fetch(`${url}${String(ticket.body['url'])}`)
  const first = await open()
  const text = await first.text()
  const second = await open()
  await second.body?.cancel()
  expect([first.status, text.includes('event: complete'), second.status]).toEqual([200, true, 401])
})

it('ends a clone when the client that asked for it has gone', async () => {
  const place = new Place()
  const { api } = await openApi(place)
  const remote = createServer()
  const connected = new Promise((resolve) => remote.once('connection', resolve))
  const port = await listen(remote)
  const gone = new AbortController()
  const git = { url: `https://127.0.0.1:${port}/x` }
  const creation = api.call('POST', '/projects', { id: 'cloned', git }, {}, gone.signal).catch(() => 'left')
  await connected
  const directory = join(place.directory, 'roots/cloned')
  const during = [existsSync(directory), livingProcesses(directory).length > 0]
  gone.abort()
  const outcome = await creation
  await until(() => !existsSync(directory) && livingProcesses(directory).length === 0, 'the end of the clone')
  expect([during, outcome, (await api.call('GET', '/projects/cloned')).status]).toEqual([[true, true], 'left', 404])
})

it('says to a client that all was seen, and that it is not known, before a stream begins', async () => {
  const place = new Place()
  const { api } = await openApi(place)
  const { body } = await api.call('POST', '/projects/site/execute', { prompt: 'hello' })
  const events = await all(streamOf(api, body['stream_url']))
  const over = await api.call('GET', String(body['stream_url']), undefined, { 'last-event-id': String(events.length) })
  const unknown = await api.call('GET', '/projects/site/streams/none')
  expect([over.status, unknown.status]).toEqual([204, 404])
})

interface Answer {
  status: number
  body: Record<string, unknown>
}

type Headers = Record<string, string>

interface Api {
  call(method: string, path: string, body?: object, headers?: Headers, signal?: AbortSignal): Promise<Answer>
  open(path: string, headers: Headers): Promise<Response>
}

/** A gateway that listens, and a client with the token that it created, or that another one has. */
async function openApi(
  place: Place,
  known?: string,
): Promise<{ api: Api; url: string; token: string; stop(): Promise<void> }> {
  const { url, stop } = await serve(place)
  const token = known ?? readFileSync(join(place.config.home, 'http-token'), 'utf8').trim()
  const send = (
    method: string,
    path: string,
    body?: object,
    headers: Headers = {},
    signal: AbortSignal | null = null,
  ): Promise<Response> =>
    fetch(`${url}${path}`, {
      method,
      signal,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
  const api: Api = {
    call: async (method, path, body, headers, signal) => {
      const response = await send(method, path, body, headers, signal)
      const text = await response.text()
      return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) }
    },
    open: (path, headers) => send('GET', path, undefined, headers),
  }
  return { api, url, token, stop }
}

/** The events of a stream after an id, as they come; leaving the loop closes it. */
async function* streamOf(api: Api, path: unknown, after?: number): AsyncGenerator<StreamedEvent, void> {
  const response = await api.open(String(path), after === undefined ? {} : { 'last-event-id': String(after) })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const frames = (text + chunk).split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      if (!frame.startsWith('id: ')) continue
      const [id, name = '', data = ''] = frame.split('\n').map((line) => line.slice(line.indexOf(': ') + 2))
      yield { id: Number(id), name, data: JSON.parse(data) as StreamedEvent['data'] }
    }
  }
}

async function all(stream: AsyncIterable<StreamedEvent>): Promise<StreamedEvent[]> {
  const events: StreamedEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

function textOf(events: StreamedEvent[]): string {
  return events
    .filter(({ name }) => name === 'output')
    .map(({ data }) => data['line'])
    .join('')
}
