// One turn of a process that stays, from its beginning to its `complete`.
//
// Traps that a careless edit would fall into:
// - A turn that is stopped goes on until the agent has said so: what it still says must not reach the next turn.
// - What we did ourselves (time-out, cancel) decides over anything the agent still managed to say.
// - The process may serve other turns too: it is stopped only when it does not obey.

import { within } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import type { OutputLimits } from '../../../processes/line-splitter.js'
import type { ProcessExit } from '../../../processes/local-process.js'
import { mainLine, type Run } from '../cli-run.js'
import { EventQueue } from '../event-queue.js'
import { classifyFailure, type FailureSign, readableMessage } from '../failures.js'
import type { Failed } from '../translation.js'
import {
  failureOfStop,
  printedTooMuch,
  reportedFailure,
  resultOf,
  unansweredFailure,
  withRetryAt,
} from '../turn-result.js'
import type { Turn } from '../turn.js'
import { approveInTurn } from '../turn-approvals.js'
import { type TimeLimits, watchTurn } from '../turn-watch.js'
import type { AgentEventBody, AgentFailure, Approve, Steer } from '../../types.js'
import type { WarmProcess } from './warm-process.js'
import type { WarmTurn } from './types.js'

/** An agent that has not stopped by then is ended. */
const INTERRUPT_MS = 1_000

export interface WarmRunPlan extends TimeLimits {
  label: string
  failureSigns: readonly FailureSign[]
  turn: Turn
  /** As of the request. */
  approve?: Approve
  limits: OutputLimits
  /** Gets a way to talk to the agent, where it has one. */
  onSteerable?(steer: Steer): void
  now: () => number
  elapsed: () => number
}

export interface WarmRun extends Run {
  /** Known when `complete` is among the events: the process failed the turn, and why is not known, or would not take it.
   *  The same turn may well succeed in another one. */
  readonly isProcessLost: boolean
  /** Whether the agent was told the message, and may have begun to work. */
  readonly wasAsked: boolean
  /** As of the turn. */
  readonly isDeclined: boolean
}

/** How the turn came to its end. */
type Ending = { type: 'done' | 'stopped' } | { type: 'unready'; message: string } | { type: 'gone'; exit: ProcessExit }

export function startWarmRun(process: WarmProcess, plan: WarmRunPlan): WarmRun {
  const queue = new EventQueue(plan.now)
  let warm: WarmTurn | undefined
  let stopped: Failed | undefined
  let isEnded = false
  let isProcessLost = false
  let hasUsedTools = false
  let acceptedCount = 0
  let bytes = 0

  let tellStop = (): void => {}
  const stopAsked = new Promise<Ending>((resolve) => {
    tellStop = () => resolve({ type: 'stopped' })
  })
  let tellGone = (_exit: ProcessExit): void => {}
  const gone = new Promise<Ending>((resolve) => {
    tellGone = (exit) => resolve({ type: 'gone', exit })
  })
  const stop = (failed: Failed): void => {
    if (isEnded) return
    stopped ??= failed
    tellStop()
  }
  const stopForOutput = (problem: string): void => stop(printedTooMuch(problem))

  const watch = watchTurn({ ...plan, onTimeout: stop })
  // Only for those who listen: to abort takes longer than all else at the end of a turn.
  const over = plan.approve && new AbortController()
  const approve = plan.approve && over && approveInTurn(plan.approve, watch, over.signal)
  const leave = process.listen({
    heard(count) {
      if (!warm || warm.translation.acceptedCount === acceptedCount) return
      ;({ acceptedCount } = warm.translation)
      watch.alive()
      bytes += count
      if (bytes > plan.limits.totalBytes) {
        stopForOutput(`more than ${Math.floor(plan.limits.totalBytes / (1024 * 1024))} MiB in one turn`)
      }
      if (warm.translation.mustStop) stop(warm.translation.mustStop)
    },
    text: (line) => warm?.translation.acceptText(line),
    overflowed: stopForOutput,
    gone: tellGone,
  })
  const emit = (event: AgentEventBody): void => {
    hasUsedTools ||= event.type === 'tool_use'
    if (!stopped && !isEnded) queue.push(event)
  }

  const converse = async (): Promise<Ending> => {
    const ready = process.connection.ready.then(
      async (): Promise<Ending> => {
        await process.forgetEarlier()
        return { type: 'done' }
      },
      (error: unknown): Ending => ({ type: 'unready', message: messageOf(error) }),
    )
    const beginning = await Promise.race([ready, gone, stopAsked])
    if (beginning.type === 'unready' || (beginning.type === 'stopped' && stopped?.reason === 'timeout')) process.stop()
    if (beginning.type !== 'done') return beginning

    warm = process.connection.begin(plan.turn, emit, approve)
    if (warm.translation.mustStop) stop(warm.translation.mustStop)
    const done = warm.done.then((): Ending => ({ type: 'done' }))
    if (warm.steer) plan.onSteerable?.(steerUntil(Promise.race([done, gone, stopAsked]), warm.steer))
    const ending = await Promise.race([done, gone, stopAsked])
    // It may have been given up before the agent was asked.
    if (warm.translation.mustStop) stop(warm.translation.mustStop)
    if (ending.type !== 'stopped') return ending

    warm.interrupt()
    over?.abort()
    const obeyed = await within(INTERRUPT_MS, Promise.race([done, gone]))
    if (obeyed) return obeyed
    process.stop()
    return gone
  }

  const finish = async (): Promise<void> => {
    const ending = await converse()
    isEnded = true
    over?.abort()
    watch.end()
    leave()
    if (ending.type === 'done' && (hasUsedTools || stopped)) await process.endStrays(stopped !== undefined)
    // One that does not get to a turn in all its time would not get to the next either.
    const isStuck = stopped?.reason === 'timeout' && warm?.isPending === true
    if (warm?.isSpent || isStuck) process.stop()
    const stderr = process.stderr()
    const failure = judge(plan, ending, stopped, warm, stderr)
    if (failure && stderr !== '') failure.stderr = stderr
    const isLost = (ending.type === 'gone' || ending.type === 'unready') && failure?.reason === 'exit'
    isProcessLost = !stopped && (isLost || warm?.isDeclined === true)
    queue.complete(
      resultOf(warm?.translation ?? {}, failure, {
        durationMs: Math.round(plan.elapsed() - watch.startedAt),
        ...(ending.type === 'gone' && 'exitCode' in ending.exit && { exitCode: ending.exit.exitCode }),
      }),
    )
  }

  return {
    events: queue,
    stop,
    ended: finish(),
    get isProcessLost() {
      return isProcessLost
    },
    get wasAsked() {
      return warm !== undefined && warm.isDeclined !== true
    },
    get isDeclined() {
      return warm?.isDeclined === true
    },
  }
}

/** What is said after the end, or was not taken by then, is for another turn. */
function steerUntil(end: Promise<unknown>, steer: Steer): Steer {
  let isOver = false
  const refused = end.then(() => {
    isOver = true
    return false
  })
  return async (text) => !isOver && Promise.race([steer(text), refused])
}

/** Why the turn failed, or undefined when it did not. */
function judge(
  { label, failureSigns, now }: WarmRunPlan,
  ending: Ending,
  stopped: Failed | undefined,
  warm: WarmTurn | undefined,
  stderr: string,
): AgentFailure | undefined {
  if (stopped) return failureOfStop(stopped)
  const { verdict, complaint = '' } = warm?.translation ?? {}
  if (ending.type === 'done') {
    if (verdict?.isError) return reportedFailure(verdict, failureSigns, now())
    return verdict ? undefined : unansweredFailure(label, readableMessage(complaint), failureSigns)
  }
  if (ending.type === 'gone' && 'spawnError' in ending.exit) {
    const message = `${label} CLI could not be started: ${ending.exit.spawnError.message}`
    return { reason: 'spawn', message, report: message }
  }
  const said = ending.type === 'unready' ? ending.message : complaint || mainLine(stderr, failureSigns)
  const message = readableMessage(said) || `${label} ended in the middle of a turn.`
  const reason = wasKilled(ending) ? 'exit' : classifyFailure(message, failureSigns)
  return withRetryAt({ reason, message, report: message }, undefined, now())
}

/** What it said before is not why it ended then: others may have been meant, or it was over that. */
function wasKilled(ending: Ending): boolean {
  return ending.type === 'gone' && 'exitCode' in ending.exit && ending.exit.exitCode > 128
}
