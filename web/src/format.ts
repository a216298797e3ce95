// Formats numbers and times. Pure.

export { formatMoney } from '../../src/core/money.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** As "850 ms", "4.2 s", "3 min 20 s", "2 h 5 min". */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < MINUTE_MS) return `${Math.floor(ms / 1000)} s`
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min ${Math.floor((ms % MINUTE_MS) / 1000)} s`
  return `${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`
}

/** As "950", "12.3k", "4.1M". */
export function formatCount(count: number): string {
  if (count < 1000) return String(count)
  if (count < 999_500) return `${(count / 1000).toFixed(count < 99_950 ? 1 : 0)}k`
  return `${(count / 1_000_000).toFixed(1)}M`
}

/** As "3 min ago", "in 2 h". */
export function formatRelative(at: number, now: number): string {
  const distance = Math.abs(now - at)
  // The clocks of browser and gateway differ slightly.
  if (at > now && distance < 5000) return 'now'
  if (at <= now && distance < MINUTE_MS) return 'just now'
  const words =
    distance < MINUTE_MS
      ? `${Math.floor(distance / 1000)} s`
      : distance < HOUR_MS
        ? `${Math.floor(distance / MINUTE_MS)} min`
        : distance < DAY_MS
          ? `${Math.floor(distance / HOUR_MS)} h`
          : `${Math.floor(distance / DAY_MS)} d`
  return at > now ? `in ${words}` : `${words} ago`
}

/** As "850 B", "12.3 KB", "4.1 MB". */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 999_950) return `${(bytes / 1000).toFixed(1)} KB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}
