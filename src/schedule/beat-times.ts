// When a heartbeat is due. Times are counted from the epoch, so that all gateways and every start agree on them.

import type { GatewayConfig } from '../config.js'
import { machineTimeZone, minuteOfDay, minutesOf } from './local-time.js'

export type HeartbeatSettings = NonNullable<GatewayConfig['heartbeat']>

const MINUTE_MS = 60_000
const MINUTES_OF_DAY = 24 * 60
/** Beyond it, no beat comes in the hours that are allowed: such hours are shorter than the time between two. */
const LOOKED_AHEAD_MS = 8 * 24 * 60 * MINUTE_MS

/** The last time up to this one at which it is due. */
export function slotAt({ everyMinutes }: Pick<HeartbeatSettings, 'everyMinutes'>, at: number): number {
  const everyMs = everyMinutes * MINUTE_MS
  return Math.floor(at / everyMs) * everyMs
}

export function zoneOf({ timeZone = machineTimeZone() }: HeartbeatSettings): string {
  return timeZone
}

/** Whether the agent may be woken now. The end of the hours is not part of them; an end before the beginning is that of
 *  the next day, and hours that end where they begin are the whole day. */
export function isActiveHour(heartbeat: HeartbeatSettings, at: number): boolean {
  const { activeHours } = heartbeat
  if (!activeHours) return true
  const [from, to, now] = [minutesOf(activeHours.from), minutesOf(activeHours.to), minuteOfDay(at, zoneOf(heartbeat))]
  return from < to ? from <= now && now < to : now >= from || now < to
}

/** Whether no time that is due is in the active hours. */
export function isNeverDue(heartbeat: HeartbeatSettings, now: number): boolean {
  const { activeHours, everyMinutes } = heartbeat
  if (!activeHours) return false
  const minutes = minutesOf(activeHours.to) - minutesOf(activeHours.from)
  // Hours that are longer than the time between two hold one in any case.
  const isLongEnough = everyMinutes <= (minutes > 0 ? minutes : minutes + MINUTES_OF_DAY)
  return !isLongEnough && nextBeat(heartbeat, now) === undefined
}

/** The first time after this one at which it is due and allowed. */
export function nextBeat(heartbeat: HeartbeatSettings, after: number): number | undefined {
  const everyMs = heartbeat.everyMinutes * MINUTE_MS
  for (let slot = slotAt(heartbeat, after) + everyMs; slot <= after + LOOKED_AHEAD_MS + everyMs; slot += everyMs) {
    if (isActiveHour(heartbeat, slot)) return slot
  }
  return undefined
}
