import { expect, it } from 'vitest'
import { localTime, withLocalTimes } from '../../src/core/local-time.js'

it("tells the gateway's times in the time of this machine", () => {
  const now = Date.parse('2026-03-02T13:55Z')
  const at = (time: string): string => localTime(Date.parse(time), now)
  expect(withLocalTimes('since 13:50 UTC, until 2026-04-01 02:00 UTC; today (UTC): 99:99 UTC', now)).toBe(
    `since ${at('2026-03-02T13:50Z')}, until ${at('2026-04-01T02:00Z')}; today (UTC): 99:99 UTC`,
  )
})
