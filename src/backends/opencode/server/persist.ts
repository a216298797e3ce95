import { setTimeout as sleep } from 'node:timers/promises'
import { OpenCodeServerError } from './client.js'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

/** Asks the server until it answers, with growing pauses. Contract: never rejects; gives up when the server says that it
 *  was asked for nothing it has, or when it is vain to go on. */
export async function persist(ask: () => Promise<void>, isVain: () => boolean): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await ask()
    } catch (error) {
      const { status = 0 } = error instanceof OpenCodeServerError ? error : {}
      if (status >= 400 && status < 500) return
    }
    if (isVain()) return
    await sleep(pauseMs, undefined, { ref: false })
    if (isVain()) return
  }
}
