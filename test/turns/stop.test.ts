import { expect, it } from 'vitest'
import { stopMessage } from '../../src/turns/stop.js'
import type { Settlement } from '../../src/turns/types.js'
import { openTestStore } from '../kit/engines.js'
import { queueOn } from '../kit/queue.js'

const run = { id: 'run', result: { isError: false, durationMs: 1 } }

it.each<[Settlement, string, string]>([
  [{ kind: 'failed', problem: 'It broke' }, 'finished', 'failed'],
  [{ kind: 'answered', run }, 'finished', 'answered'],
  [{ kind: 'retry', at: 5_000, isAttempt: true, run }, 'dropped', 'dropped'],
])('a message whose turn ends just before it is cancelled: %j', async (end, outcome, state) => {
  const store = await openTestStore({ file: ':memory:' })
  const queue = queueOn(store, { now: () => 1_000 })
  const incoming = { channel: 'chat', address: 'a', platformId: 'one', author: 'ann', text: 'Hello' }
  const { acceptance, work } = await queue.take(incoming, {}, () => undefined)
  const worker = {
    cancel: async () => {
      if (work) await queue.settle(work, end)
      return undefined
    },
    endMessage: () => {},
  }
  const { kind } = await stopMessage(acceptance.messageId, { store, queue, worker })
  expect([kind, (await store.inbox.get(acceptance.messageId))?.state]).toEqual([outcome, state])
})
