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

/** setTimeout turns anything longer into one millisecond. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface TimeLimit {
  signal: AbortSignal
  /** Contract: to be called when the work is over. */
  clear(): void
}

/**
 * A signal that comes when the time is over, or with another one and its reason.
 *
 * In place of AbortSignal.timeout: within AbortSignal.any, Node.js 20 collects its timer as garbage, and it never fires.
 */
export function timeLimit(timeoutMs: number, signal?: AbortSignal, tooLate: unknown = new TooLate()): TimeLimit {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(tooLate), Math.min(timeoutMs, LONGEST_TIMER_MS))
  const stop = (): void => limit.abort(signal?.reason)
  signal?.addEventListener('abort', stop)
  if (signal?.aborted) stop()
  return {
    signal: limit.signal,
    clear() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    },
  }
}

/** Work that heeds its signal, which comes when the time is over, or with another one. */
export async function inTime<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const limit = timeLimit(timeoutMs, signal)
  try {
    return await work(limit.signal)
  } finally {
    limit.clear()
  }
}

class TooLate extends Error {
  override name = 'TimeoutError'
  override message = 'It took too long.'
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
