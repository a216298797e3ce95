// A turn from its request to its `complete`, whatever the lifetime of the agent's process.

import { setMaxListeners } from 'node:events'
import { startDeadline } from '../../core/async.js'
import type { BackendDependencies } from './backend-dependencies.js'
import { CANCELLED, refusedRun } from './refusals.js'
import type { Failed } from './translation.js'
import type { Run } from './turn-run.js'
import { type TimeLimits, timeLimits, timeoutFailure } from './turn-watch.js'
import type { AgentEvent, AgentRequest, BackendAdapterConfig } from '../types.js'

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
