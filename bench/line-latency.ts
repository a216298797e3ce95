/** A line's latency from an agent's process through the whole gateway to a client, compared with a bare relay. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { formatFrame } from '../src/service/sse.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'
import { startBenchService } from './service.js'

const ROUNDS = 7
const LINES = 40
/** About as fast as models generate. */
const LINE_EVERY_MS = 20
const ROUND_LIMIT_MS = 20_000
const GOAL_MS = 2

/** Waits for the file named in its prompt; then prints lines that hold the time of their writing. */
const AGENT = `#!/usr/bin/env node
const { existsSync, readFileSync } = require('node:fs')
const { setTimeout: sleep } = require('node:timers/promises')
const session_id = '00000000-0000-4000-8000-000000000000'
const print = (line) => process.stdout.write(JSON.stringify({ ...line, session_id }) + '\\n')
const work = async () => {
  const go = /go when (\\S+) is there/.exec(readFileSync(0, 'utf8'))[1]
  print({ type: 'system', subtype: 'init', model: 'none' })
  while (!existsSync(go)) await sleep(5)
  for (let line = 0; line < ${LINES}; line += 1) {
    await sleep(${LINE_EVERY_MS})
    const text = 'The quick brown fox jumps over the lazy dog. @' + process.hrtime.bigint() + '@\\n'
    print({ type: 'stream_event', event: { type: 'content_block_delta', delta: { type: 'text_delta', text } } })
  }
  print({ type: 'result', subtype: 'success', is_error: false, result: 'done' })
}
void work()
`

/** In its own thread, so that only the server is measured. Reports that it is connected, and the times at the end. */
const CLIENT_THREAD = `
const { connect } = require('node:net')
const { parentPort, workerData: { port, request } } = require('node:worker_threads')
const times = []
const socket = connect(port, '127.0.0.1')
socket.setEncoding('utf8')
socket.write(request)
socket.once('data', () => parentPort.postMessage('connected'))
socket.on('data', (text) => {
  const now = process.hrtime.bigint()
  for (const [, writtenAt] of text.matchAll(/@(\\d+)@/g)) times.push(Number(now - BigInt(writtenAt)) / 1e6)
  if (text.includes('event: complete')) socket.end()
})
socket.on('close', () => parentPort.postMessage(times))
`

export async function measureLineLatency({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const directory = await mkdtemp(join(tmpdir(), 'line-latency-'))
  const relay = await startRelay(directory)
  const service = await startBenchService(AGENT)
  try {
    const [bare, whole]: [number[], number[]] = [[], []]
    // Alternating, so that other load on the machine affects both sides.
    for (let round = 0; round < ROUNDS; round += 1) {
      signal.throwIfAborted()
      bare.push(
        median(await timesOf(relay.address() as AddressInfo, `/bare-${round}`, join(directory, `bare-${round}`))),
      )
      const go = join(directory, `whole-${round}`)
      const { stream_url: path } = await service.execute({ prompt: promptFor(go) })
      whole.push(median(await timesOf(service, path, go)))
    }
    const [bareMs, wholeMs] = [lowerQuartile(bare), lowerQuartile(whole)]
    progress(`from an agent's line to the client ${wholeMs.toFixed(2)} ms; ${bareMs.toFixed(2)} by a bare relay`)
    return [atMost('line-latency.p50', wholeMs - bareMs, GOAL_MS, 'ms added')]
  } finally {
    await service.stop()
    relay.closeAllConnections()
    relay.close()
    await rm(directory, { recursive: true, force: true })
  }
}

/** Only forwards an agent's output as it comes. */
async function startRelay(directory: string): Promise<Server> {
  const agent = join(directory, 'agent')
  await writeFile(agent, AGENT, { mode: 0o700 })
  const server = createServer(({ url }, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('retry: 1000\n\n')
    const child = spawn(agent, { stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdin.end(promptFor(join(directory, String(url))))
    child.stdout.on('data', (chunk: Buffer) => response.write(formatFrame('1', 'output', chunk.toString())))
    child.on('close', () => response.end(formatFrame('2', 'complete', '{}')))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

function promptFor(go: string): string {
  return `go when ${go} is there`
}

/** How long each line took to reach a connected client. */
async function timesOf(
  { port, token }: Pick<AddressInfo, 'port'> & { token?: string },
  path: string,
  go: string,
): Promise<number[]> {
  const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const client = new Worker(CLIENT_THREAD, { eval: true, execArgv: [], workerData: { port, request } })
  const signal = AbortSignal.timeout(ROUND_LIMIT_MS)
  try {
    await once(client, 'message', { signal })
    const ended = once(client, 'message', { signal })
    await writeFile(go, '')
    const [times] = (await ended) as [number[]]
    return times
  } finally {
    await client.terminate()
  }
}

function median(values: number[]): number {
  const middle = values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
  if (middle === undefined) throw new Error('Nothing was measured')
  return middle
}
