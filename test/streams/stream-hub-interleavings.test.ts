// Clients of a stream that come, leave and come back at random; STREAM_INTERLEAVINGS says how often.

import { describe, expect, it } from 'vitest'
import { describeEngines, openTestStore } from '../kit/engines.js'
import { createPause, createRandom, interleave, type Writer } from './interleaving.js'
import { createMemoryWriter } from './memory-store.js'
import { createQueueWriter } from './queue-writer.js'

const INTERLEAVINGS = Number(process.env['STREAM_INTERLEAVINGS'] ?? 500)
const AT_ONCE = 250
/** Each query of PostgreSQL is a round trip. */
const OF_ENGINE = { sqlite: 200, postgres: 60 }
const AT_ONCE_OF_ENGINE = 20
const TIMEOUT_MS = 300_000

async function check(seed: number, createWriter: (pause: () => Promise<void>) => Promise<Writer> | Writer) {
  const random = createRandom(seed)
  const { expected, clients } = await interleave(await createWriter(createPause(random)), random)
  for (const client of clients) expect(client, `seed ${seed}`).toEqual(expected)
  return clients.length
}

async function checkAll(count: number, atOnce: number, one: (seed: number) => Promise<number>): Promise<number> {
  let clients = 0
  for (let seed = 0; seed < count; seed += atOnce) {
    const seeds = Array.from({ length: atOnce }, (_, index) => seed + index)
    for (const sum of await Promise.all(seeds.map(one))) clients += sum
  }
  return clients
}

describe(`${INTERLEAVINGS} interleavings of append, subscribe, disconnect, resume, restart, retries and interruptions`, () => {
  it(
    'give every client every event once, in order, and one end',
    async () => {
      const clients = await checkAll(INTERLEAVINGS, AT_ONCE, (seed) => check(seed, createMemoryWriter))
      expect(clients).toBeGreaterThan(INTERLEAVINGS)
    },
    TIMEOUT_MS,
  )
})

describeEngines('interleavings on a real store', (engine) => {
  it(
    'give every client every event once, in order, and one end',
    async () => {
      const store = engine.name === 'sqlite' ? await openTestStore({ file: ':memory:' }) : await engine.createStore()
      const count = OF_ENGINE[engine.name]
      const clients = await checkAll(count, AT_ONCE_OF_ENGINE, (seed) => check(seed, () => createQueueWriter(store)))
      expect(clients).toBeGreaterThan(count)
    },
    TIMEOUT_MS,
  )
})
