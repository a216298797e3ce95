// The outcome of a turn, for every kind of lifetime.
//
// Traps:
// - Success is the agent's own final word, never the exit code alone: several exit with 0 after a failure or a kill.
// - The gateway's own actions (time-out, cancel) override anything the agent still managed to say.

import type { Scrubber } from '../../credentials/scrubber.js'
import { classifyFailure, type FailureSign, findSign, parseRetryAt, readableMessage } from './failures.js'
import { type Failed, PARSE_FAILURE, type Translation, type Verdict } from './translation.js'
import type { AgentFailure, AgentResult } from '../types.js'

/** How a turn ended. */
export type Ending =
  /** The agent says it is done, or the turn was stopped before it began. */
  | { type: 'done' }
  /** A one-shot process exited. */
  | { type: 'exited'; exitCode: number }
  /** A warm process exited. */
  | { type: 'died'; exitCode: number }
  | { type: 'not-started'; message: string }
  /** The process runs but accepts no turns. */
  | { type: 'not-ready'; message: string }
  /** The pod or server the agent ran on is gone, or has lost the turn. */
  | { type: 'lost'; failed: Failed }

export interface JudgeContext {
  /** The agent's name in error messages. */
  label: string
  failureSigns: readonly FailureSign[]
  scrubber: Scrubber
  now: () => number
}

/** What a turn is judged by. */
export interface Evidence extends Pick<Translation, 'verdict' | 'lastProblem'> {
  ending: Ending
  /** Set if the gateway stopped the turn. */
  stopped: Failed | undefined
  /** Scrubbed. */
  stderr: string
  /** The lines of stdout that were not messages, scrubbed. */
  plainStdout: string
}

/** Why the turn failed; undefined if it succeeded. */
export function judge(context: JudgeContext, evidence: Evidence): AgentFailure | undefined {
  const failure = failureOf(context, evidence)
  return failure && evidence.stderr !== '' ? { ...failure, stderr: evidence.stderr } : failure
}

function failureOf(context: JudgeContext, evidence: Evidence): AgentFailure | undefined {
  const { label, failureSigns } = context
  const { ending, stopped, verdict, lastProblem, stderr } = evidence
  if (ending.type === 'not-started') {
    const message = `${label} CLI could not be started: ${ending.message}`
    return { reason: 'spawn', message, report: message }
  }
  if (stopped) return failureOfStop(stopped)
  if (ending.type === 'lost') return failureOfStop(ending.failed)
  if (ending.type === 'not-ready') return failureOfDeath(context, ending.message, false)
  if (ending.type === 'died') {
    return failureOfDeath(context, lastProblem || mainLine(stderr, failureSigns), ending.exitCode > 128)
  }
  const said = verdict?.isError ? verdict : undefined
  // A warm process may print things unrelated to this turn.
  const printed = ending.type === 'exited' ? mainLine(stderr, failureSigns) : ''
  const words = readableMessage(said?.message ?? lastProblem ?? printed)
  if (ending.type === 'exited' && ending.exitCode !== 0) return failureOfExit(context, evidence, ending.exitCode, words)
  if (said) return reportedFailure(context, said)
  // An exit code of 0 proves nothing: some CLIs say only on stderr why they did not answer.
  return verdict ? undefined : unansweredFailure(context, words)
}

const REPORT_CHARACTERS = 500

function failureOfExit(
  { label, failureSigns, scrubber, now }: JudgeContext,
  { verdict, stderr, plainStdout }: Evidence,
  exitCode: number,
  words: string,
): AgentFailure {
  const said = verdict?.isError ? verdict : undefined
  const onStdout = said?.message ?? (verdict?.isError === false ? verdict.text : plainStdout)
  const message = words || onStdout.trim() || `${label} ended with exit code ${exitCode}.`
  const named = said?.reason ?? classifyFailure(said?.message ?? message, failureSigns)
  // The final word may be generic, with the cause only on stderr.
  const reason = named === 'exit' ? (findSign(stderr, failureSigns)?.[1] ?? named) : named
  const text = scrubber.scrub(stderr || onStdout || 'unknown error').slice(0, REPORT_CHARACTERS)
  const report = `${label} CLI error (exit ${exitCode}): ${text}`
  return withRetryAt({ reason, message, report }, said?.retryAfterMs, now())
}

function failureOfDeath({ label, failureSigns, now }: JudgeContext, words: string, wasKilled: boolean): AgentFailure {
  const message = readableMessage(words) || `${label} ended in the middle of a turn.`
  // What a killed process said earlier is not the cause: it may concern another turn, or have been resolved.
  const reason = wasKilled ? 'exit' : classifyFailure(message, failureSigns)
  return withRetryAt({ reason, message, report: message }, undefined, now())
}

/** A failure caused by the gateway, or by the place where the agent ran. */
export function failureOfStop(stopped: Failed): AgentFailure {
  return { ...stopped, report: stopped.reason === 'timeout' ? 'Query timed out' : stopped.message }
}

/** Permanent: a retry would print as much, and repeat the work. */
export function printedTooMuch(problem: string): Failed {
  return { reason: 'no_result', message: `The agent printed ${problem} and was stopped.`, isLasting: true }
}

/** A failure reported by the agent itself. */
function reportedFailure(
  { failureSigns, now }: JudgeContext,
  { message, reason, retryAfterMs }: Extract<Verdict, { isError: true }>,
): AgentFailure {
  const named = reason ?? classifyFailure(message, failureSigns)
  return withRetryAt({ reason: named, message: readableMessage(message), report: message }, retryAfterMs, now())
}

/** There was no final word; `lastProblem` is the latest problem reported. */
function unansweredFailure({ label, failureSigns }: JudgeContext, lastProblem: string): AgentFailure {
  const reason = findSign(lastProblem, failureSigns)?.[1] ?? 'no_result'
  const message = reason === 'no_result' ? `${label} ended without an answer. ${lastProblem}`.trim() : lastProblem
  return { reason, message, report: PARSE_FAILURE }
}

function withRetryAt(failure: AgentFailure, retryAfterMs: number | undefined, now: number): AgentFailure {
  if (failure.reason !== 'rate_limit') return failure
  const retryAt = retryAfterMs === undefined ? parseRetryAt(failure.message, now) : now + retryAfterMs
  return retryAt !== undefined && retryAt - now < MAX_WAIT_MS ? { ...failure, retryAt } : failure
}

/** A longer wait must have been misread. */
const MAX_WAIT_MS = 31 * 86_400_000

/** The most relevant line of stderr: CLIs print warnings and progress there too. */
function mainLine(stderr: string, failureSigns: readonly FailureSign[]): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const line =
    lines.find((candidate) => findSign(candidate, failureSigns)) ??
    lines.find((candidate) => /^(?:fatal|error)\b|\berror:|\bunknown (?:argument|option)/i.test(candidate)) ??
    lines.at(-1) ??
    ''
  const advice = findSign(line, failureSigns)?.[2] ?? ''
  return `${shortened(line)} ${advice}`.trim()
}

/** Keeps both ends: a line often begins with what happened and ends with why. */
function shortened(line: string): string {
  const half = REPORT_CHARACTERS / 2
  return line.length <= REPORT_CHARACTERS ? line : `${line.slice(0, half)} … ${line.slice(-half)}`
}

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
    // A lost session must not be reused for the next turn.
    ...(sessionId !== undefined && failure?.reason !== 'session_lost' && { sessionId }),
    ...(usage && { usage }),
    ...(sessionUsage && { sessionUsage }),
    ...(costUsd !== undefined && { costUsd }),
    ...(metadata && { metadata }),
    ...(failure && { failure }),
  }
}
