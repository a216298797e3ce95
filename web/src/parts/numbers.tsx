import type { Usage } from '../../../src/client/aetheel-client.js'
import { formatCount, formatDuration, formatMoney, formatRelative } from '../format.js'
import { useNow } from '../use-now.js'

const MINUTE_MS = 60_000

/** Relative time, with the exact local time on hover. `at` is ISO 8601. */
export function Time({ at }: { at: string }) {
  const time = Date.parse(at)
  const now = useNow(time > Date.now() ? 5000 : MINUTE_MS)
  return (
    <time dateTime={at} title={new Date(time).toLocaleString()}>
      {formatRelative(time, now)}
    </time>
  )
}

/** Keeps counting if `until` is left out. */
export function Duration({ from, until }: { from: number; until?: number }) {
  return until === undefined ? <RunningDuration from={from} /> : <>{formatDuration(until - from)}</>
}

function RunningDuration({ from }: { from: number }) {
  const seconds = Math.max(0, Math.floor((useNow(1000) - from) / 1000))
  // Whole seconds only: tenths that never change would look stuck.
  return <>{seconds < 10 ? `${seconds} s` : formatDuration(seconds * 1000)}</>
}

/** A dash if the cost is unknown. */
export function Money({ usd }: { usd: number | null | undefined }) {
  return <>{usd === null || usd === undefined ? '–' : formatMoney(usd)}</>
}

/** Input and output tokens, with cache tokens on hover. */
export function Tokens({
  usage,
}: {
  usage: Pick<Usage, 'input_tokens' | 'output_tokens' | 'cache_read_tokens' | 'cache_write_tokens'> | null | undefined
}) {
  if (!usage) return <>–</>
  const cached = `Cache: ${formatCount(usage.cache_read_tokens)} read, ${formatCount(usage.cache_write_tokens)} written`
  return (
    <span title={cached}>
      {formatCount(usage.input_tokens)} in, {formatCount(usage.output_tokens)} out
    </span>
  )
}
