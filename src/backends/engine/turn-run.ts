// One turn from its start to its `complete`, whichever way the agent is driven.
//
// Traps that a careless edit would fall into:
// - Reading never waits for the consumer: Claude Code drops output that nobody takes.
// - The first stop decides: nothing that the agent says afterwards is told.

import { EventQueue } from './event-queue.js'
import type { Failed, Translation } from './translation.js'
import { type Ending, type Evidence, judge, type Judging, resultOf } from './turn-result.js'
import { type TimeLimits, type TurnWatch, watchTurn } from './turn-watch.js'
import type { AgentEvent, AgentEventBody, AgentResult } from '../types.js'

export interface Run {
  events: AsyncIterable<AgentEvent>
  /** Ends the run for a reason of our own; the first reason stands. Nothing happens when it is over. */
  stop(failed: Failed): void
  /** Settles when nothing of the run is alive and `complete` is among the events. */
  ended: Promise<void>
  /** Known when `complete` is among the events. */
  readonly result: AgentResult | undefined
}

export interface RunPlan extends Judging, TimeLimits {
  elapsed: () => number
}

/** What a drive has of the run it is part of. */
export interface RunControl {
  /** Does nothing once the turn is stopped or over. */
  emit(event: AgentEventBody): void
  stop(failed: Failed): void
  readonly stopped: Failed | undefined
  readonly watch: TurnWatch
}

/** One way to have an agent take a turn. */
export interface Drive {
  /** Settles when the turn is over, with everything told. Contract: never rejects. */
  readonly ended: Promise<Ending>
  /** What the agent has said of the turn. */
  readonly translation: Partial<Translation>
  /** Has it come to its end. False where its answer stands all the same. Contract: does not call back. */
  stop(failed: Failed): boolean
  /** Called when the turn is over. Settles when nothing of it is alive. Contract: never rejects. */
  settle(ending: Ending): Promise<Printed>
}

/** What a process printed beside its messages during the turn. */
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
    const { verdict, complaint } = translation
    const evidence = { ending, stopped, ...printed, ...(verdict && { verdict }), ...(complaint && { complaint }) }
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
