/** How many commands per second the service accepts, compared with routes that check the same body and store almost
 *  nothing. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import fastify, { type FastifyInstance } from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { executeBodySchema, submittedSchema } from '../src/service/api/commands.js'
import { projectParams } from '../src/service/api/projects.js'
import { findPostgres, startPostgresCluster } from '../test/kit/postgres-cluster.js'
import { atLeast, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'
import { type BenchService, startBenchService } from './service.js'

const ROUNDS = 4
const CONNECTIONS = 16
/** Limits of one round, whichever comes first. */
const REQUESTS = 400
const ROUND_MS = 800
const LIMIT_MS = 20_000
/** Compared with a route that commits one row. A command takes twelve statements and two commits. */
const SHARE_GOAL = 0.05

/** Occupies the only slot, so that only accepting commands is measured, not running them. */
const AGENT = `#!/bin/sh
[ "$1" = --version ] && exec echo 2.1.197
exec sleep 1000
`

/** In its own thread, so that only the server is measured. Reports how many requests got a 202, and in what time. */
const CLIENT_THREAD = `
const { connect } = require('node:net')
const { parentPort, workerData: { port, path, token, connections, requests, roundMs } } = require('node:worker_threads')
const body = JSON.stringify({ prompt: 'Say hello to everybody, one by one.', timeout: 600, metadata: { ticket: 'A-1' } })
const head = 'POST ' + path + ' HTTP/1.1\\r\\nHost: 127.0.0.1:' + port + '\\r\\nAuthorization: Bearer ' + token
const request = head + '\\r\\nContent-Type: application/json\\r\\nContent-Length: ' + body.length + '\\r\\n\\r\\n' + body
let sent = 0, answered = 0, closed = 0
const startedAt = performance.now()
for (let index = 0; index < connections; index += 1) {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  const next = () => {
    text = ''
    if (sent >= requests || performance.now() - startedAt > roundMs) return socket.destroy()
    sent += 1
    socket.write(request)
  }
  socket.setEncoding('latin1')
  socket.on('data', (chunk) => {
    text += chunk
    const end = text.indexOf('\\r\\n\\r\\n')
    if (end < 0 || text.length < end + 4 + Number(/content-length: (\\d+)/i.exec(text)[1])) return
    if (!text.startsWith('HTTP/1.1 202')) throw new Error(text)
    answered += 1
    next()
  })
  socket.on('close', () => {
    closed += 1
    if (closed === connections) parentPort.postMessage({ answered, ms: performance.now() - startedAt })
  })
  next()
}
`

type Target = Pick<BenchService, 'port' | 'path' | 'token'>

export async function measureExecuteSpeed({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const measurements = await measureEngine('sqlite', undefined, signal, progress)
  const binaries = findPostgres(process.env['PATH'] ?? '')
  if (!binaries) {
    progress('PostgreSQL is not installed, so its half of the requests was not measured.')
    return measurements
  }
  const cluster = await startPostgresCluster(binaries)
  try {
    return [...measurements, ...(await measureEngine('postgres', cluster.url, signal, progress))]
  } finally {
    await cluster.stop()
  }
}

async function measureEngine(
  engine: string,
  databaseUrl: string | undefined,
  signal: AbortSignal,
  progress: BenchOptions['progress'],
): Promise<Measurement[]> {
  const service = await startBenchService(AGENT, databaseUrl)
  const { audit } = service.store
  const empty = await startBareRoute(async () => {})
  const committing = await startBareRoute(() => audit.add({ at: 0, actor: '', action: '', subject: '' }))
  try {
    const times: Record<'empty' | 'committing' | 'service', number[]> = { empty: [], committing: [], service: [] }
    // Alternating, so that other load on the machine affects all sides.
    for (let round = 0; round < ROUNDS; round += 1) {
      signal.throwIfAborted()
      times.empty.push(await msPerRequest({ ...service, ...(empty.server.address() as AddressInfo) }))
      times.committing.push(await msPerRequest({ ...service, ...(committing.server.address() as AddressInfo) }))
      times.service.push(await msPerRequest(service))
    }
    const rateOf = (values: number[]): number => 1_000 / lowerQuartile(values)
    const [rate, commits, bare] = [rateOf(times.service), rateOf(times.committing), rateOf(times.empty)]
    progress(
      `${engine}: ${rate.toFixed(0)} commands/s accepted; ${commits.toFixed(0)} by a bare route with one commit, ${bare.toFixed(0)} without`,
    )
    return [
      atLeast(`execute.requests-per-second.${engine}`, rate, commits * SHARE_GOAL, '/s'),
      atLeast(`execute.share.${engine}`, rate / bare, 0, 'of bare'),
    ]
  } finally {
    await empty.close()
    await committing.close()
    await service.stop()
  }
}

async function startBareRoute(keep: () => Promise<void>): Promise<FastifyInstance> {
  const app = fastify()
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.withTypeProvider<ZodTypeProvider>().route({
    method: 'POST',
    url: '/projects/:id/execute',
    schema: { params: projectParams, body: executeBodySchema, response: { 202: submittedSchema } },
    handler: async (_, reply) => {
      await keep()
      return reply.code(202).send({ command_id: '', stream_url: '', session_id: null, agent_provider: 'claudecode' })
    },
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  return app
}

async function msPerRequest({ port, path, token }: Target): Promise<number> {
  const limits = { connections: CONNECTIONS, requests: REQUESTS, roundMs: ROUND_MS }
  const workerData = { port, path, token, ...limits }
  const client = new Worker(CLIENT_THREAD, { eval: true, execArgv: [], workerData })
  try {
    const [{ answered, ms }] = (await once(client, 'message', { signal: AbortSignal.timeout(LIMIT_MS) })) as [
      { answered: number; ms: number },
    ]
    return ms / answered
  } finally {
    await client.terminate()
  }
}
