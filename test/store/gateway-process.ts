// A gateway without agents, as a process of its own: on SQLite two connections in one process would wait for each other.
// Opens the database when told to, accepts messages and answers whatever there is until nothing is left.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createLog } from '../../src/log.js'
import { Queue } from '../../src/turns/queue.js'
import { openStore, type StoreLocation } from '../../src/store/store.js'

export interface GatewayProcessOptions {
  gatewayId: string
  location: StoreLocation
  addresses: string[]
  messagesEach: number
}

/** When a message was worked on. */
export interface Turn {
  platformId: string
  address: string
  fence: number
  from: number
  to: number
}

const { gatewayId, location, addresses, messagesEach } = JSON.parse(process.argv[2] ?? '') as GatewayProcessOptions

process.stdout.write('ready\n')
await once(process.stdin, 'data')
const store = await openStore(location, createLog())
const queue = new Queue(store, {
  gatewayId,
  maxQueueDepth: 1_000,
  leaseMs: 600_000,
  replyExpiryMs: 600_000,
  now: Date.now,
  newId: randomUUID,
})

const turns: Turn[] = []

async function answerNext(): Promise<boolean> {
  const work = await queue.claim(['chat'])
  if (!work) return false
  const { platformId, text } = work.message
  const from = Date.now()
  const run = { id: randomUUID(), messageId: work.message.id, conversationId: work.conversation.id }
  await store.runs.begin({ ...run, gatewayId, backend: 'claude' }, from)
  turns.push({ platformId, address: work.conversation.address, fence: work.claim.fence, from, to: Date.now() })
  const outcome = await queue.settle(work, {
    kind: 'answered',
    run: { id: run.id, result: { isError: false, durationMs: 0 } },
    reply: { text, notes: [], isError: false },
  })
  if (outcome === 'lost') throw new Error(`${platformId} was lost`)
  return true
}

for (let count = 0; count < messagesEach; count++) {
  for (const address of addresses) {
    const platformId = `${gatewayId}-${address}-${count}`
    await queue.accept({ channel: 'chat', address, platformId, author: 'ann', text: platformId })
    await answerNext()
  }
}
// The other gateway continues with what its own answers make ready.
while (await answerNext()) continue

await store.close()
process.stdout.write(`${JSON.stringify(turns)}\n`)
process.stdin.unref()
