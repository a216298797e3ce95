import { once } from 'node:events'
import { type ClientRequest, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AgentEvent } from '../../src/backends/types.js'
import { messageOf } from '../../src/errors.js'
import { type EventStreamOptions, formatFrame, readLastEventId, sendEventStream } from '../../src/service/sse.js'
import type { NumberedEvent } from '../../src/streams/numbered-event.js'
import { StreamHub } from '../../src/streams/stream-hub.js'
import { openTestStore } from '../kit/engines.js'
import { createQueueWriter } from '../streams/queue-writer.js'
import { until } from '../kit/waiting.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

/** What a response may buffer: one batch of its stream, and what its socket is writing. */
const MAX_HELD_BYTES = 200_000

interface TestServer {
  socketPath: string
  responses: ServerResponse[]
  /** How each stream ended. */
  ended: Array<Promise<string>>
  get(headers?: Record<string, string>): Promise<{ request: ClientRequest; response: IncomingMessage }>
}

/** On a Unix socket: it buffers little, so a client that does not read soon has an effect. */
async function serve(
  follow: (after: number, signal: AbortSignal) => AsyncIterable<NumberedEvent[]>,
  options?: EventStreamOptions,
): Promise<TestServer> {
  const socketPath = join(temporaryDirectory(), 'http')
  const responses: ServerResponse[] = []
  const ended: Array<Promise<string>> = []
  const server = createServer((request, response) => {
    const after = readLastEventId(request.headers['last-event-id'])
    responses.push(response)
    const sent = sendEventStream(response, (signal) => follow(after, signal), options)
    ended.push(sent.then(() => 'ended', messageOf))
  })
  await once(server.listen(socketPath), 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await Promise.all(ended)
  })
  return {
    socketPath,
    responses,
    ended,
    get: async (headers = {}) => {
      const request = get({ socketPath, headers })
      // Leaving early causes an error at both ends.
      request.on('error', () => {})
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      return { request, response }
    },
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8')
  let text = ''
  for await (const chunk of response) text += chunk as string
  return text
}

function output(number: number, content: string): NumberedEvent {
  return { number, event: { type: 'output', content, stream: 'stdout', timestamp: 0 } }
}

async function* endless(signal: AbortSignal, content = 'x'): AsyncGenerator<NumberedEvent[]> {
  for (let number = 1; !signal.aborted; number += 1) yield [output(number, content)]
}

async function* silent(signal: AbortSignal): AsyncGenerator<NumberedEvent[]> {
  if (!signal.aborted) await once(signal, 'abort')
  yield []
}

describe('a stream of events', () => {
  it('is not cached by proxies, and carries the number of each event', async () => {
    const server = await serve(async function* (after) {
      yield [output(after + 1, 'one\ntwo'), output(after + 2, 'three')]
      const timestamp = 0
      yield [{ number: after + 3, event: { type: 'final', status: 'answered', exitCode: 0, durationMs: 5, timestamp } }]
    })
    const { response } = await server.get({ 'last-event-id': '7' })
    const { 'content-type': type, 'cache-control': cache, 'x-accel-buffering': buffering } = response.headers
    expect([response.statusCode, type, cache, buffering, await textOf(response)]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      'no-cache, no-transform',
      'no',
      `retry: 1000

id: 8
event: output
data: {"line":"one\\ntwo","stream":"stdout"}

id: 9
event: output
data: {"line":"three","stream":"stdout"}

id: 10
event: complete
data: {"exit_code":0,"duration_ms":5,"session_id":null,"provider":null,"status":"answered"}

`,
    ])
  })

  it('has heartbeats while nothing happens', async () => {
    const server = await serve((_, signal) => silent(signal), { heartbeatMs: 5 })
    const { response } = await server.get()
    let text = ''
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    await until(() => text.includes(':\n\n:\n\n'), 'two signs of life')
    expect(text.replaceAll(':\n\n', '')).toBe('retry: 1000\n\n')
  })

  it('is left when the client leaves', async () => {
    let hasLeft = false
    const server = await serve(async function* (_, signal) {
      try {
        yield* silent(signal)
      } finally {
        hasLeft = true
      }
    })
    const { request } = await server.get()
    request.destroy()
    await until(() => hasLeft, 'that it was left')
    expect(await Promise.all(server.ended)).toEqual(['ended'])
  })

  it('ends for a server that stops', async () => {
    const stop = new AbortController()
    const server = await serve((_, signal) => silent(signal), { signal: stop.signal })
    const { response } = await server.get()
    stop.abort()
    expect(await textOf(response)).toBe('retry: 1000\n\n')
  })

  it('is closed for a client that takes nothing for too long', async () => {
    const server = await serve((_, signal) => endless(signal, 'x'.repeat(10_000)), { stallMs: 50 })
    const client = connect(server.socketPath)
    onTestFinished(() => void client.destroy())
    client.pause().write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await until(() => server.responses[0]?.destroyed ?? false, 'the end of the connection')
    expect(await Promise.all(server.ended)).toEqual(['ended'])
  })

  it('passes on what its source throws, and ends', async () => {
    const server = await serve(async function* (after) {
      yield [output(after + 1, 'one')]
      throw new Error('The store is away')
    })
    const { response } = await server.get()
    const text = await textOf(response)
    expect([text.includes('"one"'), await server.ended[0]]).toEqual([true, 'The store is away'])
  })
})

describe('200 clients on one run, of which one never reads', () => {
  it('all others get everything, and that one is not waited for and not kept for', async () => {
    const [count, size, perBatch, clientCount] = [1_200, 2_000, 20, 199]
    const writer = await createQueueWriter(await openTestStore({ file: ':memory:' }))
    const hub = new StreamHub(writer.store, Date.now)
    const server = await serve((after, signal) => hub.follow(writer.messageId, after, signal))
    const stuck = connect(server.socketPath)
    onTestFinished(() => void stuck.destroy())
    stuck.pause().write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await until(() => server.responses.length === 1, 'the first client')
    const clients = await Promise.all(
      Array.from({ length: clientCount }, async () => idsOf((await server.get()).response)),
    )

    await writer.claim()
    await writer.begin('run')
    let mostHeld = 0
    for (let seq = 1; seq <= count; seq += perBatch) {
      const recorded = Array.from({ length: perBatch }, (_, index) => {
        const event: AgentEvent = { type: 'output', content: 'x'.repeat(size), stream: 'stdout', timestamp: 0 }
        return { seq: seq + index, event }
      })
      await writer.record('run', recorded)
      hub.push(writer.messageId, 'run', recorded)
      await sleep(1)
      mostHeld = Math.max(mostHeld, server.responses[0]?.writableLength ?? 0)
    }
    await writer.settle('run', 'answered', { isError: false, durationMs: 1 })
    hub.settled(writer.messageId)

    const seen = await Promise.all(clients.map(({ done }) => done))
    const whole = Array.from({ length: count + 1 }, (_, index) => index + 1)
    expect(seen.every((ids) => ids.length === whole.length && ids.every((id, index) => id === whole[index]))).toBe(true)
    expect([server.responses[0]?.writableNeedDrain, server.responses[0]?.destroyed]).toEqual([true, false])
    expect(mostHeld).toBeLessThan(MAX_HELD_BYTES)
  })
})

/** The ids in a response, as they come. */
function idsOf(response: IncomingMessage): { done: Promise<number[]> } {
  const read = async (): Promise<number[]> => {
    const ids: number[] = []
    let rest = ''
    for await (const chunk of response.setEncoding('latin1')) {
      const frames = (rest + (chunk as string)).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) if (frame.startsWith('id: ')) ids.push(Number.parseInt(frame.slice(4), 10))
    }
    return ids
  }
  return { done: read() }
}

describe('a Last-Event-ID', () => {
  it.each([
    [undefined, 0],
    ['0', 0],
    ['42', 42],
  ])('%s means %d', (header, expected) => {
    expect(readLastEventId(header)).toBe(expected)
  })

  it.each(['', ' ', '-1', '1.5', '1e3', '0x10', 'abc', '1, 2', '1\r\nX: y', '9'.repeat(16), '٣'])(
    'cannot be %j',
    (id) => {
      expect(() => readLastEventId(id)).toThrow(expect.objectContaining({ code: 'request_invalid' }))
    },
  )
})

describe('a frame', () => {
  it.each(['1\n', '1\r', '1\r\ndata: forged', '1\0'])('refuses the id %j', (id) => {
    expect(() => formatFrame(id, 'output', '{}')).toThrow(expect.objectContaining({ code: 'request_invalid' }))
  })

  it('keeps every line of its data within itself', () => {
    expect(formatFrame('1', 'output', 'a\nid: 9\r\n\r\nb\rc')).toBe(
      'id: 1\nevent: output\ndata: a\ndata: id: 9\ndata: \ndata: b\ndata: c\n\n',
    )
  })
})
