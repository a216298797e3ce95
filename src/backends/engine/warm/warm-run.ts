// A turn in a warm process.
//
// Traps:
// - A stopped turn lasts until the agent confirms: anything it still says must not reach the next turn.
// - The process may serve other turns at the same time: it is killed only if it does not obey an interrupt.

import { deferred, within } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import type { ProcessExit } from '../../../processes/local-process.js'
import type { AgentEventBody, AgentRequest, AgentResult, Steer } from '../../types.js'
import type { AgentCli } from '../agent-cli.js'
import { type Ending, printedTooMuch } from '../failures.js'
import type { Translation } from '../translation.js'
import {
  approveInTurn,
  type Drive,
  type Printed,
  type Run,
  type RunControl,
  startRun,
  timeLimits,
  type TimeLimits,
  type Turn,
} from '../turn.js'
import type { WarmProcess } from './warm-process.js'
import type { WarmTurn } from './types.js'

/** An agent that has not stopped by then is killed. */
const INTERRUPT_MS = 1_000

/** Starts one turn in a process that `openWarmProcess` started. */
export function startWarmRun(
  agent: AgentCli,
  process: WarmProcess,
  request: AgentRequest,
  turn: Turn = agent.turnOf(request, true),
  limits: TimeLimits = timeLimits(request, agent.config),
): Run<WarmDrive> {
  const { label, failureSigns } = agent.definition.traits
  const { now, elapsed, scrubber } = agent.dependencies
  const plan = { label, failureSigns, scrubber, now, elapsed, ...limits }
  return startRun(plan, (control) => new WarmDrive(agent, process, request, turn, control))
}

export class WarmDrive implements Drive {
  readonly ended: Promise<Ending>
  readonly translation: Translation
  #warm: WarmTurn | undefined
  #ending: Ending | undefined
  #hasUsedTools = false
  #acceptedCount = 0
  #bytes = 0
  readonly #maxBytes: number
  readonly #stopAsked = deferred<'stopped'>()
  readonly #gone = deferred<Ending>()
  /** Aborted when approvals are no longer needed. Only if the turn asks for any: the abort takes longer than everything else
   *  at the end of a turn. */
  readonly #asking: AbortController | undefined
  readonly #stopListening: () => void

  constructor(
    agent: AgentCli,
    private readonly process: WarmProcess,
    private readonly request: AgentRequest,
    private readonly turn: Turn,
    private readonly run: RunControl,
  ) {
    this.translation = agent.definition.translation((event) => this.#emit(event), turn)
    this.#maxBytes = agent.dependencies.limits.totalBytes
    this.#asking = request.approve && new AbortController()
    this.#stopListening = process.listen({
      heard: (bytes) => this.#heard(bytes),
      text: (line) => this.#warm && this.translation.acceptText(line),
      overflowed: (problem) => run.stop(printedTooMuch(problem)),
      gone: (exit) => this.#gone.resolve(endingOf(exit)),
    })
    this.ended = this.#converse()
  }

  /** A warm process cannot run this turn. */
  get isDeclined(): boolean {
    return this.#warm?.isDeclined === true
  }

  /** Whether the agent got the prompt and may have begun to work. */
  get wasPrompted(): boolean {
    return this.#warm !== undefined && !this.isDeclined
  }

  /** Known with the result: the process failed for an unknown reason, or declined the turn. The same turn may well succeed
   *  in another process. */
  isProcessLost(result: AgentResult | undefined): boolean {
    if (this.run.stopped) return false
    const isGone = this.#ending?.type === 'died' || this.#ending?.type === 'not-ready'
    return this.isDeclined || (isGone && result?.failure?.reason === 'exit')
  }

  stop(): boolean {
    this.#stopAsked.resolve('stopped')
    return true
  }

  async settle(ending: Ending): Promise<Printed> {
    const { process } = this
    const warm = this.#warm
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
    const { process, request, run, translation } = this
    const gone = this.#gone.promise
    const stopAsked = this.#stopAsked.promise
    const beginning = await Promise.race([this.#ready(), gone, stopAsked])
    if (beginning === 'stopped') {
      if (run.stopped?.reason === 'timeout') process.stop()
      return { type: 'done' }
    }
    if (beginning.type === 'not-ready') process.stop()
    if (beginning.type !== 'done') return beginning

    const approve = this.#asking && request.approve && approveInTurn(request.approve, run.watch, this.#asking.signal)
    const warm = process.connection.begin(this.turn, translation, approve)
    this.#warm = warm
    if (translation.mustStop) run.stop(translation.mustStop)
    const done = warm.done.then((): Ending => ({ type: 'done' }))
    const over = Promise.race([done, gone, stopAsked])
    if (warm.steer) request.onSteerable?.(steerUntil(over, warm.steer))
    const ending = await over
    // It may have failed before the agent got the prompt.
    if (translation.mustStop) run.stop(translation.mustStop)
    if (ending !== 'stopped') return ending

    warm.interrupt()
    this.#asking?.abort()
    const obeyed = await within(INTERRUPT_MS, Promise.race([done, gone]))
    if (obeyed) return obeyed
    process.stop()
    return gone
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
    const { acceptedCount, mustStop } = this.translation
    if (!this.#warm || acceptedCount === this.#acceptedCount) return
    this.#acceptedCount = acceptedCount
    this.run.watch.alive()
    this.#bytes += count
    if (this.#bytes > this.#maxBytes) {
      this.run.stop(printedTooMuch(`more than ${Math.floor(this.#maxBytes / (1024 * 1024))} MiB in one turn`))
    }
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
