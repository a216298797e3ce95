// Against a server that disconnects where the test wants it to.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, it, onTestFinished, vi } from 'vitest'
import { AetheelClient, type CommandEvent } from '../../src/client/aetheel-client.js'
import { formatFrame } from '../../src/service/sse.js'
import { serveHttp } from '../kit/loopback.js'

type Serve = (request: IncomingMessage, response: ServerResponse) => void

it('continues after the last event it has seen when the connection breaks, and shows none twice', async () => {
  const asked: unknown[] = []
  const command = await commandOf(
    (request, response) => {
      asked.push(request.headers['last-event-id'])
      begin(response)
      // In the middle of a frame.
      response.write(`${output(1)}${output(2)}id: 3\nevent: out`, () => response.destroy())
    },
    (request, response) => {
      asked.push(request.headers['last-event-id'])
      begin(response).end(output(2) + output(3))
    },
    (request, response) => {
      asked.push(request.headers['last-event-id'])
      begin(response).end(output(4) + complete(5))
    },
  )
  const ids = (await all(command.events())).map(({ id }) => id)
  expect([ids, asked]).toEqual([
    [1, 2, 3, 4, 5],
    [undefined, '2', '3'],
  ])
})

it('tries again when the gateway is overloaded or starts', async () => {
  const command = await commandOf(
    (_, response) => refuse(response, 503, 'overloaded'),
    (_, response) => response.destroy(),
    (_, response) => begin(response).end(complete(1)),
  )
  expect(await all(command.events())).toEqual([{ id: 1, name: 'complete', data: { status: 'answered' } }])
})

it('ends at once when there is nothing after the event it has seen', async () => {
  const command = await commandOf((_, response) => response.writeHead(204).end())
  expect(await all(command.events({ after: 5 }))).toEqual([])
})

it('ignores unknown events, and whatever comes after the last', async () => {
  const command = await commandOf((_, response) =>
    begin(response).end(formatFrame('1', 'weather', '{}') + complete(2) + output(3)),
  )
  expect((await all(command.events())).map(({ name }) => name)).toEqual(['complete'])
})

it('says why when the gateway refuses', async () => {
  const command = await commandOf((_, response) => refuse(response, 404, 'not_found'))
  await expect(all(command.events())).rejects.toMatchObject({
    name: 'AetheelApiError',
    code: 'not_found',
    status: 404,
    message: 'Refused: not_found.',
  })
})

it('says so if the answer is not an event stream', async () => {
  const command = await commandOf((_, response) => response.end('<h1>Hello</h1>'))
  await expect(all(command.events())).rejects.toMatchObject({ code: 'unexpected_answer', status: 200 })
})

it('ends at the signal, while it reads and while it waits', async () => {
  const reading = new AbortController()
  const open = await commandOf((_, response) => begin(response).write(output(1)))
  const seen = (async () => {
    for await (const _ of open.events({ signal: reading.signal })) reading.abort(new Error('enough'))
  })()
  await expect(seen).rejects.toThrow('enough')
  const waiting = new AbortController()
  const away = await commandOf(
    (_, response) => response.destroy(),
    (_, response) => {
      response.destroy()
      waiting.abort(new Error('enough of that'))
    },
  )
  await expect(all(away.events({ signal: waiting.signal }))).rejects.toThrow('enough of that')
})

it('closes the connection when the loop is left', async () => {
  const isClosed = vi.fn<() => void>()
  const command = await commandOf((_, response) => {
    begin(response).write(output(1))
    response.once('close', isClosed)
  })
  for await (const _ of command.events()) break
  await expect.poll(() => isClosed.mock.calls.length).toBe(1)
})

it('treats a silent connection as dead, and reconnects; gives up if nobody answers', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  let count = 0
  const client = new AetheelClient({
    baseUrl: 'http://gateway',
    token: 'token',
    fetch: (_, init) => {
      count += 1
      if (count > 2) throw new TypeError('fetch failed')
      return new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error))
      })
    },
  })
  const failed = all(client.command('site', '1').events()).catch((error: unknown) => error)
  // Second by second: work between two timers may take longer than one turn of the event loop.
  for (let second = 0; second < 600; second += 1) await vi.advanceTimersByTimeAsync(1_000)
  expect([await failed, count]).toMatchObject([
    {
      code: 'unreachable',
      status: 0,
      message: 'No gateway answers at http://gateway. Start one with "aetheel start".',
    },
    13,
  ])
})

async function commandOf(...answers: Serve[]) {
  const rest = [...answers]
  const url = await serveHttp((request, response) => {
    const serve = rest.shift()
    if (serve) serve(request, response)
    else refuse(response, 400, 'request_invalid')
  })
  return new AetheelClient({ baseUrl: `${url}/`, token: 'token\n' }).command('my site', '1')
}

function begin(response: ServerResponse): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).write('retry: 1\n\n')
  return response
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status).end(JSON.stringify({ error: { code, message: `Refused: ${code}.` } }))
}

function output(id: number): string {
  return formatFrame(String(id), 'output', JSON.stringify({ line: `line ${id}\n`, stream: 'stdout' }))
}

function complete(id: number): string {
  return formatFrame(String(id), 'complete', JSON.stringify({ status: 'answered' }))
}

async function all(events: AsyncIterable<CommandEvent>): Promise<CommandEvent[]> {
  const seen: CommandEvent[] = []
  for await (const event of events) seen.push(event)
  return seen
}
