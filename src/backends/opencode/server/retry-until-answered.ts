import { backoffMs, wait } from '../../../core/async.js'
import { OpenCodeServerError } from './client.js'

const BACKOFF = { firstMs: 250, longestMs: 10_000 }

/** Asks the server until it answers, with back-off. Contract: never rejects; gives up on a 4xx status, or when the answer is
 *  no longer needed. */
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
