// A month, or half of it, on a fake clock, with two gateways that end and start again, over the days on which clocks
// change. What should happen is computed here minute by minute, without the code under test.

import { expect, it } from 'vitest'
import type { Scheduler } from '../../src/schedule/scheduler.js'
import type { Store } from '../../src/store/store.js'
import { describeEngines, openTestStore, type TestEngine } from '../kit/engines.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, scheduleConfig, ScheduleStage } from './stage.js'

const BERLIN = 'Europe/Berlin'
const NEW_YORK = 'America/New_York'
const STEP_MS = 15 * MINUTE_MS
const BEAT_TOKENS = 9_000
const DAILY_TOKENS = 100_000

/** `isDue` checks a time of day; an entry for a single time runs exactly once a day and is never skipped. */
interface Job {
  name: string
  schedule: string
  timeZone: string
  catchUp: 'once' | 'skip'
  isDue(local: LocalTime): boolean
  dailyAt?: number
}

const JOBS: Job[] = [
  {
    name: 'nightly',
    schedule: '30 2 * * *',
    timeZone: BERLIN,
    catchUp: 'once',
    isDue: ({ minute }) => minute === 150,
    dailyAt: 150,
  },
  {
    name: 'nightly-there',
    schedule: '30 2 * * *',
    timeZone: NEW_YORK,
    catchUp: 'skip',
    isDue: ({ minute }) => minute === 150,
    dailyAt: 150,
  },
  {
    name: 'at-night',
    schedule: '15 1-3 * * *',
    timeZone: NEW_YORK,
    catchUp: 'skip',
    isDue: ({ minute }) => [75, 135, 195].includes(minute),
  },
  {
    name: 'twice',
    schedule: '0 2,14 * * *',
    timeZone: BERLIN,
    catchUp: 'once',
    isDue: ({ minute }) => [120, 840].includes(minute),
  },
  {
    name: 'work-days',
    schedule: '0 9 * * MON-FRI',
    timeZone: NEW_YORK,
    catchUp: 'once',
    isDue: ({ minute, weekday }) => minute === 540 && !['Sat', 'Sun'].includes(weekday),
  },
]

/** When no gateway was running. One of these gaps is too long to catch up. */
const PAUSES = [
  { afterDays: 2.1, ms: 40_000 },
  { afterDays: 4.05, ms: 3 * HOUR_MS },
  { afterDays: 5.2, ms: 30 * HOUR_MS },
  { afterDays: 7.9, ms: 20 * MINUTE_MS },
  { afterDays: 22.5, ms: 9 * HOUR_MS },
]

interface Season {
  title: string
  start: string
  days: number
  /** The budget is used up on at least this many days. */
  fewestPausedDays: number
}

const MONTH = { days: 31, fewestPausedDays: 21 }
const SPRING: Season = { title: 'a month in spring', start: '2026-03-04T00:00:00Z', ...MONTH }
const AUTUMN: Season = { title: 'a month in autumn', start: '2026-10-08T00:00:00Z', ...MONTH }
const LATE_OCTOBER: Season = {
  title: 'two weeks in autumn',
  start: '2026-10-21T00:00:00Z',
  days: 14,
  fewestPausedDays: 10,
}
/** Months take a while: the days around the two on which the clocks change show most of it. */
const SEASONS = process.env['SCHEDULE_SEASONS'] === 'all' ? [SPRING, AUTUMN] : [LATE_OCTOBER]

describeEngines('what is scheduled', (engine) => {
  it.each(SEASONS)(
    'over $title happens exactly once each time, and stays within the budget',
    async ({ start, days, fewestPausedDays }) => {
      const heartbeat = {
        everyMinutes: 60,
        activeHours: { from: '07:00', to: '23:00' },
        timeZone: BERLIN,
        dailyTokens: DAILY_TOKENS,
        whenUnchanged: 'run',
      }
      const stage = new ScheduleStage(await createStore(engine), scheduleConfig(heartbeat), start)
      const begin = stage.now
      const pauses = PAUSES.map(({ afterDays, ms }) => ({ from: begin + afterDays * DAY_MS, ms }))
      const isPaused = (at: number): boolean => pauses.some(({ from, ms }) => at >= from && at < from + ms)
      const jobs = new Map<Job, string>()
      for (const job of JOBS) {
        const { isDue: _isDue, dailyAt: _dailyAt, ...wish } = job
        jobs.set(job, await stage.add({ ...wish, to: `terminal:${job.name}` }))
      }
      let gateways: Scheduler[] = []
      let wasPaused = true
      const ticks: number[] = []
      const expectedBeats: string[] = []
      const spent = new Map<string, number>()
      const beatClock = localClock(BERLIN)

      for (let time = begin + STEP_MS; time < begin + days * DAY_MS; time += STEP_MS) {
        // Timers are never quite on time.
        stage.now = time + ((time / STEP_MS) % 10) * 1_000
        const isUp = !isPaused(stage.now)
        if (isUp && wasPaused) gateways = [stage.scheduler(), stage.scheduler()]
        wasPaused = !isUp
        if (!isUp) continue
        ticks.push(stage.now)
        // A person writes now and then, just before a beat.
        const isWriting = (time / STEP_MS) % 53 === 0
        if (isWriting) await stage.write()
        const { minute, date } = beatClock(time)
        const spentToday = spent.get(date) ?? 0
        const isActive = minute >= 420 && minute < 1380
        if (time % HOUR_MS === 0 && isActive && !isWriting && spentToday < DAILY_TOKENS) {
          expectedBeats.push(`heartbeat:${time}`)
          spent.set(date, spentToday + BEAT_TOKENS)
        }
        await Promise.all(gateways.map((gateway) => gateway.tick(stage.now)))
        if (stage.hasTaken()) await stage.answerAll('HEARTBEAT_OK', BEAT_TOKENS)
      }

      const beats = (await stage.messages()).filter(({ kind }) => kind === 'heartbeat')
      const done = await Promise.all(JOBS.map(async ({ name }) => [name, await stage.ids(name)] as const))
      const expected = [...jobs].map(([job, id]) => [
        job.name,
        expectedSlots(job, begin, ticks).map((slot) => `cron:${id}:${slot}`),
      ])
      const pausedDays = [...spent.values()].filter((tokens) => tokens >= DAILY_TOKENS).length
      const told = (await stage.said()).filter((text) => text.startsWith('Heartbeats have used'))
      expect([done, beats.map(({ platformId }) => platformId), told.length]).toEqual([
        expected,
        expectedBeats,
        pausedDays,
      ])
      expect([Math.max(...spent.values()) < DAILY_TOKENS + BEAT_TOKENS, pausedDays >= fewestPausedDays]).toEqual([
        true,
        true,
      ])
    },
    300_000,
  )
})

/** In memory if possible: a month is many transactions. */
async function createStore(engine: TestEngine): Promise<Store> {
  return engine.name === 'sqlite' ? openTestStore({ file: ':memory:' }) : engine.createStore()
}

/** Which times of a job are run if it is checked only at these times. */
function expectedSlots(job: Job, begin: number, ticks: number[]): number[] {
  const slots = allSlots(job, begin, (ticks.at(-1) ?? begin) + STEP_MS)
  const done: number[] = []
  let dealtWith = begin
  for (const tick of ticks) {
    const slot = slots.filter((time) => time <= tick).at(-1)
    if (slot === undefined || slot <= dealtWith) continue
    dealtWith = slot
    const lateMs = tick - slot
    if (lateMs <= MINUTE_MS || (job.catchUp === 'once' && lateMs <= DAY_MS)) done.push(slot)
  }
  return done
}

function allSlots({ timeZone, isDue, dailyAt }: Job, begin: number, end: number): number[] {
  const localAt = localClock(timeZone)
  const slots: number[] = []
  const dates = new Set<string>()
  let before = localAt(begin)
  for (let time = begin + STEP_MS; time <= end; time += STEP_MS) {
    const local = localAt(time)
    const isLeapt =
      dailyAt !== undefined && local.date === before.date && before.minute < dailyAt && local.minute > dailyAt
    const isFirst = dailyAt === undefined || !dates.has(local.date)
    if ((isDue(local) || isLeapt) && isFirst) {
      slots.push(time)
      dates.add(local.date)
    }
    before = local
  }
  return slots
}

interface LocalTime {
  date: string
  /** Since midnight, local time. */
  minute: number
  weekday: string
}

function localClock(timeZone: string): (at: number) => LocalTime {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  })
  return (at) => {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
    return {
      date: `${part['year']}-${part['month']}-${part['day']}`,
      minute: Number(part['hour']) * 60 + Number(part['minute']),
      weekday: part['weekday'] ?? '',
    }
  }
}
