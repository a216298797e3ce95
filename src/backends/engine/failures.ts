import type { FailureReason } from '../types.js'

/** The first matching sign determines the reason, and adds advice where the CLI's own message has none. */
export type FailureSign = readonly [sign: RegExp, reason: FailureReason, advice?: string]

/** Common to all CLIs and model servers. A backend's own signs take precedence. */
const COMMON_SIGNS: readonly FailureSign[] = [
  // As Anthropic, OpenAI and Google say it. First: some of these texts also speak of access.
  [
    /\bmodel\b[^\n]{0,100}\bdoes not exist\b|\bmodels\/\S+ is not found\b|\bnot_found_error\b.{0,40}\bmodel:/i,
    'model_unknown',
  ],
  [/\bprompt is too long\b|\bmaximum context length\b|\bexceeds the maximum number of tokens\b/i, 'prompt_too_long'],
  [/\b429\b|rate.?limit|too many requests|\bquota\b|usage limit|hit your limit|resource.?exhausted/i, 'rate_limit'],
  [/\b40[13]\b|unauthori[sz]ed|forbidden|api.?key|not logged in|authenticat|please (?:log|sign) ?in/i, 'auth'],
]

export function classifyFailure(message: string, ownSigns: readonly FailureSign[]): FailureReason {
  return findSign(message, [...ownSigns, ...COMMON_SIGNS])?.[1] ?? 'exit'
}

export function findSign(message: string, signs: readonly FailureSign[]): FailureSign | undefined {
  return signs.find(([sign]) => sign.test(message))
}

/** The failure reason implied by an HTTP status of the model server, if any. */
export function reasonOfStatus(status: unknown): FailureReason | undefined {
  if (status === 401 || status === 403) return 'auth'
  return status === 429 ? 'rate_limit' : undefined
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DURATION = /(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)(?:ays?|ours?|rs?|in(?:ute)?s?|ec(?:ond)?s?)?(?![a-z])/gi
const WAIT = /(?:try again|retry|resets?|available)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)/i
const CLOCK = /(?:try again|retry|resets?|until)\s+(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*([ap]m)?\b(?!\s*[a-z]*second)/i
const EPOCH = /\|(\d{10})\b/

/** When a rate limit ends, if its message says so: `…|1760000000`, `try again in 2 h 5 m`, `resets 3pm`. */
export function parseRetryAt(wholeMessage: string, now: number): number | undefined {
  // The patterns are slow on long runs of digits, and the time always comes early in the message.
  const message = wholeMessage.slice(0, 1_000)
  const epoch = EPOCH.exec(message)?.[1]
  if (epoch) return Number(epoch) * 1000

  const wait = WAIT.exec(message)?.[1]
  if (wait) {
    const parts = [...wait.matchAll(DURATION)]
    const ms = parts.reduce(
      (sum, [, amount, unit = '']) => sum + Number(amount) * (UNIT_MS[unit.toLowerCase()] ?? 0),
      0,
    )
    return ms > 0 ? now + ms : undefined
  }

  const clock = CLOCK.exec(message)
  if (!clock || (clock[2] === undefined && clock[3] === undefined)) return undefined
  const isAfternoon = clock[3]?.toLowerCase() === 'pm'
  const hour = clock[3] ? (Number(clock[1]) % 12) + (isAfternoon ? 12 : 0) : Number(clock[1])
  const at = new Date(now)
  at.setHours(hour, Number(clock[2] ?? 0), 0, 0)
  // A time of day that has passed means tomorrow.
  return at.getTime() > now ? at.getTime() : at.getTime() + 86_400_000
}

/** The human-readable part of an error: some CLIs pass on the model server's JSON verbatim. */
export function readableMessage(message: string): string {
  const start = message.indexOf('{')
  const end = message.lastIndexOf('}') + 1
  if (start === -1 || end <= start) return message
  try {
    const { error } = JSON.parse(message.slice(start, end)) as { error?: { message?: unknown } }
    if (typeof error?.message !== 'string') return message
    return message.slice(0, start) + error.message + message.slice(end)
  } catch {
    return message // Only looked like JSON.
  }
}
