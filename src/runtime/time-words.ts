/** A duration in the largest useful unit: `85 s`, `34 min`, `5 h`, `3 d`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

const HOUR_MS = 3_600_000

/** `in 34 min`, or `at 13:50 UTC` from an hour on. */
export function timeAhead(at: number, now: number): string {
  return isSoon(at, now) ? `in ${duration(at - now)}` : `at ${timeOfDay(at, now)}`
}

/** Whether a duration is clearer than a time of day. */
export function isSoon(at: number, now: number): boolean {
  return at - now < HOUR_MS
}

/** `13:50 UTC`, with the date if it is not today. */
export function timeOfDay(at: number, now: number): string {
  const [date = '', time = ''] = new Date(at).toISOString().split('T')
  const isToday = new Date(now).toISOString().startsWith(date)
  return `${isToday ? '' : `${date} `}${time.slice(0, 5)} UTC`
}
