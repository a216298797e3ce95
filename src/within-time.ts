import { setTimeout as sleep } from 'node:timers/promises'

/** What was asked for, or undefined when it took too long. Contract: rejects as it does, unless it was too late. */
export async function withinTime<T>(answer: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  const timeLimit = new AbortController()
  const late = sleep(timeoutMs, undefined, { signal: timeLimit.signal }).catch(() => undefined)
  try {
    return await Promise.race([answer, late])
  } finally {
    timeLimit.abort()
  }
}
