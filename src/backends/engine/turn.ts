// One turn: what is to be done, and its walk from the request to `complete`, whatever the lifetime of the agent's process.

import { setMaxListeners } from 'node:events'
import { posix, resolve } from 'node:path'
import { startDeadline } from '../../core/async.js'
import { POD_DIRECTORY } from '../../kubernetes/types.js'
import type { AgentCommand, AgentEvent, AgentRequest, BackendAdapterConfig, TokenUsage } from '../types.js'
import type { SessionNotes } from './agent-cli.js'
import type { BackendDependencies } from './cli-backend.js'
import { CANCELLED, type Failed } from './failures.js'
import { refusedRun, requireWholeNumber } from './refusals.js'
import { type Run, type TimeLimits, timeLimits, timeoutFailure } from './turn-run.js'

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
  /** Nothing in the working directory may configure the agent or run by itself. */
  isUntrusted: boolean
  /** The agent asks before it uses a tool. */
  isAsking: boolean
  /** The operator's command, without the options that the backend always sets itself. */
  command?: AgentCommand
}

/** Contract: throws `request_invalid`. */
export function turnOf(request: AgentRequest, config: BackendAdapterConfig, directories: SessionNotes<string>): Turn {
  const model = (request.model ?? config.model) || undefined
  const directory = request.workingDir ?? directories.get(request.sessionId)
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
  /** How much of the turn's time is already used up. */
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
    // Reached early if the consumer leaves the loop: the agent must not keep working for nobody.
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
