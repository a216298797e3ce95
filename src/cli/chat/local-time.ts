/** In the time of this terminal; with the date if it is not today. */
export function localTime(at: number, now: number): string {
  const date = new Date(at)
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`
  const isToday = date.toDateString() === new Date(now).toDateString()
  return isToday ? time : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`
}

/** The gateway's times, such as `13:50 UTC`, which is today's unless it has a date, in the time of this terminal. */
export function withLocalTimes(text: string, now: number): string {
  return text.replaceAll(/(?:(\d{4}-\d\d-\d\d) )?\b(\d\d:\d\d) UTC\b/g, (whole, date: string | undefined, time) => {
    const at = Date.parse(`${date ?? new Date(now).toISOString().slice(0, 10)}T${String(time)}Z`)
    return Number.isNaN(at) ? whole : localTime(at, now)
  })
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
