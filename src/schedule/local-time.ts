// Local time of day in a time zone.

import { CronSchedule } from './cron-schedule.js'

/** The time zone of this machine. */
export function machineTimeZone(): string {
  return new Intl.DateTimeFormat('en').resolvedOptions().timeZone
}

/** Minutes since midnight, local time. */
export function minuteOfDay(at: number, timeZone: string): number {
  const parts = new Intl.DateTimeFormat('en', { timeZone, hourCycle: 'h23', hour: 'numeric', minute: 'numeric' })
  const valueOf = (type: string): number => Number(parts.formatToParts(at).find((part) => part.type === type)?.value)
  return valueOf('hour') * 60 + valueOf('minute')
}

/** `08:00` as minutes since midnight. */
export function minutesOf(timeOfDay: string): number {
  const [hour, minute] = timeOfDay.split(':')
  return Number(hour) * 60 + Number(minute)
}

export function startOfDay(at: number, timeZone: string): number {
  return midnights(timeZone).latest(at) ?? at
}

export function startOfNextDay(at: number, timeZone: string): number {
  return midnights(timeZone).next(at) ?? at
}

/** Such as `2026-03-29 03:00 (Europe/Berlin)`. */
export function describeTime(at: number, timeZone: string): string {
  const form = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'short' })
  return `${form.format(at)} (${timeZone})`
}

function midnights(timeZone: string): CronSchedule {
  return new CronSchedule('0 0 * * *', timeZone)
}
