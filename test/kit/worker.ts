import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { Worker, type WorkerOptions } from '../../src/turns/work.js'
import { SILENT_LOG } from './log.js'

/** A worker without a sender for its replies. Stopped when the test ends. */
export function createWorker(
  options: Pick<WorkerOptions, 'channels' | 'queue' | 'store' | 'plan'> & Partial<WorkerOptions>,
): Worker {
  const worker = new Worker({
    maxConcurrentQueries: 5,
    leaseMs: 30_000,
    replies: { claim: async () => undefined, send() {}, wake() {} },
    onSettled() {},
    onCancelled() {},
    onRetry() {},
    onEvents() {},
    onRecorded() {},
    onStep() {},
    scrub: (text) => text,
    log: SILENT_LOG,
    now: Date.now,
    newId: randomUUID,
    ...options,
  })
  onTestFinished(() => worker.stop(0))
  return worker
}
