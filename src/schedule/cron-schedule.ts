import { Cron } from 'croner'
import { timeZone as timeZoneSchema } from '../config/heartbeat.js'
import { GatewayError } from '../errors.js'

const MINUTE_MS = 60_000
const FORM = 'Use five fields, such as "0 9 * * MON-FRI": minute, hour, day of the month, month, day of the week.'

/**
 * A cron schedule in one time zone. When the clocks change, an entry for a single time of day still runs exactly once
 * that day: right after a skipped hour, and the first time in a repeated one. An entry for several times runs as often
 * as the clock shows them.
 */
export class CronSchedule {
  readonly #cron: Cron

  /** Contract: throws `request_invalid` if it cannot be parsed. */
  constructor(expression: string, timeZone: string) {
    if (!timeZoneSchema().safeParse(timeZone).success) {
      const advice = 'Use a name such as Europe/Berlin.'
      throw new GatewayError('request_invalid', `Unknown time zone "${timeZone}". ${advice}`)
    }
    try {
      this.#cron = new Cron(withoutDates(expression), { timezone: timeZone, paused: true, mode: '5-part' })
    } catch (error) {
      const problem = (error as Error).message.replace(/^\w+: /, '').replace(/\.$/, '')
      throw new GatewayError('request_invalid', `Invalid schedule "${expression}": ${problem}. ${FORM}`)
    }
  }

  /** The first time after this one, if any. */
  next(after: number): number | undefined {
    return this.#cron.nextRun(new Date(after))?.getTime()
  }

  /** The last time at or before this one. */
  latest(at: number): number | undefined {
    // Everything is due on the minute, and the library looks strictly before the given time.
    const nextMinute = Math.floor(at / MINUTE_MS) * MINUTE_MS + MINUTE_MS
    return this.#cron.previousRuns(1, new Date(nextMinute))[0]?.getTime()
  }
}

/** The library also accepts a date, which runs once: that is not a schedule. */
function withoutDates(expression: string): string {
  const trimmed = expression.trim()
  return /^@\w+$|\s/.test(trimmed) ? trimmed : ''
}
