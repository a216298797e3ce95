import { describe, expect, it } from 'vitest'
import { isActiveHour, nextBeat, slotAt } from '../../src/schedule/beat-times.js'
import { heartbeatSettings } from './stage.js'

const heartbeat = (settings: object) => heartbeatSettings({ timeZone: 'Europe/Berlin', ...settings })
const iso = (at: number | undefined) => (at === undefined ? undefined : new Date(at).toISOString())

describe('heartbeats', () => {
  it('are due at the same times wherever and whenever a gateway was started', () => {
    const times = ['2026-06-01T10:00:00Z', '2026-06-01T10:29:59.999Z', '2026-06-01T10:30:00Z']
    expect(times.map((time) => iso(slotAt(heartbeat({}), Date.parse(time))))).toEqual([
      '2026-06-01T10:00:00.000Z',
      '2026-06-01T10:00:00.000Z',
      '2026-06-01T10:30:00.000Z',
    ])
  })

  it.each([
    ['07:00', '22:00', ['06:59', false], ['07:00', true], ['21:59', true], ['22:00', false]],
    ['22:00', '06:00', ['21:59', false], ['22:00', true], ['00:00', true], ['05:59', true], ['06:00', false]],
    ['08:00', '08:00', ['07:59', true], ['08:00', true]],
  ] as Array<[string, string, ...Array<[string, boolean]>]>)(
    'keep to the hours from %s to %s',
    (from, to, ...cases) => {
      const hours = heartbeat({ activeHours: { from, to }, timeZone: 'UTC' })
      expect(cases.map(([time]) => [time, isActiveHour(hours, Date.parse(`2026-06-01T${time}:00Z`))])).toEqual(cases)
    },
  )

  it.each([
    ['before summer time', '2026-03-28T06:30:00Z', '2026-03-28T07:00:00.000Z'],
    ['on the day it begins', '2026-03-28T22:30:00Z', '2026-03-29T06:00:00.000Z'],
    ['on the day it ends', '2026-10-24T22:30:00Z', '2026-10-25T07:00:00.000Z'],
  ])('follow the clock on the wall %s', (_, after, expected) => {
    const hours = heartbeat({ activeHours: { from: '08:00', to: '22:00' } })
    expect(iso(nextBeat(hours, Date.parse(after)))).toEqual(expected)
  })

  it('never come when the hours contain no time for one', () => {
    const hours = heartbeat({ everyMinutes: 1440, activeHours: { from: '09:00', to: '10:00' }, timeZone: 'UTC' })
    expect(nextBeat(hours, Date.parse('2026-06-01T00:00:00Z'))).toBeUndefined()
  })
})
