// What a turn came to, whichever way the agent was driven.

import { classifyFailure, type FailureSign, findSign, parseRetryAt, readableMessage } from './failures.js'
import { type Failed, PARSE_FAILURE, type Translation, type Verdict } from './translation.js'
import type { AgentFailure, AgentResult } from '../types.js'

/** What we did ourselves, or the place where the agent ran. */
export function failureOfStop(stopped: Failed): AgentFailure {
  return { ...stopped, report: stopped.reason === 'timeout' ? 'Query timed out' : stopped.message }
}

/** It would be no less the next time, and the work would be done again. */
export function printedTooMuch(problem: string): Failed {
  return { reason: 'no_result', message: `The agent printed ${problem} and was stopped.`, isLasting: true }
}

/** What the agent itself said. */
export function reportedFailure(
  said: Extract<Verdict, { isError: true }>,
  failureSigns: readonly FailureSign[],
  now: number,
): AgentFailure {
  const reason = said.reason ?? classifyFailure(said.message, failureSigns)
  return withRetryAt({ reason, message: readableMessage(said.message), report: said.message }, said.retryAfterMs, now)
}

/** There was no final word; `complaint` is what was said last of what went wrong. */
export function unansweredFailure(
  label: string,
  complaint: string,
  failureSigns: readonly FailureSign[],
): AgentFailure {
  const reason = findSign(complaint, failureSigns)?.[1] ?? 'no_result'
  const message = reason === 'no_result' ? `${label} ended without an answer. ${complaint}`.trim() : complaint
  return { reason, message, report: PARSE_FAILURE }
}

export function withRetryAt(failure: AgentFailure, retryAfterMs: number | undefined, now: number): AgentFailure {
  if (failure.reason !== 'rate_limit') return failure
  const retryAt = retryAfterMs === undefined ? parseRetryAt(failure.message, now) : now + retryAfterMs
  return retryAt !== undefined && retryAt - now < LONGEST_WAIT_MS ? { ...failure, retryAt } : failure
}

/** What asks for longer has been misread. */
const LONGEST_WAIT_MS = 31 * 86_400_000

export function resultOf(
  { verdict, sessionId, usage, sessionUsage, costUsd, metadata }: Partial<Translation>,
  failure: AgentFailure | undefined,
  { durationMs, exitCode }: Pick<AgentResult, 'durationMs' | 'exitCode'>,
): AgentResult {
  return {
    isError: failure !== undefined,
    durationMs,
    ...(exitCode !== undefined && { exitCode }),
    ...(!failure && verdict?.isError === false && { finalOutput: verdict.text }),
    // A lost session must not be offered for the next turn.
    ...(sessionId !== undefined && failure?.reason !== 'session_lost' && { sessionId }),
    ...(usage && { usage }),
    ...(sessionUsage && { sessionUsage }),
    ...(costUsd !== undefined && { costUsd }),
    ...(metadata && { metadata }),
    ...(failure && { failure }),
  }
}
