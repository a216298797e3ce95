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

/** What was asked for, or undefined when the signal came first. Contract: rejects as it does, unless it was too late. */
export async function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let onAbort = (): void => {}
  const aborted = new Promise<undefined>((resolve) => {
    onAbort = () => resolve(undefined)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  })
  try {
    return await Promise.race([aborted, answer])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
