import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for it, but not longer. What it does then, it does unheard. */
export async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  await Promise.race([work, sleep(timeoutMs, undefined, { ref: false })])
}
