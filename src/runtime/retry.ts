import type { AgentFailure } from '../backends/types.js'

/** Three retries, each after twice the time. */
const RETRY_DELAYS_MS = [5_000, 10_000, 20_000]

/** Whose clock is right to the second? A little later, and not all at once. */
const AFTER_LIMIT_MS = 5_000

export interface Retry {
  at: number
  /** Whether it counts as one of the attempts. Waiting for the end of a limit does not. */
  isAttempt: boolean
}

/** When a failed turn is tried again, or undefined when that would not help or was done often enough. */
export function planRetry(failure: AgentFailure, failures: number, now: number): Retry | undefined {
  if (failure.reason === 'rate_limit' && failure.retryAt !== undefined) {
    return { at: Math.max(failure.retryAt, now) + AFTER_LIMIT_MS, isAttempt: false }
  }
  const delayMs = isTransient(failure) ? RETRY_DELAYS_MS[failures] : undefined
  return delayMs === undefined ? undefined : { at: now + delayMs, isAttempt: true }
}

function isTransient({ reason }: AgentFailure): boolean {
  switch (reason) {
    case 'timeout':
    case 'spawn':
    case 'exit':
    case 'no_result':
    case 'rate_limit':
      return true
    case 'auth':
    case 'cancelled':
    case 'session_lost':
    case 'max_turns':
    case 'refused':
      return false
  }
}
