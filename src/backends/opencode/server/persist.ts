import { backoffMs, wait } from '../../../core/async.js'
import { OpenCodeServerError } from './client.js'

const BACKOFF = { firstMs: 250, longestMs: 10_000 }

/** Asks the server until it answers, with growing pauses. Contract: never rejects; gives up when the server says that it
 *  was asked for nothing it has, or when it is vain to go on. */
export async function persist(ask: () => Promise<void>, isVain: () => boolean): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask()
    } catch (error) {
      const { status = 0 } = error instanceof OpenCodeServerError ? error : {}
      if (status >= 400 && status < 500) return
    }
    if (isVain()) return
    await wait(backoffMs(failures, BACKOFF), { ref: false })
    if (isVain()) return
  }
}
