// What a turn came to, whichever way the agent was driven.
//
// Traps that a careless edit would fall into:
// - Success is the agent's own final word, never the exit code alone: several exit with 0 after a failure or a kill.
// - What we did ourselves (time-out, cancel) decides over anything the agent still managed to say.

import type { Scrubber } from '../../credentials/scrubber.js'
import { classifyFailure, type FailureSign, findSign, parseRetryAt, readableMessage } from './failures.js'
import { type Failed, PARSE_FAILURE, type Translation, type Verdict } from './translation.js'
import type { AgentFailure, AgentResult } from '../types.js'

/** How a turn came to its end. */
export type Ending =
  /** The agent says that it is over, or it was ended before it began. */
  | { type: 'done' }
  /** A process for this turn alone has exited. */
  | { type: 'exited'; exitCode: number }
  /** A process that was to take further turns has exited. */
  | { type: 'died'; exitCode: number }
  | { type: 'not-started'; message: string }
  /** The process runs, but takes no turns. */
  | { type: 'not-ready'; message: string }
  /** What the agent ran on is gone, or has lost the turn. */
  | { type: 'lost'; failed: Failed }

/** What is known of an agent before it says anything. */
export interface Judging {
  /** As it stands in error sentences. */
  label: string
  failureSigns: readonly FailureSign[]
  scrubber: Scrubber
  now: () => number
}

/** What a turn is judged by. */
export interface Evidence extends Pick<Translation, 'verdict' | 'complaint'> {
  ending: Ending
  /** What we did ourselves. */
  stopped: Failed | undefined
  /** Scrubbed. */
  stderr: string
  /** The lines of stdout that were no messages, scrubbed. */
  plainStdout: string
}

/** Why the turn failed, or undefined when it did not. */
export function judge(judging: Judging, evidence: Evidence): AgentFailure | undefined {
  const failure = failureOf(judging, evidence)
  return failure && evidence.stderr !== '' ? { ...failure, stderr: evidence.stderr } : failure
}

function failureOf(judging: Judging, evidence: Evidence): AgentFailure | undefined {
  const { label, failureSigns } = judging
  const { ending, stopped, verdict, complaint, stderr } = evidence
  if (ending.type === 'not-started') {
    const message = `${label} CLI could not be started: ${ending.message}`
    return { reason: 'spawn', message, report: message }
  }
  if (stopped) return failureOfStop(stopped)
  if (ending.type === 'lost') return failureOfStop(ending.failed)
  if (ending.type === 'not-ready') return failureOfDeath(judging, ending.message, false)
  if (ending.type === 'died') {
    return failureOfDeath(judging, complaint || mainLine(stderr, failureSigns), ending.exitCode > 128)
  }
  const said = verdict?.isError ? verdict : undefined
  // A warm process may print what is not about this turn.
  const printed = ending.type === 'exited' ? mainLine(stderr, failureSigns) : ''
  const words = readableMessage(said?.message ?? complaint ?? printed)
  if (ending.type === 'exited' && ending.exitCode !== 0) return failureOfExit(judging, evidence, ending.exitCode, words)
  if (said) return reportedFailure(judging, said)
  // An exit code of 0 proves nothing: some CLIs say only on stderr why they did not answer.
  return verdict ? undefined : unansweredFailure(judging, words)
}

const REPORT_CHARACTERS = 500

function failureOfExit(
  { label, failureSigns, scrubber, now }: Judging,
  { verdict, stderr, plainStdout }: Evidence,
  exitCode: number,
  words: string,
): AgentFailure {
  const said = verdict?.isError ? verdict : undefined
  const onStdout = said?.message ?? (verdict?.isError === false ? verdict.text : plainStdout)
  const message = words || onStdout.trim() || `${label} ended with exit code ${exitCode}.`
  const named = said?.reason ?? classifyFailure(said?.message ?? message, failureSigns)
  // A final word may be a general one, and the cause on stderr alone.
  const reason = named === 'exit' ? (findSign(stderr, failureSigns)?.[1] ?? named) : named
  const text = scrubber.scrub(stderr || onStdout || 'unknown error').slice(0, REPORT_CHARACTERS)
  const report = `${label} CLI error (exit ${exitCode}): ${text}`
  return withRetryAt({ reason, message, report }, said?.retryAfterMs, now())
}

function failureOfDeath({ label, failureSigns, now }: Judging, words: string, wasKilled: boolean): AgentFailure {
  const message = readableMessage(words) || `${label} ended in the middle of a turn.`
  // What one that was killed said before is not why: others may have been meant, or it was over that.
  const reason = wasKilled ? 'exit' : classifyFailure(message, failureSigns)
  return withRetryAt({ reason, message, report: message }, undefined, now())
}

/** What we did ourselves, or the place where the agent ran. */
export function failureOfStop(stopped: Failed): AgentFailure {
  return { ...stopped, report: stopped.reason === 'timeout' ? 'Query timed out' : stopped.message }
}

/** It would be no less the next time, and the work would be done again. */
export function printedTooMuch(problem: string): Failed {
  return { reason: 'no_result', message: `The agent printed ${problem} and was stopped.`, isLasting: true }
}

/** What the agent itself said. */
function reportedFailure(
  { failureSigns, now }: Judging,
  { message, reason, retryAfterMs }: Extract<Verdict, { isError: true }>,
): AgentFailure {
  const named = reason ?? classifyFailure(message, failureSigns)
  return withRetryAt({ reason: named, message: readableMessage(message), report: message }, retryAfterMs, now())
}

/** There was no final word; `complaint` is what was said last of what went wrong. */
function unansweredFailure({ label, failureSigns }: Judging, complaint: string): AgentFailure {
  const reason = findSign(complaint, failureSigns)?.[1] ?? 'no_result'
  const message = reason === 'no_result' ? `${label} ended without an answer. ${complaint}`.trim() : complaint
  return { reason, message, report: PARSE_FAILURE }
}

function withRetryAt(failure: AgentFailure, retryAfterMs: number | undefined, now: number): AgentFailure {
  if (failure.reason !== 'rate_limit') return failure
  const retryAt = retryAfterMs === undefined ? parseRetryAt(failure.message, now) : now + retryAfterMs
  return retryAt !== undefined && retryAt - now < LONGEST_WAIT_MS ? { ...failure, retryAt } : failure
}

/** What asks for longer has been misread. */
const LONGEST_WAIT_MS = 31 * 86_400_000

/** The line of stderr a person should read: CLIs print warnings and progress there too. */
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

/** What happened often stands at the beginning of a line, and why at its end. */
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
    // A lost session must not be offered for the next turn.
    ...(sessionId !== undefined && failure?.reason !== 'session_lost' && { sessionId }),
    ...(usage && { usage }),
    ...(sessionUsage && { sessionUsage }),
    ...(costUsd !== undefined && { costUsd }),
    ...(metadata && { metadata }),
    ...(failure && { failure }),
  }
}
