// A message in a real store, worked on through the real queue.

import { randomUUID } from 'node:crypto'
import type { AgentResult } from '../../src/backends/types.js'
import type { Settlement, Work } from '../../src/turns/types.js'
import type { Store } from '../../src/store/store.js'
import type { Ending, Writer } from './interleaving.js'
import { queueOn } from '../kit/queue.js'

const LEASE_MS = 1_000

export async function createQueueWriter(store: Store): Promise<Writer> {
  let now = 1_000
  const queue = queueOn(store, { leaseMs: LEASE_MS, now: () => now })
  // Its own channel, so that only this one claims it.
  const channel = `http ${randomUUID()}`
  const incoming = { channel, address: 'a', platformId: randomUUID(), author: 'ann', text: 'Hello' }
  const { messageId } = await queue.accept(incoming)
  let work: Work | undefined
  const held = (): Work => {
    if (!work) throw new Error('Nobody has claimed it')
    return work
  }
  return {
    store,
    messageId,
    claim: async () => {
      now += LEASE_MS + 1
      work = await queue.claim([channel])
    },
    begin: async (id) => {
      const { messageId, conversationId } = held().claim
      const run = { id, messageId, conversationId, gatewayId: 'one', backend: 'claude', directory: '/' }
      await store.runs.begin(run, now)
    },
    record: (runId, events) => store.events.record(runId, events),
    settle: async (id, kind, result) => {
      mustBe(await queue.settle(held(), settlementOf(id, kind, result, now)), 'settled')
    },
    fail: async () => {
      const reply = { text: 'It broke.', notes: [], isError: true }
      mustBe(await queue.settle(held(), { kind: 'failed', problem: 'It broke.', reply }), 'settled')
    },
    retry: async () => {
      await queue.retry(messageId)
    },
    drop: async () => {
      mustBe(await queue.drop(messageId), 'dropped')
    },
  }
}

function settlementOf(id: string, kind: Ending, result: AgentResult, now: number): Settlement {
  const run = { id, result }
  const reply = { text: 'Done', notes: [], isError: false }
  switch (kind) {
    case 'answered':
      return { kind, reply, run }
    case 'failed':
      return { kind, problem: 'exit: It broke.', reply, run }
    case 'retry':
      return { kind, at: now, isAttempt: false, run }
    case 'handed-back':
      return { kind, runId: id }
    default:
      return { kind, run }
  }
}

function mustBe(outcome: string, expected: string): void {
  if (outcome !== expected) throw new Error(`It was ${outcome}, not ${expected}`)
}
