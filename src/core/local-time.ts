/** In this terminal's time zone; with the date unless it is today. */
export function localTime(at: number, now: number): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString()
  return isToday ? localDateTime(at).slice(-5) : localDateTime(at)
}

/** Such as `2026-03-29 03:00`. */
export function localDateTime(at: number): string {
  const date = new Date(at)
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`
}

/** Converts the gateway's times, such as `13:50 UTC`, to this terminal's time zone. Without a date they are today's. */
export function withLocalTimes(text: string, now: number): string {
  return text.replaceAll(/(?:(\d{4}-\d\d-\d\d) )?\b(\d\d:\d\d) UTC\b/g, (whole, date: string | undefined, time) => {
    const at = Date.parse(`${date ?? new Date(now).toISOString().slice(0, 10)}T${String(time)}Z`)
    return Number.isNaN(at) ? whole : localTime(at, now)
  })
}

/** `85 s` as a clock shows it: `1:25`. */
export function clock(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000))
  if (seconds < 60) return `${seconds}s`
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
