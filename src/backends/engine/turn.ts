// One turn, for every lifetime of an agent's process: what to do, the way from the request to `complete`, and the run
// itself with its start, its clock, its first stop and its end.
//
// Traps:
// - Reading never waits for the consumer: Claude Code drops output that nobody reads.
// - The first stop wins: nothing the agent says afterwards becomes an event.

import { setMaxListeners } from 'node:events'
import { posix, resolve } from 'node:path'
import { abortable, eitherSignal, MAX_TIMER_MS, startDeadline } from '../../core/async.js'
import { POD_DIRECTORY } from '../../kubernetes/types.js'
import type {
  AgentCommand,
  AgentEvent,
  AgentEventBody,
  AgentFailure,
  AgentRequest,
  AgentResult,
  Approve,
  BackendAdapterConfig,
  TokenUsage,
} from '../types.js'
import type { SessionNotes } from './agent-cli.js'
import type { BackendDependencies } from './cli-backend.js'
import { EventQueue } from './event-queue.js'
import { CANCELLED, type Ending, type Evidence, type Failed, judge, type JudgeContext } from './failures.js'
import { refusedRun, requireMilliseconds, requireWholeNumber } from './refusals.js'
import { isSessionLost } from './starting-over.js'
import type { Translation } from './translation.js'

/** One turn to run: the request, completed from the configuration. */
export interface Turn {
  /** Neutralised for the CLI. */
  prompt: string
  /** Empty if there is none. */
  systemPrompt: string
  sessionId?: string
  sessionUsage?: TokenUsage
  model?: string
  allowedTools: string[]
  workingDir: string
  /** 0 means no limit. */
  maxTurns: number
  /** Nothing in the working directory may configure the agent or run unasked. */
  isUntrusted: boolean
  /** The agent asks before it uses a tool. */
  isAsking: boolean
  /** The session is compacted instead. */
  compaction?: Compaction
  /** The operator's command, without the options that the backend always sets itself. */
  command?: AgentCommand
}

export interface Compaction {
  /** What the summary should keep above all; empty if nothing in particular. */
  focus: string
}

const COMPACT = /^\/compact(?:\s+|$)/

/** What `/compact` asks for; undefined for any other prompt. */
export function compactionOf({
  prompt,
  isCommand = false,
}: Pick<AgentRequest, 'prompt' | 'isCommand'>): Compaction | undefined {
  return isCommand && COMPACT.test(prompt) ? { focus: prompt.replace(COMPACT, '').trimEnd() } : undefined
}

/** Contract: throws `request_invalid`. */
export function turnOf(request: AgentRequest, config: BackendAdapterConfig, directories: SessionNotes<string>): Turn {
  const model = (request.model ?? config.model) || undefined
  const directory = request.workingDir ?? directories.get(request.sessionId)
  const compaction = compactionOf(request)
  return {
    prompt: request.prompt,
    systemPrompt: request.systemPrompt ?? '',
    // Some callers pass an empty id for a new session.
    ...(request.sessionId && { sessionId: request.sessionId }),
    ...(request.sessionUsage && { sessionUsage: request.sessionUsage }),
    ...(model !== undefined && { model }),
    allowedTools: request.allowedTools ?? config.allowedTools,
    // Absolute: a CLI that is started there and also given the path would resolve a relative one twice.
    workingDir: request.pod ? posix.resolve('/', directory ?? POD_DIRECTORY) : resolve(directory ?? config.workingDir),
    maxTurns: requireWholeNumber('maxTurns', request.maxTurns ?? config.maxTurns),
    isUntrusted: request.isUntrusted ?? false,
    isAsking: request.approve !== undefined,
    ...(compaction && { compaction }),
  }
}

/** The lifetime of the process that takes a turn: one-shot, warm or a server. */
export interface Lifetime {
  /** Finds or prepares a process for the turn, or returns why there is none. Contract: rejects only at the signal, or if the
   *  request is invalid. */
  acquire(signal: AbortSignal): Promise<Lease | Failed>
}

/** A process, held for one turn. */
export interface Lease {
  start(limits: TimeLimits): Run
  /** Called with each event of the run before it is yielded; the event waits for the returned promise. */
  onEvent(event: AgentEvent): Promise<void> | undefined
  /** Called once, when the run is over or was never started. Contract: never rejects. */
  release(): Promise<void>
}

export interface TakeOptions {
  request: AgentRequest
  signal: AbortSignal
  /** How much of the turn's time has been used. */
  spentMs?: number
  config: BackendAdapterConfig
  dependencies: Pick<BackendDependencies, 'now' | 'elapsed'>
}

export async function* takeTurn(
  { request, signal, spentMs = 0, config, dependencies: { now, elapsed } }: TakeOptions,
  lifetime: Lifetime,
): AsyncGenerator<AgentEvent, void, undefined> {
  const limits = timeLimits(request, config)
  const startedAt = elapsed()
  let lease: Lease | undefined
  let run: Run | undefined
  const cancel = (): void => run?.stop(CANCELLED)
  // A caller may start any number of runs with one signal.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', cancel)
  try {
    const acquired = await acquireInTime(lifetime, { ...limits, spentMs }, signal)
    if ('reason' in acquired) {
      yield* refusedRun(signal.aborted ? CANCELLED : acquired, now)
      return
    }
    lease = acquired
    run = lease.start({ ...limits, spentMs: spentMs + elapsed() - startedAt })
    if (signal.aborted) cancel()
    for await (const event of run.events) {
      const handled = lease.onEvent(event)
      if (handled) await handled
      yield event
    }
  } finally {
    signal.removeEventListener('abort', cancel)
    // Reached early if the consumer leaves the loop: then the agent must not keep working.
    cancel()
    await run?.ended
    await lease?.release()
  }
}

async function acquireInTime(
  lifetime: Lifetime,
  { timeoutMs, spentMs = 0 }: TimeLimits,
  signal: AbortSignal,
): Promise<Lease | Failed> {
  const deadline = startDeadline(Math.max(0, timeoutMs - spentMs), signal)
  try {
    return await lifetime.acquire(deadline.signal)
  } catch (error) {
    if (!deadline.signal.aborted) throw error
    return timeoutFailure(timeoutMs)
  } finally {
    deadline.clear()
  }
}

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
  /** How much of it was used before the agent starts. */
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
      // The timer alone is not enough: a flood of output delays it.
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

function timeoutFailure(timeoutMs: number): Failed {
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
