import type { GatewayConfig } from '../config.js'
import { defined } from '../core/defined.js'
import type { Beat, LastBeat } from '../store/heartbeats.js'
import type { Usage } from '../store/figures.js'
import type { Store } from '../store/store.js'
import { nextBeat, zoneOf } from './beat-times.js'
import { tokensOf } from './heartbeat.js'
import { startOfDay, startOfNextDay } from './local-time.js'

export interface HeartbeatStatus {
  everyMinutes: number
  to: string
  timeZone: string
  /** When the agent is woken next, unless a check prevents it. */
  nextAt?: number
  /** The last slot that was decided. */
  latest?: Beat
  /** The last time the agent was woken. */
  last?: LastBeat
  today: Usage
  tokensToday: number
  dailyTokens: number
}

/** The status of heartbeats; undefined if they are off. */
export async function heartbeatStatus(
  { heartbeat }: Pick<GatewayConfig, 'heartbeat'>,
  store: Pick<Store, 'heartbeats' | 'figures'>,
  now: number,
): Promise<HeartbeatStatus | undefined> {
  if (!heartbeat) return undefined
  const { everyMinutes, to, dailyTokens } = heartbeat
  const timeZone = zoneOf(heartbeat)
  const today = await store.figures.usage({ kind: 'heartbeat' }, startOfDay(now, timeZone))
  const tokensToday = tokensOf(today)
  // The first slot of the next day counts towards that day.
  const after = tokensToday < dailyTokens ? now : startOfNextDay(now, timeZone) - 1
  const nextAt = nextBeat(heartbeat, after)
  const [latest] = await store.heartbeats.list(1)
  const last = await store.heartbeats.last()
  return defined({ everyMinutes, to, timeZone, nextAt, latest, last, today, tokensToday, dailyTokens })
}
