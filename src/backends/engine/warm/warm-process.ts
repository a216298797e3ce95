// One warm process, and the turns it takes: its stdout feeds its connection, messages to it go in as lines.
//
// Traps:
// - A stopped turn lasts until the agent confirms: anything it still says must not reach the next turn.
// - The process may serve other turns at the same time: it is killed only if it does not obey an interrupt.

import { randomUUID } from 'node:crypto'
import { setImmediate as nextRound } from 'node:timers/promises'
import { deferred, within } from '../../../core/async.js'
import type { Scrubber } from '../../../credentials/scrubber.js'
import { messageOf } from '../../../errors.js'
import { LineSplitter, type OutputLimits, type ShortenLine } from '../../../processes/output.js'
import {
  type LocalProcess,
  type ProcessExit,
  type ProcessOptions,
  startProcess,
} from '../../../processes/local-process.js'
import type { ProcessEntry } from '../../../processes/process-table.js'
import { endTools } from '../../../processes/process-tree.js'
import { type JsonObject, JsonReader, Stderr } from '../jsonl.js'
import type { AgentEventBody, AgentRequest, AgentResult, Steer } from '../../types.js'
import { type AgentCli, runVariables } from '../agent-cli.js'
import { type Ending, printedTooMuch } from '../failures.js'
import type { Translation } from '../translation.js'
import {
  approveInTurn,
  type Drive,
  type Printed,
  type Run,
  type RunControl,
  startRun,
  type TimeLimits,
  timeLimits,
  type Turn,
} from '../turn.js'
import type { Send, WarmConnection, WarmDriver, WarmTurn } from './types.js'

/** Informs a turn about the process it runs in. */
interface ProcessListener {
  /** The connection has received a message of this size. */
  heard(bytes: number): void
  /** A line that is not a message, scrubbed. */
  text(line: string): void
  /** The process printed too much; it is being stopped. */
  overflowed(problem: string): void
  /** The process has ended. A callback, because a `then` on `ended` would keep every turn in memory while the process lives. */
  gone(exit: ProcessExit): void
}

export interface WarmProcess {
  /** Absent if it could not be started. */
  readonly pid: number | undefined
  readonly connection: WarmConnection
  /** Contract: never rejects; settles when nothing it started is alive. */
  readonly ended: Promise<ProcessExit>
  /** Whether it has ended or is being stopped, so no turn can begin. */
  readonly isOver: boolean
  /** Returns a function that removes the listener. */
  listen(listener: ProcessListener): () => void
  /** Called by a listening turn that is about to begin. Settles when earlier stderr has been read and discarded, unless
   *  another turn is running. The first turn keeps it: it is about the start. */
  discardEarlierStderr(): Promise<void>
  /** Its stderr since then, scrubbed. */
  stderr(): string
  /** Called at the end of a turn: ends processes that tools left behind and, after a stop, tools that are still running,
   *  except those of earlier turns. Does nothing while another turn is running. */
  endStrays(wasStopped: boolean): Promise<void>
  /** Ends the process and everything it started. */
  stop(): void
}

/**
 * Starts a process on this machine that can take turns like this one. Its files are removed when it ends.
 *
 * Contract: rejects if it cannot be prepared; a failure to spawn is reported by `ended`.
 */
export async function openWarmProcess(
  agent: AgentCli,
  driver: WarmDriver,
  request: AgentRequest,
  signal: AbortSignal,
): Promise<WarmProcess> {
  const { limits, scrubber, owner } = agent.dependencies
  const turn = agent.turnOf(request)
  agent.warnAboutIgnoredOptions(request, turn)
  const place = agent.localPlace(turn)
  try {
    const ofRun = runVariables(request, place.files)
    const variables = agent.environmentOf({}, turn, ofRun)
    const invocation = await driver.launch(turn, place, signal, variables)
    const options = {
      executable: agent.executableIn(place, turn),
      args: invocation.args,
      cwd: turn.workingDir,
      environment: agent.environmentOf(invocation, turn, ofRun),
      runId: randomUUID(),
      ...(owner && { owner }),
      stopSignal: agent.definition.traits.stopSignal,
    }
    const connect = (send: Send): WarmConnection => driver.connect(send, place, variables)
    const process = new StartedProcess(options, connect, driver.shorten, limits, scrubber)
    void process.ended.then(() => agent.leave(place))
    return process
  } catch (error) {
    agent.leave(place)
    throw error
  }
}

/** `limits.totalBytes` applies to one turn. Between turns it may print at most `limits.lineBytes`. */
class StartedProcess implements WarmProcess {
  readonly connection: WarmConnection
  readonly ended: Promise<ProcessExit>
  readonly #child: LocalProcess
  readonly #listeners = new Set<ProcessListener>()
  readonly #stderr: Stderr
  #isOver = false
  #exit: ProcessExit | undefined
  #hasServed = false
  /** Processes with a session of their own from before the first turn, and tools that earlier turns left running. */
  #background: ProcessEntry[] = []
  /** Of the line that is being read. */
  #bytes = 0
  /** Printed while no turn was running. */
  #idleBytes = 0

  constructor(
    options: Omit<ProcessOptions, 'stdin' | 'keepsInput' | 'onStdout' | 'onStderr'>,
    connect: (send: Send) => WarmConnection,
    shorten: ShortenLine | undefined,
    private readonly limits: OutputLimits,
    scrubber: Scrubber,
  ) {
    this.#stderr = new Stderr(scrubber)
    const splitter = this.#splitterOf(shorten, scrubber)
    this.#child = startProcess({
      ...options,
      stdin: '',
      keepsInput: true,
      onStdout: (chunk) => {
        this.#countIdleOutput(chunk.length)
        splitter.push(chunk)
      },
      onStderr: (chunk) => {
        this.#countIdleOutput(chunk.length)
        this.#stderr.push(chunk)
      },
    })
    this.connection = connect((message) => this.#child.write(`${JSON.stringify(message)}\n`))
    this.connection.ready.then(
      () => {
        this.#background = this.#child.tools()
      },
      // Reported to whoever awaits `ready`, which may be nobody.
      () => {},
    )
    this.ended = this.#child.ended.then((exit) => {
      this.#isOver = true
      this.#exit = exit
      for (const listener of this.#listeners) listener.gone(exit)
      return exit
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  get isOver(): boolean {
    return this.#isOver
  }

  listen(listener: ProcessListener): () => void {
    this.#listeners.add(listener)
    if (this.#exit) listener.gone(this.#exit)
    return () => this.#listeners.delete(listener)
  }

  async discardEarlierStderr(): Promise<void> {
    const isFirst = !this.#hasServed
    this.#hasServed = true
    if (isFirst || this.#listeners.size > 1) return
    // Two rounds of the event loop: by then, everything that is in the pipe now has been read.
    await nextRound()
    await nextRound()
    this.#stderr.clear()
  }

  stderr(): string {
    return this.#stderr.read()
  }

  async endStrays(wasStopped: boolean): Promise<void> {
    if (this.#listeners.size > 0) return
    // Before any await: later processes belong to another turn.
    const tools = this.#child.tools()
    if (wasStopped) await endTools(tools.filter((tool) => !isAmong(tool, this.#background)))
    else this.#background = tools
    await this.#child.endStrays('descendants')
  }

  stop(): void {
    this.#isOver = true
    this.#child.stop()
  }

  #splitterOf(shorten: ShortenLine | undefined, scrubber: Scrubber): LineSplitter {
    const reader = new JsonReader(
      { object: (message) => this.#receive(message), text: (line) => this.#sendText(scrubber.scrub(line)) },
      // Every message is one line, so garbage that looks like the start of a value must not hold messages up.
      0,
    )
    return new LineSplitter(
      { ...this.limits, totalBytes: Infinity },
      (line, bytes) => {
        this.#bytes = bytes
        if (!this.#isOver) reader.line(line)
      },
      (problem) => {
        for (const listener of this.#listeners) listener.overflowed(problem)
        this.stop()
      },
      shorten,
    )
  }

  #receive(message: JsonObject): void {
    try {
      this.connection.receive(message)
    } catch (error) {
      this.#sendText(`The agent sent an invalid message (${messageOf(error)})`)
    }
    for (const listener of this.#listeners) listener.heard(this.#bytes)
  }

  #sendText(line: string): void {
    for (const listener of this.#listeners) listener.text(line)
  }

  #countIdleOutput(length: number): void {
    this.#idleBytes = this.#listeners.size > 0 ? 0 : this.#idleBytes + length
    if (this.#idleBytes > this.limits.lineBytes) this.stop()
  }
}

function isAmong({ pid, startTime }: ProcessEntry, entries: ProcessEntry[]): boolean {
  return entries.some((entry) => entry.pid === pid && entry.startTime === startTime)
}

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
    // A process that did not start this turn within its time limit would not start the next one either.
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
