// A turn in a process of its own: all its output belongs to this turn, and it exits after its answer.

import { StringDecoder } from 'node:string_decoder'
import { type Piece, StreamedText } from '../../credentials/streamed-text.js'
import type { PodExit, PodProcess, PodProcessOptions } from '../../kubernetes/types.js'
import { BoundedText, LineSplitter, type OutputLimits } from '../../processes/output.js'
import { stripAnsi } from './jsonl.js'
import { PlainTranslation } from './plain-translation.js'
import { failureOfPod } from './pod-failure.js'
import { readInto, type Translation } from './translation.js'
import { type Ending, printedTooMuch } from './turn-result.js'
import { type Drive, type Run, type RunControl, type RunPlan, startRun } from './turn-run.js'
import type { AgentEventBody } from '../types.js'

/** Time for an agent to exit after its final word. Claude Code takes up to 5 s and may resume work meanwhile. */
const EXIT_AFTER_ANSWER_MS = 10_000

const NOT_EXITED = 'The agent had answered, but its process did not exit and was ended.'

export interface OneShotPlan extends RunPlan {
  start(listeners: Pick<PodProcessOptions, 'onStdout' | 'onStderr'>): PodProcess
  translation: (emit: (event: AgentEventBody) => void) => Translation
  limits: OutputLimits
  /** Notice to send if the expected file is missing at the end. */
  unlessExpected?: string | undefined
}

export function startOneShot(plan: OneShotPlan): Run {
  return startRun(plan, (control) => drive(plan, control))
}

function drive(plan: OneShotPlan, run: RunControl): Drive {
  const { scrubber } = plan
  const stderr = new BoundedText()
  const stderrDecoder = new StringDecoder('utf8')
  const stderrText = new StreamedText<'stderr'>(scrubber)
  const keepStderr = (pieces: Piece<'stderr'>[]): void => pieces.forEach(({ text }) => stderr.append(text))
  const plainStdout = new BoundedText()
  /** The answer counts, and the process is being ended because it did not exit. */
  let isTaken = false
  let exitTimer: NodeJS.Timeout | undefined

  const translation = plan.translation(run.emit)
  const reader =
    translation instanceof PlainTranslation
      ? translation
      : readInto(
          translation,
          plan.limits.lineBytes,
          (line) => plainStdout.append(plainStdout.isEmpty ? line : `\n${line}`),
          (line) => scrubber.scrub(line),
        )
  const splitter = new LineSplitter(
    plan.limits,
    (line) => {
      if (run.stopped || isTaken) return
      reader.line(line)
      if (translation.mustStop) run.stop(translation.mustStop)
      else expectExit()
    },
    (problem) => run.stop(printedTooMuch(problem)),
  )

  const child = plan.start({
    onStdout(chunk) {
      run.watch.alive()
      splitter.push(chunk)
    },
    onStderr(chunk) {
      run.watch.alive()
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
    if (run.stopped) return
    isTaken = true
    child.stop()
  }

  return {
    ended: child.ended.then((exit) => {
      clearTimeout(exitTimer)
      if (isTaken) run.emit({ type: 'notice', content: NOT_EXITED })
      else if (!run.stopped) {
        splitter.end()
        reader.end()
      }
      const isLacking = 'hasExpected' in exit && !exit.hasExpected
      if (isLacking && plan.unlessExpected !== undefined) run.emit({ type: 'notice', content: plan.unlessExpected })
      return isTaken ? { type: 'done' } : endingOf(exit)
    }),
    translation,
    stop({ reason }) {
      if (reason === 'timeout' && translation.isFinished) isTaken = true
      child.stop()
      return !isTaken
    },
    async settle() {
      keepStderr(stderrText.end())
      return { stderr: stripAnsi(stderr.toString()), plainStdout: plainStdout.toString() }
    },
  }
}

function endingOf(exit: PodExit): Ending {
  if ('spawnError' in exit) return { type: 'not-started', message: exit.spawnError.message }
  if ('problem' in exit) return { type: 'lost', failed: failureOfPod(exit) }
  return { type: 'exited', exitCode: exit.exitCode }
}
