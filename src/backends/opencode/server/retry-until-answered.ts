import { backoffMs, wait } from '../../../core/async.js'
import { OpenCodeServerError } from './client.js'

const BACKOFF = { firstMs: 250, longestMs: 10_000 }

/** Asks the server until it answers, with growing pauses. Contract: never rejects; gives up when the server says that it
 *  was asked for nothing it has, or when nobody waits for the answer any more. */
export async function retryUntilAnswered(ask: () => Promise<void>, isAbandoned: () => boolean): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask()
    } catch (error) {
      const { status = 0 } = error instanceof OpenCodeServerError ? error : {}
      if (status >= 400 && status < 500) return
    }
    if (isAbandoned()) return
    await wait(backoffMs(failures, BACKOFF), { ref: false })
    if (isAbandoned()) return
  }
}
