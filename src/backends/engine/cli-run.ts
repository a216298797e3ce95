// One run of one process, from its start to its `complete`.
//
// Traps that a careless edit would fall into:
// - Reading never waits for the consumer: Claude Code drops output that nobody takes.
// - Success is the CLI's own final word, never the exit code alone: several exit with 0 after a failure or a kill.
// - What we did ourselves (time-out, cancel) decides over anything the CLI still managed to say.

import { StringDecoder } from 'node:string_decoder'
import type { Scrubber } from '../../credentials/scrubber.js'
import { type Piece, StreamedText } from '../../credentials/streamed-text.js'
import type { PodExit, PodProcess, PodProcessOptions } from '../../kubernetes/types.js'
import { BoundedText } from '../../processes/bounded-text.js'
import { LineSplitter, type OutputLimits } from '../../processes/line-splitter.js'
import { EventQueue } from './event-queue.js'
import { classifyFailure, type FailureSign, findSign, readableMessage } from './failures.js'
import { stripAnsi } from './jsonl.js'
import { PlainTranslation } from './plain-translation.js'
import { failureOfPod } from './pod-failure.js'
import { type Failed, readInto, type Translation } from './translation.js'
import {
  failureOfStop,
  printedTooMuch,
  reportedFailure,
  resultOf,
  unansweredFailure,
  withRetryAt,
} from './turn-result.js'
import { type TimeLimits, watchTurn } from './turn-watch.js'
import type { AgentEvent, AgentEventBody, AgentFailure } from '../types.js'

/** For an agent to exit by itself after its final word. Claude Code takes up to 5 s, in which it may begin to work again. */
const EXIT_AFTER_ANSWER_MS = 10_000

const NOT_EXITED = 'The agent had answered, but its process did not exit and was ended.'

export interface RunPlan extends TimeLimits {
  label: string
  failureSigns: readonly FailureSign[]
  start(listeners: Pick<PodProcessOptions, 'onStdout' | 'onStderr'>): PodProcess
  translation: (emit: (event: AgentEventBody) => void) => Translation
  limits: OutputLimits
  now: () => number
  elapsed: () => number
  scrubber: Scrubber
  /** Told when the file that was expected is not there at the end. */
  unlessExpected?: string | undefined
}

export interface Run {
  events: AsyncIterable<AgentEvent>
  /** Ends the run for a reason of our own; the first reason stands. Nothing happens when it is over. */
  stop(failed: Failed): void
  /** Settles when nothing of the run is alive and `complete` is among the events. */
  ended: Promise<void>
}

export function startRun(plan: RunPlan): Run {
  const watch = watchTurn({ ...plan, onTimeout: (failed) => stop(failed) })
  const queue = new EventQueue(plan.now)
  const stderr = new BoundedText()
  const stderrDecoder = new StringDecoder('utf8')
  const stderrText = new StreamedText<'stderr'>(plan.scrubber)
  const keepStderr = (pieces: Piece<'stderr'>[]): void => pieces.forEach(({ text }) => stderr.append(text))
  const plainStdout = new BoundedText()
  let stopped: Failed | undefined
  /** The answer stands, and the process is being ended as it did not exit. */
  let isTaken = false
  let exitTimer: NodeJS.Timeout | undefined

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
      if (stopped || isTaken) return
      reader.line(line)
      if (translation.mustStop) stop(translation.mustStop)
      else expectExit()
    },
    (problem) => stop(printedTooMuch(problem)),
  )

  const child = plan.start({
    onStdout(chunk) {
      watch.alive()
      splitter.push(chunk)
    },
    onStderr(chunk) {
      watch.alive()
      keepStderr(stderrText.push(stderrDecoder.write(chunk), 'stderr'))
    },
  })

  function expectExit(): void {
    if (translation.isFinished) {
      exitTimer ??= setTimeout(takeAnswer, EXIT_AFTER_ANSWER_MS)
    } else {
      clearTimeout(exitTimer)
      exitTimer = undefined
    }
  }

  function takeAnswer(): void {
    if (stopped || isTaken) return
    isTaken = true
    child.stop()
  }

  function stop(failed: Failed): void {
    if (failed.reason === 'timeout' && translation.isFinished) return takeAnswer()
    if (!isTaken) stopped ??= failed
    child.stop()
  }

  const ended = child.ended.then((exit) => {
    watch.end()
    clearTimeout(exitTimer)
    if (isTaken) queue.push({ type: 'notice', content: NOT_EXITED })
    else if (!stopped) {
      splitter.end()
      reader.end()
    }
    keepStderr(stderrText.end())
    const isLacking = !stopped && 'hasExpected' in exit && !exit.hasExpected
    if (isLacking && plan.unlessExpected !== undefined) queue.push({ type: 'notice', content: plan.unlessExpected })
    const output = { stderr: stripAnsi(stderr.toString()), plainStdout: plainStdout.toString() }
    const failure = judge(plan, isTaken ? EXITED_WELL : exit, stopped, translation, output)
    if (failure && output.stderr !== '') failure.stderr = output.stderr
    queue.complete(
      resultOf(translation, failure, {
        durationMs: Math.round(plan.elapsed() - watch.startedAt),
        ...(!isTaken && 'exitCode' in exit && { exitCode: exit.exitCode }),
      }),
    )
  })

  return { events: queue, stop, ended }
}

const EXITED_WELL: PodExit = { exitCode: 0, hasExpected: true }

const REPORT_CHARACTERS = 500

/** Why the run failed, or undefined when it did not. */
function judge(
  plan: RunPlan,
  exit: PodExit,
  stopped: Failed | undefined,
  { verdict, complaint: lastComplaint }: Translation,
  { stderr, plainStdout }: { stderr: string; plainStdout: string },
): AgentFailure | undefined {
  const { label, failureSigns } = plan
  if ('spawnError' in exit) {
    const message = `${label} CLI could not be started: ${exit.spawnError.message}`
    return { reason: 'spawn', message, report: message }
  }
  if (stopped) return failureOfStop(stopped)
  if ('problem' in exit) return failureOfStop(failureOfPod(exit))

  const said = verdict?.isError ? verdict : undefined
  const complaint = readableMessage(said?.message ?? lastComplaint ?? mainLine(stderr, failureSigns))
  if (exit.exitCode !== 0) {
    const onStdout = said?.message ?? (verdict?.isError === false ? verdict.text : plainStdout)
    const message = complaint || onStdout.trim() || `${label} ended with exit code ${exit.exitCode}.`
    const named = said?.reason ?? classifyFailure(said?.message ?? message, failureSigns)
    // A final word may be a general one, and the cause on stderr alone.
    const reason = named === 'exit' ? (findSign(stderr, failureSigns)?.[1] ?? named) : named
    const text = plan.scrubber.scrub(stderr || onStdout || 'unknown error').slice(0, REPORT_CHARACTERS)
    const report = `${label} CLI error (exit ${exit.exitCode}): ${text}`
    return withRetryAt({ reason, message, report }, said?.retryAfterMs, plan.now())
  }
  if (said) return reportedFailure(said, failureSigns, plan.now())
  // An exit code of 0 proves nothing: some CLIs say only on stderr why they did not answer.
  return verdict ? undefined : unansweredFailure(label, complaint, failureSigns)
}

/** The line of stderr a person should read: CLIs print warnings and progress there too. */
export function mainLine(stderr: string, failureSigns: readonly FailureSign[]): string {
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
