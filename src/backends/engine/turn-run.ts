// One run of a turn, from the agent's start to its `complete`, for every kind of lifetime: its clock, the first stop, its
// end.
//
// Traps:
// - Reading never waits for the consumer: Claude Code drops output that nobody reads.
// - The first stop wins: nothing the agent says afterwards becomes an event.

import { abortable, eitherSignal, MAX_TIMER_MS } from '../../core/async.js'
import type {
  AgentEvent,
  AgentEventBody,
  AgentFailure,
  AgentRequest,
  AgentResult,
  Approve,
  BackendAdapterConfig,
} from '../types.js'
import { EventQueue } from './event-queue.js'
import { type Ending, type Evidence, type Failed, judge, type JudgeContext } from './failures.js'
import { requireMilliseconds } from './refusals.js'
import { isSessionLost } from './starting-over.js'
import type { Translation } from './translation.js'

export interface Run<OneDrive extends Drive = Drive> {
  events: AsyncIterable<AgentEvent>
  /** Ends the run with this failure. The first one wins; does nothing once the run is over. */
  stop(failed: Failed): void
  /** Settles when no process of the run is alive and `complete` is among the events. */
  ended: Promise<void>
  /** Set when `complete` is among the events. */
  readonly result: AgentResult | undefined
  readonly drive: OneDrive
}

export interface RunPlan extends JudgeContext, TimeLimits {
  elapsed: () => number
}

/** A drive's view of its run. */
export interface RunControl {
  /** Does nothing once the turn is stopped or over. */
  emit(event: AgentEventBody): void
  stop(failed: Failed): void
  readonly stopped: Failed | undefined
  readonly watch: TurnWatch
}

/** Drives one turn of an agent. */
export interface Drive {
  /** Settles when the turn is over and all its events are out. Contract: never rejects. */
  readonly ended: Promise<Ending>
  readonly translation: Translation
  /** Ends the turn. Returns false if its answer counts all the same. Contract: does not call back. */
  stop(failed: Failed): boolean
  /** Called when the turn is over. Settles when none of its processes is alive. Contract: never rejects. */
  settle(ending: Ending): Promise<Printed>
}

/** What a process printed during the turn, apart from its messages. */
export type Printed = Pick<Evidence, 'stderr' | 'plainStdout'>

export function startRun<OneDrive extends Drive>(
  plan: RunPlan,
  open: (control: RunControl) => OneDrive,
): Run<OneDrive> {
  const queue = new EventQueue(plan.now)
  let stopped: Failed | undefined
  let isOver = false
  let result: AgentResult | undefined
  const stop = (failed: Failed): void => {
    if (!stopped && !isOver && drive.stop(failed)) stopped = failed
  }
  const watch = watchTurn({ ...plan, onTimeout: stop })
  const drive = open({
    emit(event) {
      if (!stopped && !isOver) queue.push(event)
    },
    stop,
    get stopped() {
      return stopped
    },
    watch,
  })

  const finish = async (): Promise<void> => {
    const ending = await drive.ended
    isOver = true
    watch.end()
    const printed = await drive.settle(ending)
    const { translation } = drive
    result = resultOf(translation, judge(plan, { ending, stopped, translation, ...printed }), {
      durationMs: Math.round(plan.elapsed() - watch.startedAt),
      ...('exitCode' in ending && { exitCode: ending.exitCode }),
    })
    queue.complete(result)
  }

  return {
    events: queue,
    stop,
    ended: finish(),
    get result() {
      return result
    },
    drive,
  }
}

function resultOf(
  { verdict, sessionId, figures }: Translation,
  failure: AgentFailure | undefined,
  { durationMs, exitCode }: Pick<AgentResult, 'durationMs' | 'exitCode'>,
): AgentResult {
  return {
    isError: failure !== undefined,
    durationMs,
    ...(exitCode !== undefined && { exitCode }),
    ...(!failure && verdict?.isError === false && { finalOutput: verdict.text }),
    // A lost session must not be reused for the next turn.
    ...(sessionId !== undefined && !isSessionLost(failure) && { sessionId }),
    ...figures,
    ...(failure && { failure }),
  }
}

export const DEFAULT_IDLE_TIMEOUT_MS = 600_000

export interface TimeLimits {
  timeoutMs: number
  /** How much of it is used up before the agent starts. */
  spentMs?: number
  /** 0 means no limit. */
  idleTimeoutMs: number
}

/** Contract: throws `request_invalid`. */
export function timeLimits(request: AgentRequest, config: BackendAdapterConfig): TimeLimits {
  return {
    timeoutMs: requireMilliseconds('timeoutMs', request.timeoutMs ?? config.queryTimeoutMs, 1),
    idleTimeoutMs: requireMilliseconds('idleTimeoutMs', request.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS, 0),
  }
}

interface WatchPlan extends TimeLimits {
  elapsed: () => number
  /** Called for each limit that is exceeded. */
  onTimeout(failed: Failed): void
}

export interface TurnWatch {
  startedAt: number
  /** The agent has shown a sign of life. */
  alive(): void
  /** Stops the clock until `resume` has been called as often. */
  pause(): void
  resume(): void
  end(): void
}

/** Enforces a turn's total time and its longest silence. */
export function watchTurn({ timeoutMs, spentMs = 0, idleTimeoutMs, elapsed, onTimeout }: WatchPlan): TurnWatch {
  const leftMs = Math.max(timeoutMs - spentMs, 0)
  const startedAt = elapsed()
  let lastSignOfLife = startedAt
  let pauses = 0
  let pausedAt = startedAt
  let pausedMs = 0
  let isEnded = false
  const tooLong = (): void => onTimeout(timeoutFailure(timeoutMs))

  let totalTimer = startTimer(tooLong, leftMs)
  const idleTimer =
    idleTimeoutMs > 0
      ? setInterval(
          () => {
            if (pauses > 0 || elapsed() - lastSignOfLife < idleTimeoutMs) return
            onTimeout({ reason: 'timeout', message: `The agent printed nothing for ${seconds(idleTimeoutMs)}.` })
          },
          Math.min(idleTimeoutMs / 4, 5_000),
        )
      : undefined

  return {
    startedAt,
    alive() {
      lastSignOfLife = elapsed()
      // Not by the timer alone, which a flood of output delays.
      if (pauses === 0 && lastSignOfLife - startedAt - pausedMs >= leftMs) tooLong()
    },
    pause() {
      pauses += 1
      if (pauses > 1) return
      pausedAt = elapsed()
      clearTimeout(totalTimer)
    },
    resume() {
      pauses -= 1
      if (pauses > 0 || isEnded) return
      lastSignOfLife = elapsed()
      pausedMs += lastSignOfLife - pausedAt
      totalTimer = startTimer(tooLong, Math.max(leftMs - (lastSignOfLife - startedAt - pausedMs), 0))
    },
    end() {
      isEnded = true
      clearTimeout(totalTimer)
      clearInterval(idleTimer)
    },
  }
}

export function timeoutFailure(timeoutMs: number): Failed {
  return { reason: 'timeout', message: `The agent did not finish within ${seconds(timeoutMs)}.` }
}

export function startTimer(onTime: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(onTime, Math.min(ms, MAX_TIMER_MS))
}

function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(1))} s`
}

/**
 * Asks for approval during one turn, whose clock is paused meanwhile.
 *
 * Contract: an answer after either signal is ignored; `isOver` is the turn's.
 */
export function approveInTurn(approve: Approve, watch: TurnWatch, isOver: AbortSignal): Approve {
  return async (request, signal) => {
    const either = eitherSignal(signal, isOver)
    watch.pause()
    try {
      return await abortable(either, (own) => approve(request, own))
    } catch (error) {
      if (!either.aborted) throw error
      return { isAllowed: false, message: 'Nobody waits for an answer any more.' }
    } finally {
      watch.resume()
    }
  }
}
