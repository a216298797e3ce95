import { setTimeout as sleep } from 'node:timers/promises'

const LONGEST_MS = 60_000

/**
 * Waits until `look` finds something, and returns it; nothing depends on how long that takes. `what` is for the error.
 * Works in concurrent tests too, where the global `expect.poll` does not.
 */
export async function until<T>(
  look: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  what: string | (() => string) = String(look),
  longestMs = LONGEST_MS,
): Promise<T> {
  const deadline = Date.now() + longestMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    if (Date.now() > deadline) throw new Error(`Timed out waiting for: ${typeof what === 'string' ? what : what()}`)
    await sleep(20)
  }
}
