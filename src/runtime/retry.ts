import { backoffMs } from '../core/async.js'
import type { AgentFailure, FailureReason } from '../backends/types.js'

const MOST_RETRIES = 3
const BACKOFF = { firstMs: 5_000, longestMs: 20_000 }

/** Whose clock is right to the second? */
const AFTER_LIMIT_MS = 5_000
const LONG_LIMIT_MS = 60_000

/** Whether the same turn may go better the next time. */
const IS_TRANSIENT: Record<FailureReason, boolean> = {
  timeout: true,
  spawn: true,
  exit: true,
  no_result: true,
  rate_limit: true,
  auth: false,
  cancelled: false,
  session_lost: false,
  max_turns: false,
  refused: false,
}

export interface Retry {
  at: number
  /** Whether it counts as one of the attempts. A long wait for the end of a limit does not. */
  isAttempt: boolean
}

/** When a failed turn is tried again, or undefined when that would not help or was done often enough. */
export function planRetry(failure: AgentFailure, failures: number, now: number): Retry | undefined {
  const limitEnd = failure.reason === 'rate_limit' ? (failure.retryAt ?? 0) : 0
  // Short ones count as attempts: a limit that is always about to end would be waited for without end.
  if (limitEnd - now >= LONG_LIMIT_MS) return { at: limitEnd + AFTER_LIMIT_MS, isAttempt: false }
  const isTransient = IS_TRANSIENT[failure.reason] && !failure.isLasting
  if (!isTransient || failures >= MOST_RETRIES) return undefined
  return { at: Math.max(now + backoffMs(failures + 1, BACKOFF), limitEnd), isAttempt: true }
}
