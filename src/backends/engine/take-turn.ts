// A turn from its request to its `complete`, however long the process of the agent lives.

import { setMaxListeners } from 'node:events'
import { startDeadline } from '../../core/async.js'
import type { BackendDependencies } from './backend-dependencies.js'
import { CANCELLED, refusedRun } from './refusals.js'
import type { Failed } from './translation.js'
import type { Run } from './turn-run.js'
import { type TimeLimits, timeLimits, tookTooLong } from './turn-watch.js'
import type { AgentEvent, AgentRequest, BackendAdapterConfig } from '../types.js'

/** How long the process lives that takes a turn: for this turn alone, for the next ones too, or as a server for all. */
export interface Lifetime {
  /** Finds or prepares what the turn runs in, or tells why there is nothing. Contract: rejects only at the signal, or where
   *  the request is wrong. */
  acquire(signal: AbortSignal): Promise<Lease | Failed>
}

/** What one turn runs in. */
export interface Lease {
  start(limits: TimeLimits): Run
  /** Called with each event of the run before it is told, which waits for what this returns. */
  heard(event: AgentEvent): Promise<void> | undefined
  /** Called once, when nothing of the run is at work, or it was never started. Contract: never rejects. */
  release(): Promise<void>
}

export interface TakeOptions {
  request: AgentRequest
  signal: AbortSignal
  /** What is over already of the turn's time. */
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
      const hearing = lease.heard(event)
      if (hearing) await hearing
      yield event
    }
  } finally {
    signal.removeEventListener('abort', cancel)
    // Reached early when the consumer leaves the loop: the agent must not work on for nobody.
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
    return tookTooLong(timeoutMs)
  } finally {
    deadline.clear()
  }
}
