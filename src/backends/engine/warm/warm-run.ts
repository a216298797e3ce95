// A turn in a warm process, which takes other turns too.
//
// Traps that a careless edit would fall into:
// - A turn that is stopped goes on until the agent has said so: what it still says must not reach the next turn.
// - The process may serve other turns at the same time: it is stopped only when it does not obey.

import { within } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import type { OutputLimits } from '../../../processes/line-splitter.js'
import type { ProcessExit } from '../../../processes/local-process.js'
import type { Failed } from '../translation.js'
import type { Turn } from '../turn.js'
import { approveInTurn } from '../turn-approvals.js'
import { type Ending, printedTooMuch } from '../turn-result.js'
import { type Drive, type Printed, type Run, type RunControl, type RunPlan, startRun } from '../turn-run.js'
import type { AgentEventBody, AgentResult, Approve, Steer } from '../../types.js'
import type { WarmProcess } from './warm-process.js'
import type { WarmTurn } from './types.js'

/** An agent that has not stopped by then is ended. */
const INTERRUPT_MS = 1_000

export interface WarmRunPlan extends RunPlan {
  turn: Turn
  /** As of the request. */
  approve?: Approve
  limits: OutputLimits
  /** Gets a way to talk to the agent, where it has one. */
  onSteerable?(steer: Steer): void
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
    get wasAsked() {
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
  #tellStop = (): void => {}
  readonly #stopAsked: Promise<'stopped'>
  #tellGone = (_exit: ProcessExit): void => {}
  readonly #gone: Promise<Ending>
  /** Aborted when no answer to what the agent asks is wanted any more. Only for those who listen: to abort takes longer than
   *  all else at the end of a turn. */
  readonly #asking: AbortController | undefined
  readonly #stopListening: () => void

  constructor(
    private readonly process: WarmProcess,
    private readonly plan: WarmRunPlan,
    private readonly run: RunControl,
  ) {
    this.#asking = plan.approve && new AbortController()
    this.#stopAsked = new Promise((resolve) => {
      this.#tellStop = () => resolve('stopped')
    })
    this.#gone = new Promise((resolve) => {
      this.#tellGone = (exit) => resolve(endingOf(exit))
    })
    this.#stopListening = process.listen({
      heard: (bytes) => this.#heard(bytes),
      text: (line) => this.warm?.translation.acceptText(line),
      overflowed: (problem) => run.stop(printedTooMuch(problem)),
      gone: (exit) => this.#tellGone(exit),
    })
    this.ended = this.#converse()
  }

  get translation() {
    return this.warm?.translation ?? {}
  }

  get isDeclined(): boolean {
    return this.warm?.isDeclined === true
  }

  /** Whether another process should take the turn that came to this. */
  isLost(result: AgentResult | undefined): boolean {
    if (this.run.stopped) return false
    const isGone = this.#ending?.type === 'died' || this.#ending?.type === 'not-ready'
    return this.isDeclined || (isGone && result?.failure?.reason === 'exit')
  }

  stop(): boolean {
    this.#tellStop()
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
    // One that does not get to a turn in all its time would not get to the next either.
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
    // It may have been given up before the agent was asked.
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
    await this.process.forgetEarlier()
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

/** What is said after the end, or was not taken by then, is for another turn. */
function steerUntil(end: Promise<unknown>, steer: Steer): Steer {
  let isOver = false
  const refused = end.then(() => {
    isOver = true
    return false
  })
  return async (text) => !isOver && Promise.race([steer(text), refused])
}
