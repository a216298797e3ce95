// One run of one process, from its start to its `complete`.
//
// Traps that a careless edit would fall into:
// - Reading never waits for the consumer: Claude Code drops output that nobody takes.
// - Success is the CLI's own final word, never the exit code alone: several exit with 0 after a failure or a kill.
// - What we did ourselves (time-out, cancel) decides over anything the CLI still managed to say.

import { StringDecoder } from 'node:string_decoder'
import type { Scrubber } from '../credentials/scrubber.js'
import { type Piece, StreamedText } from '../credentials/streamed-text.js'
import { BoundedText } from '../processes/bounded-text.js'
import { LineSplitter, type OutputLimits } from '../processes/line-splitter.js'
import { type ProcessExit, type ProcessOptions, startProcess } from '../processes/local-process.js'
import { EventQueue } from './event-queue.js'
import { classifyFailure, type FailureSign, findSign, parseRetryAt, readableMessage } from './failures.js'
import { stripAnsi } from './jsonl.js'
import { PlainTranslation } from './plain-translation.js'
import { type Failed, PARSE_FAILURE, readInto, type Translation } from './translation.js'
import type { AgentEvent, AgentEventBody, AgentFailure, AgentResult } from './types.js'

export interface RunPlan {
  label: string
  failureSigns: readonly FailureSign[]
  process: Omit<ProcessOptions, 'onStdout' | 'onStderr'>
  translation: (emit: (event: AgentEventBody) => void) => Translation
  timeoutMs: number
  /** 0 is for ever. */
  idleTimeoutMs: number
  limits: OutputLimits
  now: () => number
  scrubber: Scrubber
  /** Looked at when the process has ended; a sentence to tell, if something did not go as intended. */
  check?: (() => string | undefined) | undefined
}

export interface Run {
  events: AsyncIterable<AgentEvent>
  /** Ends the run for a reason of our own; the first reason stands. Nothing happens when it is over. */
  stop(failed: Failed): void
  /** Settles when nothing of the run is alive and `complete` is among the events. */
  ended: Promise<void>
}

export function startRun(plan: RunPlan): Run {
  const startedAt = plan.now()
  const queue = new EventQueue(plan.now)
  const stderr = new BoundedText()
  const stderrDecoder = new StringDecoder('utf8')
  const stderrText = new StreamedText<'stderr'>(plan.scrubber)
  const keepStderr = (pieces: Piece<'stderr'>[]): void => pieces.forEach(({ text }) => stderr.append(text))
  const plainStdout = new BoundedText()
  let stopped: Failed | undefined
  let lastSignOfLife = startedAt

  const translation = plan.translation((event) => queue.push(event))
  const reader =
    translation instanceof PlainTranslation
      ? translation
      : readInto(
          translation,
          plan.limits.lineBytes,
          (line) => plainStdout.append(plainStdout.isEmpty ? line : `\n${line}`),
          (line) => plan.scrubber.scrub(line),
        )
  const splitter = new LineSplitter(
    plan.limits,
    (line) => {
      if (stopped) return
      reader.line(line)
      if (translation.mustStop) stop(translation.mustStop)
    },
    (problem) => stop({ reason: 'no_result', message: `The agent printed ${problem} and was stopped.` }),
  )

  const child = startProcess({
    ...plan.process,
    onStdout(chunk) {
      lastSignOfLife = plan.now()
      // Not left to the timer alone, which a flood of output holds up.
      if (lastSignOfLife - startedAt >= plan.timeoutMs) timeout()
      splitter.push(chunk)
    },
    onStderr(chunk) {
      lastSignOfLife = plan.now()
      keepStderr(stderrText.push(stderrDecoder.write(chunk), 'stderr'))
    },
  })

  function stop(failed: Failed): void {
    stopped ??= failed
    child.stop()
  }

  function timeout(message = `The agent did not finish within ${seconds(plan.timeoutMs)}.`): void {
    stop({ reason: 'timeout', message })
  }

  const totalTimer = setTimeout(() => timeout(), Math.min(plan.timeoutMs, LONGEST_TIMER_MS))
  const idleTimer =
    plan.idleTimeoutMs > 0
      ? setInterval(
          () => {
            if (plan.now() - lastSignOfLife < plan.idleTimeoutMs) return
            timeout(`The agent printed nothing for ${seconds(plan.idleTimeoutMs)}.`)
          },
          Math.min(plan.idleTimeoutMs / 4, 5_000),
        )
      : undefined

  const ended = child.ended.then((exit) => {
    clearTimeout(totalTimer)
    clearInterval(idleTimer)
    if (!stopped) {
      splitter.end()
      reader.end()
    }
    keepStderr(stderrText.end())
    const problem = stopped ? undefined : plan.check?.()
    if (problem) queue.push({ type: 'notice', content: problem })
    const output = { stderr: stripAnsi(stderr.toString()), plainStdout: plainStdout.toString() }
    const failure = judge(plan, exit, stopped, translation, output)
    if (failure && output.stderr !== '') failure.stderr = output.stderr
    queue.complete(resultOf(exit, translation, failure, plan.now() - startedAt))
  })

  return { events: queue, stop, ended }
}

/** setTimeout turns anything longer into one millisecond. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

const REPORT_CHARACTERS = 500

/** Why the run failed, or undefined when it did not. */
function judge(
  plan: RunPlan,
  exit: ProcessExit,
  stopped: Failed | undefined,
  { verdict, complaint: lastComplaint }: Translation,
  { stderr, plainStdout }: { stderr: string; plainStdout: string },
): AgentFailure | undefined {
  const { label, failureSigns } = plan
  if ('spawnError' in exit) {
    const message = `${label} CLI could not be started: ${exit.spawnError.message}`
    return { reason: 'spawn', message, report: message }
  }
  if (stopped) return { ...stopped, report: stopped.reason === 'timeout' ? 'Query timed out' : stopped.message }

  const said = verdict?.isError ? verdict : undefined
  const complaint = readableMessage(said?.message ?? lastComplaint ?? mainLine(stderr, failureSigns))
  if (exit.exitCode !== 0) {
    const onStdout = said?.message ?? (verdict?.isError === false ? verdict.text : plainStdout)
    const message = complaint || onStdout.trim() || `${label} ended with exit code ${exit.exitCode}.`
    const reason = said?.reason ?? classifyFailure(said?.message ?? message, failureSigns)
    const text = plan.scrubber.scrub(stderr || onStdout || 'unknown error').slice(0, REPORT_CHARACTERS)
    const report = `${label} CLI error (exit ${exit.exitCode}): ${text}`
    return withRetryAt({ reason, message, report }, said?.retryAfterMs, plan.now())
  }
  if (said) {
    const reason = said.reason ?? classifyFailure(said.message, failureSigns)
    return withRetryAt({ reason, message: complaint, report: said.message }, said.retryAfterMs, plan.now())
  }
  if (!verdict) {
    // An exit code of 0 proves nothing: some CLIs say only on stderr why they did not answer.
    const reason = findSign(complaint, failureSigns)?.[1] ?? 'no_result'
    const message = reason === 'no_result' ? `${label} ended without an answer. ${complaint}`.trim() : complaint
    return { reason, message, report: PARSE_FAILURE }
  }
  return undefined
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
  return `${line.slice(0, REPORT_CHARACTERS)} ${advice}`.trim()
}

function resultOf(
  exit: ProcessExit,
  { verdict, sessionId, usage, sessionUsage, costUsd, metadata }: Translation,
  failure: AgentFailure | undefined,
  durationMs: number,
): AgentResult {
  return {
    isError: failure !== undefined,
    durationMs,
    ...('exitCode' in exit && { exitCode: exit.exitCode }),
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

function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(1))} s`
}
