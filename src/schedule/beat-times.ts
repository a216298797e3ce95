// When a heartbeat is due. Slots are counted from the epoch, so all gateways agree on them, across restarts.

import type { GatewayConfig } from '../config.js'
import { machineTimeZone, minuteOfDay, minutesOf } from './local-time.js'

export type HeartbeatSettings = NonNullable<GatewayConfig['heartbeat']>

const MINUTE_MS = 60_000
const MINUTES_PER_DAY = 24 * 60
/** If no slot falls within the active hours in this time, none ever will: they are shorter than the interval. */
const LOOKAHEAD_MS = 8 * 24 * 60 * MINUTE_MS

/** The last slot at or before this time. */
export function slotAt({ everyMinutes }: Pick<HeartbeatSettings, 'everyMinutes'>, at: number): number {
  const everyMs = everyMinutes * MINUTE_MS
  return Math.floor(at / everyMs) * everyMs
}

export function zoneOf({ timeZone = machineTimeZone() }: HeartbeatSettings): string {
  return timeZone
}

/**
 * Whether the agent may be woken now. The end of the hours is exclusive; an end before the start means the next day,
 * and equal ends mean the whole day.
 */
export function isActiveHour(heartbeat: HeartbeatSettings, at: number): boolean {
  const { activeHours } = heartbeat
  if (!activeHours) return true
  const [from, to, now] = [minutesOf(activeHours.from), minutesOf(activeHours.to), minuteOfDay(at, zoneOf(heartbeat))]
  return from < to ? from <= now && now < to : now >= from || now < to
}

/** Whether no slot falls within the active hours. */
export function isNeverDue(heartbeat: HeartbeatSettings, now: number): boolean {
  const { activeHours, everyMinutes } = heartbeat
  if (!activeHours) return false
  const minutes = minutesOf(activeHours.to) - minutesOf(activeHours.from)
  // Active hours longer than the interval always contain a slot.
  const isLongEnough = everyMinutes <= (minutes > 0 ? minutes : minutes + MINUTES_PER_DAY)
  return !isLongEnough && nextBeat(heartbeat, now) === undefined
}

/** The first slot after this time that falls within the active hours. */
export function nextBeat(heartbeat: HeartbeatSettings, after: number): number | undefined {
  const everyMs = heartbeat.everyMinutes * MINUTE_MS
  for (let slot = slotAt(heartbeat, after) + everyMs; slot <= after + LOOKAHEAD_MS + everyMs; slot += everyMs) {
    if (isActiveHour(heartbeat, slot)) return slot
  }
  return undefined
}
