// One turn from its start to its `complete`, for every kind of lifetime.
//
// Traps:
// - Reading never waits for the consumer: Claude Code drops output that nobody reads.
// - The first stop wins: nothing the agent says afterwards becomes an event.

import { EventQueue } from './event-queue.js'
import type { Failed, Translation } from './translation.js'
import { type Ending, type Evidence, judge, type JudgeContext, resultOf } from './turn-result.js'
import { type TimeLimits, type TurnWatch, watchTurn } from './turn-watch.js'
import type { AgentEvent, AgentEventBody, AgentResult } from '../types.js'

export interface Run {
  events: AsyncIterable<AgentEvent>
  /** Ends the run with this failure. The first one wins; does nothing once the run is over. */
  stop(failed: Failed): void
  /** Settles when no process of the run is alive and `complete` is among the events. */
  ended: Promise<void>
  /** Set when `complete` is among the events. */
  readonly result: AgentResult | undefined
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
  readonly translation: Partial<Translation>
  /** Ends the turn. Returns false if its answer counts all the same. Contract: does not call back. */
  stop(failed: Failed): boolean
  /** Called when the turn is over. Settles when none of its processes is alive. Contract: never rejects. */
  settle(ending: Ending): Promise<Printed>
}

/** What a process printed during the turn, apart from its messages. */
export type Printed = Pick<Evidence, 'stderr' | 'plainStdout'>

export function startRun(plan: RunPlan, open: (control: RunControl) => Drive): Run {
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
    const { verdict, lastProblem } = translation
    const evidence = { ending, stopped, ...printed, ...(verdict && { verdict }), ...(lastProblem && { lastProblem }) }
    result = resultOf(translation, judge(plan, evidence), {
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
  }
}
