import { describe, expect, it } from 'vitest'
import { CronSchedule } from '../../src/schedule/cron-schedule.js'

const BERLIN = 'Europe/Berlin'

describe('a schedule', () => {
  it.each([
    ['is due at the next time of its zone', '0 9 * * *', '2026-06-01T07:00:00Z', '2026-06-02T07:00:00.000Z'],
    ['follows the clock to summer time', '0 9 * * *', '2026-03-28T12:00:00Z', '2026-03-29T07:00:00.000Z'],
    ['follows the clock to winter time', '0 9 * * *', '2026-10-24T12:00:00Z', '2026-10-25T08:00:00.000Z'],
    ['is due right after an hour that is left out', '30 2 * * *', '2026-03-28T12:00:00Z', '2026-03-29T01:00:00.000Z'],
    ['is due once in an hour that comes twice', '30 2 * * *', '2026-10-25T00:30:00Z', '2026-10-26T01:30:00.000Z'],
    ['knows names', '@monthly', '2026-06-15T00:00:00Z', '2026-06-30T22:00:00.000Z'],
    ['knows leap years', '0 0 29 2 *', '2026-06-15T00:00:00Z', '2028-02-28T23:00:00.000Z'],
  ])('%s', (_, expression, after, expected) => {
    const next = new CronSchedule(expression, BERLIN).next(Date.parse(after))
    expect(new Date(next ?? 0).toISOString()).toEqual(expected)
  })

  it.each([
    ['at the very moment', '2026-06-02T07:00:00Z', '2026-06-02T07:00:00.000Z'],
    ['within its minute', '2026-06-02T07:00:59Z', '2026-06-02T07:00:00.000Z'],
    ['a millisecond before', '2026-06-02T06:59:59.999Z', '2026-06-01T07:00:00.000Z'],
  ])('was last due %s', (_, at, expected) => {
    const latest = new CronSchedule('0 9 * * *', BERLIN).latest(Date.parse(at))
    expect(new Date(latest ?? 0).toISOString()).toEqual(expected)
  })

  it('that never fires has no next time', () => {
    expect(new CronSchedule('0 0 31 2 *', BERLIN).next(0)).toBeUndefined()
  })

  it.each([
    ['61 * * * *', /Invalid schedule "61 \* \* \* \*": Invalid value for minute: 61\. Use five fields, such as "0 9/],
    ['every day', /Invalid schedule/],
    ['* * * * * *', /has 6 parts/],
    ['', /Invalid schedule/],
    ['@reboot', /Invalid schedule/],
    ['2026-06-01T00:00:00', /Invalid schedule/],
  ])('"%s" is refused with what to write', (expression, problem) => {
    expect(() => new CronSchedule(expression, BERLIN)).toThrow(problem)
  })

  it('in an unknown time zone is refused', () => {
    expect(() => new CronSchedule('* * * * *', 'Mars/Base')).toThrow(
      'Unknown time zone "Mars/Base". Use a name such as Europe/Berlin.',
    )
  })
})
