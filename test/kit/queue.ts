import { randomUUID } from 'node:crypto'
import type { Store } from '../../src/store/store.js'
import { Queue, type QueueOptions } from '../../src/turns/queue.js'

/** With limits that no test reaches by accident. */
export function queueOn(store: Store, options: Partial<QueueOptions> = {}): Queue {
  const limits = { maxQueueDepth: 100, leaseMs: 30_000, replyExpiryMs: 900_000 }
  return new Queue(store, { ...limits, gatewayId: 'one', now: Date.now, newId: randomUUID, ...options })
}
