/** What a stream costs: events to many clients, compared with a bare loop that writes the same. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { AgentEvent } from '../src/backends/types.js'
import { formatFrame, sendEventStream } from '../src/service/sse.js'
import { createLog } from '../src/log.js'
import { openStore, type Store } from '../src/store/store.js'
import { StreamHub } from '../src/streams/stream-hub.js'
import { createQueueWriter } from '../test/streams/queue-writer.js'
import { atLeast, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'

const CLIENTS = [1, 50, 200]
const ROUNDS = 5
/** Frames per round over all clients together, so that every round takes about as long. */
const FRAMES = 300_000
const MAX_EVENTS = 20_000
const EVENTS_AT_ONCE = 20
const LINE = 'The quick brown fox jumps over the lazy dog, and then writes about it. '.repeat(3)
const SHARE_GOAL = 0.8

/** In its own thread, so that only the server is measured. Reports when all are connected, and when all have ended. */
const CLIENT_THREAD = `
const { connect } = require('node:net')
const { parentPort, workerData: { port, count } } = require('node:worker_threads')
let connected = 0, ended = 0, bytes = 0
for (let index = 0; index < count; index += 1) {
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')
  socket.once('data', () => { if (++connected === count) parentPort.postMessage('connected') })
  socket.on('data', (chunk) => { bytes += chunk.length })
  socket.on('end', () => { if (++ended === count) parentPort.postMessage(bytes) })
}
`

export async function measureStreams({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const directory = await mkdtemp(join(tmpdir(), 'streams-'))
  const store = await openStore({ file: join(directory, 'aetheel.db') }, createLog())
  try {
    const measurements: Measurement[] = []
    for (const clients of CLIENTS) {
      const events = Math.min(MAX_EVENTS, FRAMES / clients)
      const [bare, streamed]: [number[], number[]] = [[], []]
      // Alternating, so that other load on the machine affects both sides.
      for (let round = 0; round < ROUNDS; round += 1) {
        signal.throwIfAborted()
        bare.push(await timeBareLoop(clients, events))
        streamed.push(await timeStreams(store, clients, events))
      }
      const [bareMs, streamedMs] = [lowerQuartile(bare), lowerQuartile(streamed)]
      const perSecond = (ms: number): string => ((events * 1_000) / ms).toFixed(0)
      progress(`${clients} clients: ${perSecond(streamedMs)} events/s each; ${perSecond(bareMs)} by a bare loop`)
      const share = bareMs / streamedMs
      measurements.push(atLeast(`streams.share.${clients}-clients`, share, clients === 200 ? SHARE_GOAL : 0, 'of bare'))
    }
    return measurements
  } finally {
    await store.close()
    await rm(directory, { recursive: true, force: true })
  }
}

async function timeBareLoop(clients: number, events: number): Promise<number> {
  const responses: ServerResponse[] = []
  const server = await listen((response) => {
    responses.push(response.writeHead(200, { 'content-type': 'text/event-stream' }))
    response.write('retry: 1000\n\n')
  })
  return timeClients(server, clients, async () => {
    for (let number = 1; number <= events; number += 1) {
      const data = JSON.stringify({ line: LINE, stream: 'stdout' })
      const frame = Buffer.from(formatFrame(String(number), 'output', data))
      for (const response of responses) response.write(frame)
      if (number % EVENTS_AT_ONCE === 0) await nextTurn()
    }
    for (const response of responses) response.end()
  })
}

async function timeStreams(store: Store, clients: number, events: number): Promise<number> {
  const writer = await createQueueWriter(store)
  const runId = `run of ${writer.messageId}`
  await writer.claim()
  await writer.begin(runId)
  const hub = new StreamHub(store, Date.now)
  const server = await listen((response) => {
    void sendEventStream(response, (gone) => hub.follow(writer.messageId, 0, gone))
  })
  return timeClients(server, clients, async () => {
    for (let seq = 1; seq <= events; seq += EVENTS_AT_ONCE) {
      const recorded = Array.from({ length: EVENTS_AT_ONCE }, (_, index) => ({ seq: seq + index, event: output(LINE) }))
      await writer.record(runId, recorded)
      hub.push(writer.messageId, runId, recorded)
      await nextTurn()
    }
    await writer.settle(runId, 'answered', { isError: false, durationMs: 0 })
    hub.settled(writer.messageId)
  })
}

/** From the first event until the last client has all. */
async function timeClients(server: Server, count: number, send: () => Promise<void>): Promise<number> {
  const { port } = server.address() as AddressInfo
  const clients = new Worker(CLIENT_THREAD, { eval: true, execArgv: [], workerData: { port, count } })
  try {
    await once(clients, 'message')
    const ended = once(clients, 'message')
    const startedAt = performance.now()
    await send()
    await ended
    return performance.now() - startedAt
  } finally {
    await clients.terminate()
    server.closeAllConnections()
    server.close()
  }
}

async function listen(answer: (response: ServerResponse) => void): Promise<Server> {
  const server = createServer((_, response) => answer(response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

function output(content: string): AgentEvent {
  return { type: 'output', content, stream: 'stdout', timestamp: 0 }
}
