// A turn in a warm process.
//
// Traps:
// - A stopped turn lasts until the agent confirms: anything it still says must not reach the next turn.
// - The process may serve other turns at the same time: it is killed only if it does not obey an interrupt.

import { within } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import type { OutputLimits } from '../../../processes/line-splitter.js'
import type { ProcessExit } from '../../../processes/local-process.js'
import { type Ending, type Failed, printedTooMuch } from '../failures.js'
import type { Turn } from '../turn.js'
import {
  approveInTurn,
  type Drive,
  type Printed,
  type Run,
  type RunControl,
  type RunPlan,
  startRun,
} from '../turn-run.js'
import type { AgentEventBody, AgentResult, Approve, Steer } from '../../types.js'
import type { WarmProcess } from './warm-process.js'
import type { WarmTurn } from './types.js'

/** An agent that has not stopped by then is killed. */
const INTERRUPT_MS = 1_000

export interface WarmRunPlan extends RunPlan {
  turn: Turn
  /** From the request. */
  approve?: Approve
  limits: OutputLimits
  /** From the request. */
  onSteerable?(steer: Steer): void
}

export interface WarmRun extends Run {
  /** Known when `complete` is among the events: the process failed for an unknown reason, or declined the turn. The same
   *  turn may well succeed in another process. */
  readonly isProcessLost: boolean
  /** Whether the agent got the prompt and may have begun to work. */
  readonly wasPrompted: boolean
  /** From the turn. */
  readonly isDeclined: boolean
}

export function startWarmRun(process: WarmProcess, plan: WarmRunPlan): WarmRun {
  let drive: WarmDrive | undefined
  const run = startRun(plan, (control) => (drive = new WarmDrive(process, plan, control)))
  return {
    ...run,
    get result() {
      return run.result
    },
    get isProcessLost() {
      return drive?.isLost(run.result) === true
    },
    get wasPrompted() {
      return drive?.warm !== undefined && !drive.isDeclined
    },
    get isDeclined() {
      return drive?.isDeclined === true
    },
  }
}

class WarmDrive implements Drive {
  readonly ended: Promise<Ending>
  warm: WarmTurn | undefined
  #ending: Ending | undefined
  #hasUsedTools = false
  #acceptedCount = 0
  #bytes = 0
  #resolveStop = (): void => {}
  readonly #stopAsked: Promise<'stopped'>
  #resolveGone = (_exit: ProcessExit): void => {}
  readonly #gone: Promise<Ending>
  /** Aborted when approvals are no longer needed. Only if the turn asks for any: the abort takes longer than everything else
   *  at the end of a turn. */
  readonly #asking: AbortController | undefined
  readonly #stopListening: () => void

  constructor(
    private readonly process: WarmProcess,
    private readonly plan: WarmRunPlan,
    private readonly run: RunControl,
  ) {
    this.#asking = plan.approve && new AbortController()
    this.#stopAsked = new Promise((resolve) => {
      this.#resolveStop = () => resolve('stopped')
    })
    this.#gone = new Promise((resolve) => {
      this.#resolveGone = (exit) => resolve(endingOf(exit))
    })
    this.#stopListening = process.listen({
      heard: (bytes) => this.#heard(bytes),
      text: (line) => this.warm?.translation.acceptText(line),
      overflowed: (problem) => run.stop(printedTooMuch(problem)),
      gone: (exit) => this.#resolveGone(exit),
    })
    this.ended = this.#converse()
  }

  get translation() {
    return this.warm?.translation ?? {}
  }

  get isDeclined(): boolean {
    return this.warm?.isDeclined === true
  }

  /** Whether another process should retry the turn with this result. */
  isLost(result: AgentResult | undefined): boolean {
    if (this.run.stopped) return false
    const isGone = this.#ending?.type === 'died' || this.#ending?.type === 'not-ready'
    return this.isDeclined || (isGone && result?.failure?.reason === 'exit')
  }

  stop(): boolean {
    this.#resolveStop()
    return true
  }

  async settle(ending: Ending): Promise<Printed> {
    const { process, warm } = this
    const { stopped } = this.run
    this.#ending = ending
    this.#asking?.abort()
    this.#stopListening()
    const isAlive = ending.type === 'done' && warm !== undefined
    if (isAlive && (this.#hasUsedTools || stopped)) await process.endStrays(stopped !== undefined)
    // A process that did not get to this turn in all its time would not get to the next one either.
    const isStuck = stopped?.reason === 'timeout' && warm?.isPending === true
    if (warm?.isSpent || isStuck) process.stop()
    return { stderr: process.stderr(), plainStdout: '' }
  }

  async #converse(): Promise<Ending> {
    const { process, plan, run } = this
    const beginning = await Promise.race([this.#ready(), this.#gone, this.#stopAsked])
    if (beginning === 'stopped') {
      if (run.stopped?.reason === 'timeout') process.stop()
      return { type: 'done' }
    }
    if (beginning.type === 'not-ready') process.stop()
    if (beginning.type !== 'done') return beginning

    const approve = this.#asking && plan.approve && approveInTurn(plan.approve, run.watch, this.#asking.signal)
    const warm = process.connection.begin(plan.turn, (event) => this.#emit(event), approve)
    this.warm = warm
    this.#heed(warm.translation.mustStop)
    const done = warm.done.then((): Ending => ({ type: 'done' }))
    if (warm.steer) plan.onSteerable?.(steerUntil(Promise.race([done, this.#gone, this.#stopAsked]), warm.steer))
    const ending = await Promise.race([done, this.#gone, this.#stopAsked])
    // It may have failed before the agent got the prompt.
    this.#heed(warm.translation.mustStop)
    if (ending !== 'stopped') return ending

    warm.interrupt()
    this.#asking?.abort()
    const obeyed = await within(INTERRUPT_MS, Promise.race([done, this.#gone]))
    if (obeyed) return obeyed
    process.stop()
    return this.#gone
  }

  /** Settles when the turn can begin. Contract: never rejects. */
  async #ready(): Promise<Ending> {
    try {
      await this.process.connection.ready
    } catch (error) {
      return { type: 'not-ready', message: messageOf(error) }
    }
    await this.process.discardEarlierStderr()
    return { type: 'done' }
  }

  #heard(count: number): void {
    const { warm } = this
    if (!warm || warm.translation.acceptedCount === this.#acceptedCount) return
    this.#acceptedCount = warm.translation.acceptedCount
    this.run.watch.alive()
    this.#bytes += count
    const { totalBytes } = this.plan.limits
    if (this.#bytes > totalBytes) {
      this.run.stop(printedTooMuch(`more than ${Math.floor(totalBytes / (1024 * 1024))} MiB in one turn`))
    }
    this.#heed(warm.translation.mustStop)
  }

  #heed(mustStop: Failed | undefined): void {
    if (mustStop) this.run.stop(mustStop)
  }

  #emit(event: AgentEventBody): void {
    this.#hasUsedTools ||= event.type === 'tool_use'
    this.run.emit(event)
  }
}

function endingOf(exit: ProcessExit): Ending {
  if ('spawnError' in exit) return { type: 'not-started', message: exit.spawnError.message }
  return { type: 'died', exitCode: exit.exitCode }
}

/** Text that arrives after the end, or was not taken by then, belongs to another turn. */
function steerUntil(end: Promise<unknown>, steer: Steer): Steer {
  let isOver = false
  const refused = end.then(() => {
    isOver = true
    return false
  })
  return async (text) => !isOver && Promise.race([steer(text), refused])
}
