import { backoffMs } from '../core/async.js'
import type { AgentFailure, FailureReason } from '../backends/types.js'
import { MAX_RETRIES } from '../config/schema.js'

const BACKOFF = { firstMs: 5_000, longestMs: 20_000 }

/** Margin for clock differences. */
const AFTER_LIMIT_MS = 5_000
const LONG_LIMIT_MS = 60_000
/** Too short for any agent to get something done. */
const LEAST_MS = 1_000

/** Whether a retry may succeed. */
const IS_TRANSIENT: Record<FailureReason, boolean> = {
  timeout: true,
  spawn: true,
  exit: true,
  no_result: true,
  rate_limit: true,
  auth: false,
  model_unknown: false,
  prompt_too_long: false,
  cancelled: false,
  session_lost: false,
  max_turns: false,
  refused: false,
}

export interface Retry {
  at: number
  /** Whether it counts as an attempt. A long wait for a limit to end does not. */
  isAttempt: boolean
}

export interface RetryLimits {
  /** How many times a turn that took too long is tried again. */
  timeoutRetries: number
  /** The longest that all attempts may take together. */
  totalMs: number
}

/** Failed attempts before this one, and how long the agent has worked, including this one. */
export interface Tried {
  failures: number
  /** Of the failures, those that took too long. */
  timeouts: number
  workedMs: number
}

/** When to retry a failed turn; undefined if that would not help or there were enough attempts. */
export function planRetry(
  failure: AgentFailure,
  { failures, timeouts, workedMs }: Tried,
  now: number,
  { timeoutRetries = MAX_RETRIES, totalMs = Infinity }: Partial<RetryLimits> = {},
): Retry | undefined {
  const limitEnd = failure.reason === 'rate_limit' ? (failure.retryAt ?? 0) : 0
  // Short waits count as attempts: a limit that is always about to end would otherwise be retried forever.
  if (limitEnd - now >= LONG_LIMIT_MS) return { at: limitEnd + AFTER_LIMIT_MS, isAttempt: false }
  const isTransient = IS_TRANSIENT[failure.reason] && !failure.isLasting
  const isSlow = failure.reason === 'timeout' && timeouts >= timeoutRetries
  if (!isTransient || isSlow || failures >= MAX_RETRIES || totalMs - workedMs < LEAST_MS) return undefined
  return { at: Math.max(now + backoffMs(failures + 1, BACKOFF), limitEnd), isAttempt: true }
}

/** The total number of attempts if each further one fails like this one, after the same time. */
export function attemptsInAll(
  failure: AgentFailure,
  durationMs: number,
  { failures, timeouts, workedMs }: Tried,
  limits?: Partial<RetryLimits>,
): number {
  const next = planRetry(failure, { failures, timeouts, workedMs }, 0, limits)
  if (!next?.isAttempt) return failures + 1
  const tried = {
    failures: failures + 1,
    timeouts: timeouts + (failure.reason === 'timeout' ? 1 : 0),
    workedMs: workedMs + durationMs,
  }
  return attemptsInAll(failure, durationMs, tried, limits)
}
