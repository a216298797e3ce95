/** What the queue costs: a message through all its transactions, and a claim from a long queue. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../src/log.js'
import { Queue } from '../src/turns/queue.js'
import type { Work } from '../src/turns/types.js'
import { openStore, type Store } from '../src/store/store.js'
import { findPostgres, startPostgresCluster } from '../test/kit/postgres-cluster.js'
import { atLeast, atMost, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'

const MESSAGES = 1_000
const CONVERSATIONS = 1_000
const QUEUED = 10_000
const CLAIMS = 200
/** Messages per second relative to bare commits per second: a message needs three transactions of several rows each. */
const SHARE_GOAL = 0.1
const CLAIM_GROWTH_GOAL = 2

export async function measureQueueSpeed({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const directory = await mkdtemp(join(tmpdir(), 'queue-'))
  try {
    const measurements = await measureEngine('sqlite', { file: join(directory, 'aetheel.db') }, signal, progress)
    const binaries = findPostgres(process.env['PATH'] ?? '')
    if (!binaries) {
      progress('PostgreSQL is not installed, so its half of the queue was not measured.')
      return measurements
    }
    const cluster = await startPostgresCluster(binaries)
    try {
      const location = { file: '', databaseUrl: cluster.url }
      return [...measurements, ...(await measureEngine('postgres', location, signal, progress))]
    } finally {
      await cluster.stop()
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function measureEngine(
  engine: string,
  location: Parameters<typeof openStore>[0],
  signal: AbortSignal,
  progress: BenchOptions['progress'],
): Promise<Measurement[]> {
  const store = await openStore(location, createLog())
  try {
    const queue = new Queue(store, {
      gatewayId: 'bench',
      maxQueueDepth: QUEUED,
      leaseMs: 600_000,
      replyExpiryMs: 600_000,
      now: Date.now,
      newId: randomUUID,
    })
    const commits = await perSecond(MESSAGES, signal, () => bareCommit(store))
    const messages = await perSecond(MESSAGES, signal, async (index) => {
      await accept(queue, index)
      await answer(queue)
    })
    progress(`${engine}: ${messages.toFixed(0)} messages/s from accept to settle; ${commits.toFixed(0)} bare commits/s`)

    const empty = await claimTimes(queue, signal, (index) => accept(queue, index))
    for (let index = 0; index < QUEUED; index += 1) {
      signal.throwIfAborted()
      await accept(queue, index)
    }
    const full = await claimTimes(queue, signal, async () => {})
    progress(
      `${engine}: a claim takes ${empty.toFixed(2)} ms on an empty queue, ${full.toFixed(2)} ms when ${QUEUED} wait`,
    )
    return [
      atLeast(`queue.messages-per-second.${engine}`, messages, commits * SHARE_GOAL, '/s'),
      atMost(`queue.claim-growth.${engine}`, full / empty, CLAIM_GROWTH_GOAL, 'times'),
    ]
  } finally {
    await store.close()
  }
}

/** The smallest durable commit on this disk. */
async function bareCommit(store: Store): Promise<void> {
  await store.transaction((tables) => tables.audit.add({ at: 0, actor: '', action: '', subject: '' }))
}

async function accept(queue: Queue, index: number): Promise<void> {
  const address = `conversation-${index % CONVERSATIONS}`
  await queue.accept({ channel: 'bench', address, platformId: randomUUID(), author: 'bench', text: 'hello' })
}

async function claim(queue: Queue): Promise<Work> {
  const work = await queue.claim(['bench'])
  if (!work) throw new Error('Nothing to claim')
  return work
}

async function answer(queue: Queue, claimed?: Work): Promise<void> {
  const work = claimed ?? (await claim(queue))
  const reply = { text: 'hello', notes: [], isError: false }
  const run = { id: randomUUID(), result: { isError: false, durationMs: 0 } }
  await queue.settle(work, { kind: 'answered', run, reply })
}

async function claimTimes(
  queue: Queue,
  signal: AbortSignal,
  before: (index: number) => Promise<void>,
): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < CLAIMS; index += 1) {
    signal.throwIfAborted()
    await before(index)
    const startedAt = performance.now()
    const work = await claim(queue)
    times.push(performance.now() - startedAt)
    await answer(queue, work)
  }
  return lowerQuartile(times)
}

async function perSecond(count: number, signal: AbortSignal, work: (index: number) => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  for (let index = 0; index < count; index += 1) {
    signal.throwIfAborted()
    await work(index)
  }
  return (count * 1000) / (performance.now() - startedAt)
}
