// A process for a single turn, on this machine or in a pod. It takes every turn that no other lifetime does. All its
// output belongs to that turn, and it exits after its answer.

import { randomUUID } from 'node:crypto'
import { withDeadline } from '../../core/async.js'
import { PodError, type PodExit, type PodProcess, type PodProcessOptions } from '../../kubernetes/types.js'
import { BoundedText, LineSplitter, type OutputLimits } from '../../processes/output.js'
import type { AgentEventBody, AgentRequest } from '../types.js'
import { type AgentCli, runVariables, setByRun, VERSION_TIMEOUT_MS } from './agent-cli.js'
import { type Ending, type Failed, failureOfPod, printedTooMuch } from './failures.js'
import { Stderr } from './jsonl.js'
import { PlainTranslation } from './plain-translation.js'
import { preparationFailure, refused, refusedAsking, refusedCompaction } from './refusals.js'
import { readInto, type Translation } from './translation.js'
import {
  type Drive,
  type Lease,
  type Lifetime,
  type Run,
  type RunControl,
  type RunPlan,
  startRun,
  type Turn,
} from './turn.js'
import { UNTRUSTED_CHECK_MS } from './untrusted-git.js'

/** Time to find a pod and inspect it. */
const POD_CHECK_MS = 30_000

export class OneShot implements Lifetime {
  constructor(
    private readonly agent: AgentCli,
    private readonly request: AgentRequest,
  ) {}

  async acquire(signal: AbortSignal): Promise<Lease | Failed> {
    const { agent, request } = this
    const turn = agent.turnOf(request)
    agent.warnAboutIgnoredOptions(request, turn)
    signal.throwIfAborted()
    const refusal = agent.refusalOf(request, turn)
    if (refusal) return refusal
    const checkMs = request.pod ? POD_CHECK_MS : turn.isUntrusted ? UNTRUSTED_CHECK_MS : VERSION_TIMEOUT_MS
    return withDeadline(checkMs, signal, async (deadline) => {
      try {
        return await this.#prepare(turn, deadline)
      } catch (error) {
        if (error instanceof PodError) signal.throwIfAborted()
        return preparationFailure(agent.definition.traits.label, error)
      }
    })
  }

  async #prepare(turn: Turn, signal: AbortSignal): Promise<Lease | Failed> {
    const { agent, request } = this
    const { definition } = agent
    const obstacle = turn.isUntrusted ? await agent.obstacleIn(turn, signal) : undefined
    if (obstacle !== undefined) return refused(obstacle)
    if (request.approve) return refusedAsking(definition.traits.label, request)
    if (turn.compaction && !definition.traits.supportsCompact) {
      return refusedCompaction(definition.traits.label, request)
    }
    const runId = request.runId ?? randomUUID()
    const place = await agent.place(turn, request.pod, runId, signal)
    try {
      const invocation = await definition.invocation(turn, place, signal)
      const { args, defaults = {}, expects } = invocation
      const environment = setByRun(invocation.environment, turn, runVariables(request, place.files))
      const { label, failureSigns, stopSignal } = definition.traits
      const { now, elapsed, limits, owner, scrubber } = agent.dependencies
      const process = {
        executable: agent.executableIn(place, turn),
        args,
        stdin: turn.prompt,
        directory: turn.workingDir,
        defaults,
        environment,
        runId,
        ...(owner && { owner }),
        ...(expects && { expects: expects.file }),
        stopSignal,
      }
      return {
        start: (timeLimits) =>
          startOneShot({
            ...{ label, failureSigns, limits, now, elapsed, scrubber, ...timeLimits },
            start: (listeners) => place.start({ ...process, ...listeners }),
            translation: (emit) =>
              turn.command?.format === 'text'
                ? new PlainTranslation(emit, limits.lineBytes)
                : definition.translation(emit, turn),
            unlessExpected: expects?.otherwise,
          }),
        onEvent(event) {
          if (event.type === 'complete') agent.remember(event.result.sessionId, turn.workingDir)
          return undefined
        },
        release: async () => agent.leave(place),
      }
    } catch (error) {
      agent.leave(place)
      throw error
    }
  }
}

/** Time for an agent to exit after its final word. Claude Code takes up to 5 s and may resume work meanwhile. */
const EXIT_AFTER_ANSWER_MS = 10_000

const NOT_EXITED = 'The agent had answered, but its process did not exit and was stopped.'

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
  const stderr = new Stderr(scrubber)
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
      stderr.push(chunk)
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
      if (isTaken) run.emit({ type: 'notice', content: NOT_EXITED, isTechnical: true })
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
      return { stderr: stderr.read(), plainStdout: plainStdout.toString() }
    },
  }
}

function endingOf(exit: PodExit): Ending {
  if ('spawnError' in exit) return { type: 'not-started', message: exit.spawnError.message }
  if ('problem' in exit) return { type: 'lost', failed: failureOfPod(exit) }
  return { type: 'exited', exitCode: exit.exitCode }
}
