// Why a turn failed, for every kind of lifetime.
//
// Traps:
// - Success is the agent's own final word, never the exit code alone: several exit with 0 after a failure or a kill.
// - The gateway's own actions (time-out, cancel) override anything the agent still managed to say.

import type { Scrubber } from '../../credentials/scrubber.js'
import type { PodLoss, PodProblem } from '../../kubernetes/types.js'
import type { AgentFailure, FailureReason } from '../types.js'
import { crashOf } from './crash.js'
import type { Translation, Verdict } from './translation.js'

/** A failure decided by the gateway, not reported by the agent. */
export interface Failed {
  reason: FailureReason
  message: string
  /** As in `AgentFailure`. */
  isLasting?: boolean
  podProblem?: PodProblem
}

export const CANCELLED: Failed = { reason: 'cancelled', message: 'Cancelled' }

/** The report of an output without a final word. */
export const PARSE_FAILURE = 'Failed to parse CLI output'

export function failureOf(failed: Failed): AgentFailure {
  return { ...failed, report: failed.reason === 'timeout' ? 'Query timed out' : failed.message }
}

/** Permanent: a retry would print as much, and repeat the work. */
export function printedTooMuch(problem: string): Failed {
  return { reason: 'no_result', message: `The agent printed ${problem} and was stopped.`, isLasting: true }
}

/** Only a person can fix these. */
const PERMANENT = new Set<PodProblem>(['cli_missing', 'directory_missing', 'container_not_found', 'forbidden'])
/** These happen only after the agent has started. */
const DURING_RUN = new Set<PodProblem>(['pod_gone', 'stream_lost'])

export function failureOfPod({ problem, message }: PodLoss): Failed {
  return {
    reason: DURING_RUN.has(problem) ? 'exit' : 'spawn',
    message,
    podProblem: problem,
    ...(PERMANENT.has(problem) && { isLasting: true }),
  }
}

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
export interface Evidence {
  ending: Ending
  translation: Pick<Translation, 'verdict' | 'lastProblem'>
  /** Set if the gateway stopped the turn. */
  stopped: Failed | undefined
  /** Scrubbed. */
  stderr: string
  /** The lines of stdout that were not messages, scrubbed. */
  plainStdout: string
}

/** Why the turn failed; undefined if it succeeded. */
export function judge(context: JudgeContext, evidence: Evidence): AgentFailure | undefined {
  const failure = causeOf(context, evidence)
  return failure && evidence.stderr !== '' ? { ...failure, stderr: evidence.stderr } : failure
}

function causeOf(context: JudgeContext, evidence: Evidence): AgentFailure | undefined {
  const { label, failureSigns } = context
  const { ending, stopped, stderr } = evidence
  const { verdict, lastProblem } = evidence.translation
  if (ending.type === 'not-started') {
    return failureOf({ reason: 'spawn', message: `${label} CLI could not be started: ${ending.message}` })
  }
  if (stopped) return failureOf(stopped)
  if (ending.type === 'lost') return failureOf(ending.failed)
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
  { translation: { verdict }, stderr, plainStdout }: Evidence,
  exitCode: number,
  words: string,
): AgentFailure {
  const said = verdict?.isError ? verdict : undefined
  const onStdout = said?.message ?? (verdict?.isError === false ? verdict.text : plainStdout)
  const message = words || onStdout.trim() || `${label} ended with exit code ${exitCode}.`
  const named = reasonOf(said ?? { message }, failureSigns)
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

/** A failure reported by the agent itself. */
function reportedFailure({ failureSigns, now }: JudgeContext, said: Extract<Verdict, { isError: true }>): AgentFailure {
  const { message, retryAfterMs } = said
  const reason = reasonOf(said, failureSigns)
  return withRetryAt({ reason, message: readableMessage(message), report: message }, retryAfterMs, now())
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
    crashOf(stderr) ??
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

/** The first matching sign determines the reason, and adds advice where the CLI's own message has none. */
export type FailureSign = readonly [sign: RegExp, reason: FailureReason, advice?: string]

/** Common to all CLIs and model servers. A backend's own signs take precedence. */
const COMMON_SIGNS: readonly FailureSign[] = [
  // As Anthropic, OpenAI and Google say it. First: some of these texts also mention access.
  [
    /\bmodel\b[^\n]{0,100}\bdoes not exist\b|\bmodels\/\S+ is not found\b|\bnot_found_error\b.{0,40}\bmodel:/i,
    'model_unknown',
  ],
  [/\bprompt is too long\b|\bmaximum context length\b|\bexceeds the maximum number of tokens\b/i, 'prompt_too_long'],
  [/\b429\b|rate.?limit|too many requests|\bquota\b|usage limit|hit your limit|resource.?exhausted/i, 'rate_limit'],
  [/\b40[13]\b|unauthori[sz]ed|forbidden|api.?key|not logged in|authenticat|please (?:log|sign) ?in/i, 'auth'],
  // Last: a request is also called invalid for the reasons above.
  [/^400\b|"code":400\b|\binvalid_request_error\b|\busage polic(?:y|ies)\b|\bcontent (?:filter|policy)/i, 'refused'],
]

export function classifyFailure(message: string, ownSigns: readonly FailureSign[]): FailureReason {
  return findSign(message, [...ownSigns, ...COMMON_SIGNS])?.[1] ?? 'exit'
}

export function findSign(message: string, signs: readonly FailureSign[]): FailureSign | undefined {
  return signs.find(([sign]) => sign.test(message))
}

/** The failure reason implied by an HTTP status of the model server, if any. */
function reasonOfStatus(status: unknown): FailureReason | undefined {
  if (status === 401 || status === 403) return 'auth'
  return status === 429 ? 'rate_limit' : undefined
}

type Said = Pick<Extract<Verdict, { isError: true }>, 'message' | 'reason' | 'status'>

/** Why an agent failed, according to its own reason, the HTTP status of its model server, or its message. */
export function reasonOf({ message, reason, status }: Said, ownSigns: readonly FailureSign[]): FailureReason {
  const named = reason ?? reasonOfStatus(status) ?? classifyFailure(message, ownSigns)
  // After the message: an unknown model and a prompt that is too long have these statuses too.
  return named === 'exit' && (status === 400 || status === 422) ? 'refused' : named
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DURATION = /(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)(?:ays?|ours?|rs?|in(?:ute)?s?|ec(?:ond)?s?)?(?![a-z])/gi
const WAIT = /(?:try again|retry|resets?|available)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)/i
const CLOCK = /(?:try again|retry|resets?|until)\s+(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*([ap]m)?\b(?!\s*[a-z]*second)/i
const EPOCH = /\|(\d{10})\b/

/** When a rate limit ends, if its message says so: `…|1760000000`, `try again in 2 h 5 m`, `resets 3pm`. */
export function parseRetryAt(wholeMessage: string, now: number): number | undefined {
  // The patterns are slow on long runs of digits, and the time always comes early in the message.
  const message = wholeMessage.slice(0, 1_000)
  const epoch = EPOCH.exec(message)?.[1]
  if (epoch) return Number(epoch) * 1000

  const wait = WAIT.exec(message)?.[1]
  if (wait) {
    const parts = [...wait.matchAll(DURATION)]
    const ms = parts.reduce(
      (sum, [, amount, unit = '']) => sum + Number(amount) * (UNIT_MS[unit.toLowerCase()] ?? 0),
      0,
    )
    return ms > 0 ? now + ms : undefined
  }

  const clock = CLOCK.exec(message)
  if (!clock || (clock[2] === undefined && clock[3] === undefined)) return undefined
  const isAfternoon = clock[3]?.toLowerCase() === 'pm'
  const hour = clock[3] ? (Number(clock[1]) % 12) + (isAfternoon ? 12 : 0) : Number(clock[1])
  const at = new Date(now)
  at.setHours(hour, Number(clock[2] ?? 0), 0, 0)
  // A time of day that has passed means tomorrow.
  return at.getTime() > now ? at.getTime() : at.getTime() + 86_400_000
}

/** The human-readable part of an error: some CLIs pass on the model server's JSON verbatim. */
export function readableMessage(message: string): string {
  const start = message.indexOf('{')
  const end = message.lastIndexOf('}') + 1
  if (start === -1 || end <= start) return message
  try {
    const { error } = JSON.parse(message.slice(start, end)) as { error?: { message?: unknown } }
    if (typeof error?.message !== 'string') return message
    return message.slice(0, start) + error.message + message.slice(end)
  } catch {
    return message // It only looked like JSON.
  }
}
