import { Cron } from 'croner'
import { timeZone as timeZoneSchema } from '../config/heartbeat.js'
import { GatewayError } from '../errors.js'

const MINUTE_MS = 60_000
const FORM = 'Write five fields, as "0 9 * * MON-FRI": minute, hour, day of the month, month, day of the week.'

/**
 * When something is due, in the time of one zone. Where the clock is changed, what stands for one time of day is due once
 * on that day in any case: right after an hour that is left out, and at the first of two. What stands for several times
 * is due as often as the clock shows them.
 */
export class CronSchedule {
  readonly #cron: Cron

  /** Contract: throws `request_invalid` when it cannot be read. */
  constructor(expression: string, timeZone: string) {
    if (!timeZoneSchema().safeParse(timeZone).success) {
      const advice = 'Write the name of one, such as Europe/Berlin.'
      throw new GatewayError('request_invalid', `There is no time zone "${timeZone}". ${advice}`)
    }
    try {
      this.#cron = new Cron(withoutDates(expression), { timezone: timeZone, paused: true, mode: '5-part' })
    } catch (error) {
      const problem = (error as Error).message.replace(/^\w+: /, '').replace(/\.$/, '')
      throw new GatewayError('request_invalid', `The schedule "${expression}" cannot be read: ${problem}. ${FORM}`)
    }
  }

  /** The first time after this one, if there is any. */
  next(after: number): number | undefined {
    return this.#cron.nextRun(new Date(after))?.getTime()
  }

  /** The last time up to this one. */
  latest(at: number): number | undefined {
    // Everything is due at a whole minute, and what is asked for lies before the given time.
    const nextMinute = Math.floor(at / MINUTE_MS) * MINUTE_MS + MINUTE_MS
    return this.#cron.previousRuns(1, new Date(nextMinute))[0]?.getTime()
  }
}

/** The library takes a date, too, which is due once: that is no schedule. */
function withoutDates(expression: string): string {
  const trimmed = expression.trim()
  return /^@\w+$|\s/.test(trimmed) ? trimmed : ''
}
