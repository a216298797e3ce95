import { MAX_TIMER_MS } from '../../core/async.js'
import { requireMilliseconds } from './refusals.js'
import type { Failed } from './translation.js'
import type { AgentRequest, BackendAdapterConfig } from '../types.js'

export const DEFAULT_IDLE_TIMEOUT_MS = 600_000

export interface TimeLimits {
  timeoutMs: number
  /** How much of it is used up before the agent starts. */
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
      // Not by the timer alone, which a flood of output delays.
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

export function timeoutFailure(timeoutMs: number): Failed {
  return { reason: 'timeout', message: `The agent did not finish within ${seconds(timeoutMs)}.` }
}

export function startTimer(onTime: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(onTime, Math.min(ms, MAX_TIMER_MS))
}

function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(1))} s`
}
