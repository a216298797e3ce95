import { describe, expect, it } from 'vitest'
import { heartbeatStatus } from '../../src/schedule/heartbeat-status.js'
import { describeEngines, openTestStore } from '../kit/engines.js'
import { heartbeatSettings, HOUR_MS, MINUTE_MS, scheduleConfig, ScheduleStage } from './stage.js'

const START = '2026-06-01T10:00:00Z'
const SLOT = Date.parse(START)

async function setup(heartbeat: object = {}) {
  const store = await openTestStore({ file: ':memory:' })
  const stage = new ScheduleStage(store, scheduleConfig({ everyMinutes: 30, ...heartbeat }), START)
  const scheduler = stage.scheduler()
  return {
    stage,
    scheduler,
    beat: async (at = stage.now) => {
      stage.now = at
      await scheduler.tick(at)
      return stage.lastOutcome()
    },
  }
}

describeEngines('a heartbeat', (engine) => {
  it('is a separate message that wakes the agent in its own session', async () => {
    const stage = new ScheduleStage(await engine.createStore(), scheduleConfig({ everyMinutes: 30 }), START)
    await stage.scheduler().tick(stage.now)
    expect(await stage.messages()).toMatchObject([
      {
        platformId: `heartbeat:${SLOT}`,
        kind: 'heartbeat',
        author: 'heartbeat',
        options: { session: 'own' },
        state: 'open',
      },
    ])
  })

  it('comes once, however many gateways look, and however often', async () => {
    const stage = new ScheduleStage(await engine.createStore(), scheduleConfig({ everyMinutes: 30 }), START)
    const [one, other] = [stage.scheduler(), stage.scheduler()]
    await Promise.all([one.tick(stage.now), other.tick(stage.now), other.tick(stage.now + 5_000)])
    await stage.answerAll()
    await Promise.all([one.tick(stage.now + 10_000), stage.scheduler().tick(stage.now + 10_000)])
    expect([await stage.ids(), await stage.lastOutcome()]).toEqual([[`heartbeat:${SLOT}`], 'begun'])
  })

  it('remembers the outcome of the last one, and forgets old ones', async () => {
    const config = scheduleConfig({ everyMinutes: 30, whenUnchanged: 'run' })
    const stage = new ScheduleStage(await engine.createStore(), config, START)
    await stage.scheduler().tick(stage.now)
    await stage.answerAll('The build is red.')
    const told = await stage.store.heartbeats.last()
    stage.now += 40 * 24 * HOUR_MS
    await stage.scheduler().tick(stage.now)
    await stage.answerAll('HEARTBEAT_OK')
    const quiet = await stage.store.heartbeats.last()
    expect([told?.wasTold, quiet?.wasTold, (await stage.store.heartbeats.list(9)).length]).toEqual([true, false, 1])
  })
})

describe('a heartbeat is skipped', () => {
  it('when its time has passed', async () => {
    const { stage, beat } = await setup()
    expect([await beat(SLOT + MINUTE_MS / 2 + 1), await stage.ids()]).toEqual([undefined, []])
  })

  it.each([
    ['is missing', ''],
    ['has only headings', '# Heartbeat\n\n<!-- nothing yet -->'],
  ])('when heartbeat.md %s', async (_, tasks) => {
    const { stage, beat } = await setup()
    stage.tasks = tasks
    expect([await beat(), await stage.ids()]).toEqual(['no-file', []])
  })

  it('while a message of the conversation waits or is worked on', async () => {
    const { stage, beat } = await setup()
    await stage.write()
    const waiting = await beat()
    const work = await stage.take()
    const working = await beat(SLOT + 30 * MINUTE_MS)
    if (work) await stage.answer(work, 'Hi')
    expect([waiting, working, await beat(SLOT + HOUR_MS)]).toEqual(['busy', 'busy', 'begun'])
  })

  it('outside the active hours', async () => {
    const { beat } = await setup({ activeHours: { from: '11:00', to: '12:00' } })
    expect([await beat(), await beat(SLOT + HOUR_MS), await beat(SLOT + 2 * HOUR_MS)]).toEqual([
      'outside-hours',
      'begun',
      'outside-hours',
    ])
  })

  it('when nothing was found last time and heartbeat.md is unchanged', async () => {
    const { stage, beat } = await setup()
    const outcomes: unknown[] = []
    for (const [at, tasks, answer] of [
      [0, 'Mail', 'You have mail.'],
      [30, 'Mail', 'HEARTBEAT_OK'],
      [60, 'Mail', ''],
      [90, 'Mail and news', 'HEARTBEAT_OK'],
    ] as const) {
      stage.tasks = tasks
      outcomes.push(await beat(SLOT + at * MINUTE_MS))
      await stage.answerAll(answer)
    }
    expect(outcomes).toEqual(['begun', 'begun', 'unchanged', 'begun'])
  })

  it('never as unchanged if the operator turned that off', async () => {
    const { stage, beat } = await setup({ whenUnchanged: 'run' })
    const first = await beat()
    await stage.answerAll()
    expect([first, await beat(SLOT + 30 * MINUTE_MS), (await stage.ids()).length]).toEqual(['begun', 'begun', 2])
  })

  it("when the day's tokens are used up, which is reported once and ends the next day", async () => {
    const { stage, beat } = await setup({ whenUnchanged: 'run', dailyTokens: 1_500, everyMinutes: 60 })
    const outcomes: unknown[] = []
    for (let hour = 0; hour < 15; hour += 1) {
      outcomes.push(await beat(SLOT + hour * HOUR_MS))
      await stage.answerAll('HEARTBEAT_OK', 1_000)
    }
    expect([outcomes, await stage.said()]).toEqual([
      ['begun', 'begun', ...Array<string>(12).fill('budget'), 'begun'],
      [
        'Heartbeats have used 2,000 of 1,500 tokens in 2 turns today, so they pause until 2026-06-02 00:00 (UTC). Set "dailyTokens" to change the limit.',
      ],
    ])
  })

  it("when the day's tokens are used up by estimates for agents that report none", async () => {
    const { stage, beat } = await setup({ whenUnchanged: 'run', dailyTokens: 16_500, everyMinutes: 60 })
    const outcomes: unknown[] = []
    for (let hour = 0; hour < 4; hour += 1) {
      outcomes.push(await beat(SLOT + hour * HOUR_MS))
      await stage.answerAll('HEARTBEAT_OK', hour === 0 ? 1_000 : 'untold')
    }
    expect([outcomes, await stage.said()]).toEqual([
      ['begun', 'begun', 'begun', 'budget'],
      [
        'Heartbeats have used 31,000 of 16,500 tokens in 3 turns (2 reported no usage, estimated at 15,000 each) today, so they pause until 2026-06-02 00:00 (UTC). Set "dailyTokens" to change the limit.',
      ],
    ])
  })

  it('without a channel that can reach its recipient', async () => {
    const { stage } = await setup({ to: '+4915112345678' })
    const scheduler = stage.scheduler(stage.config, ['terminal'])
    await scheduler.tick(SLOT)
    await scheduler.tick(SLOT + 1_000)
    expect([await stage.store.heartbeats.list(1), stage.logged]).toEqual([
      [],
      [['heartbeat.no-target', { problem: expect.stringContaining('This gateway has no channel whatsapp') }]],
    ])
  })

  it('when none is set up', async () => {
    const { stage } = await setup()
    await stage.scheduler(scheduleConfig()).tick(SLOT)
    expect([await stage.lastOutcome(), await stage.ids()]).toEqual([undefined, []])
  })
})

describe('a check before a heartbeat', () => {
  it('that prints nothing leaves the agent asleep', async () => {
    const { stage, beat } = await setup({ probe: ['mail-check', '--new'] })
    expect([await beat(), stage.probed, await stage.ids()]).toEqual(['probe-quiet', [['mail-check', '--new']], []])
  })

  it.each([
    ['prints something', { exitCode: 0, output: '3 new mails\n' }, '3 new mails'],
    ['fails', { exitCode: 2, output: '' }, '[The check ended with exit code 2.]'],
  ])('that %s wakes the agent, which is told about it', async (_, probe, told) => {
    const { stage, beat } = await setup({ probe: ['mail-check'] })
    stage.probe = probe
    const outcome = await beat()
    expect([outcome, (await stage.messages())[0]?.text]).toEqual(['begun', expect.stringContaining(`\n\n${told}`)])
  })

  it('that is missing wakes nobody, which is reported once a day', async () => {
    const { stage, beat } = await setup({ probe: ['mail-check'] })
    stage.probe = { exitCode: 127, output: '', problem: 'mail-check was not found.' }
    const outcomes = [await beat(), await beat(SLOT + 30 * MINUTE_MS), await beat(SLOT + 24 * HOUR_MS)]
    const told = 'The heartbeat check could not be started, so the agent is not woken. mail-check was not found.'
    expect([outcomes, await stage.ids(), await stage.said()]).toEqual([
      ['probe-missing', 'probe-missing', 'probe-missing'],
      [],
      [told, told],
    ])
  })

  it('that prints the same as at a quiet heartbeat wakes nobody', async () => {
    const { stage, beat } = await setup({ probe: ['mail-check'] })
    stage.probe = { exitCode: 0, output: '3 new mails' }
    const first = await beat()
    await stage.answerAll()
    const same = await beat(SLOT + 30 * MINUTE_MS)
    stage.probe = { exitCode: 0, output: '4 new mails' }
    expect([first, same, await beat(SLOT + HOUR_MS)]).toEqual(['begun', 'unchanged', 'begun'])
  })

  it('is run by only one gateway', async () => {
    const { stage, scheduler } = await setup({ probe: ['mail-check'] })
    await Promise.all([scheduler.tick(SLOT), stage.scheduler().tick(SLOT)])
    expect(stage.probed).toHaveLength(1)
  })
})

describe('a heartbeat', () => {
  it('in the session of the conversation does not count as a use of it', async () => {
    const { stage, beat } = await setup({ session: 'shared' })
    await beat()
    expect((await stage.messages())[0]?.options).toEqual({ session: 'idle' })
  })

  it('on WhatsApp is from the person it is for', async () => {
    const { stage, beat } = await setup({ to: 'whatsapp:+4915112345678' })
    await beat()
    expect(await stage.messages('+4915112345678', 'whatsapp')).toMatchObject([
      { author: '+4915112345678', options: { variables: { From: '+4915112345678' } } },
    ])
  })

  it('after a failed one is marked as known to fail, until one succeeds', async () => {
    const { stage, beat } = await setup()
    const known: unknown[] = []
    for (const [at, isFailing] of [
      [0, true],
      [30, true],
      [60, false],
      [90, true],
    ] as const) {
      stage.tasks = `Look ${at}`
      await beat(SLOT + at * MINUTE_MS)
      const work = await stage.take()
      known.push(work?.message.options?.isKnownToFail)
      if (work) await (isFailing ? stage.fail(work) : stage.answer(work, 'HEARTBEAT_OK'))
    }
    expect(known).toEqual([undefined, true, true, undefined])
  })

  it('by hand runs at any hour, and reports any other reason to skip it', async () => {
    const { stage, scheduler } = await setup({ activeHours: { from: '20:00', to: '21:00' } })
    const first = await scheduler.runHeartbeat(false)
    const busy = await scheduler.runHeartbeat(false)
    await stage.answerAll()
    const unchanged = await scheduler.runHeartbeat(false)
    const forced = await scheduler.runHeartbeat(true)
    expect([first, busy, unchanged, forced]).toEqual([
      { status: 'begun', messageId: expect.any(String) },
      { status: 'skipped', reason: 'busy', note: 'The conversation had a message waiting or running.' },
      {
        status: 'skipped',
        reason: 'unchanged',
        note: 'The last heartbeat found nothing, and heartbeat.md has not changed.',
      },
      { status: 'begun', messageId: expect.any(String) },
    ])
  })

  it('by hand is refused if none is set up', async () => {
    const { stage } = await setup()
    await expect(stage.scheduler(scheduleConfig()).runHeartbeat(true)).rejects.toThrow(
      'No heartbeat is set up. Set heartbeat.everyMinutes and heartbeat.to in the configuration file.',
    )
  })

  it('follows changed settings', async () => {
    const { stage, beat } = await setup()
    stage.config.heartbeat = heartbeatSettings({ everyMinutes: 7, to: 'terminal:elsewhere' })
    const slot = Math.ceil(SLOT / (7 * MINUTE_MS)) * 7 * MINUTE_MS
    await beat(slot)
    expect([await stage.ids(), await stage.ids('elsewhere')]).toEqual([[], [`heartbeat:${slot}`]])
  })

  it('that cannot be stored is reported once, and comes when the store is back', async () => {
    const { stage } = await setup()
    const claim = stage.store.heartbeats.claim.bind(stage.store.heartbeats)
    let isAway = true
    stage.store.heartbeats.claim = (...about) => (isAway ? Promise.reject(new Error('away')) : claim(...about))
    const scheduler = stage.scheduler()
    await scheduler.tick(SLOT)
    await scheduler.tick(SLOT + 1_000)
    isAway = false
    await scheduler.tick(SLOT + 2_000)
    expect([stage.logged.filter(([message]) => message === 'schedule.failed').length, await stage.ids()]).toEqual([
      1,
      [`heartbeat:${SLOT}`],
    ])
  })
})

describe('the state of heartbeats', () => {
  it('is off if none is set up', async () => {
    const { stage } = await setup()
    expect(await heartbeatStatus(scheduleConfig(), stage.store, SLOT)).toBeUndefined()
  })

  it("has the last and the next, and today's usage", async () => {
    const { stage, beat } = await setup({ dailyTokens: 5_000 })
    await beat()
    await stage.answerAll('HEARTBEAT_OK', 1_200)
    await beat(SLOT + 30 * MINUTE_MS)
    const status = await heartbeatStatus(stage.config, stage.store, stage.now)
    expect(status).toEqual({
      everyMinutes: 30,
      to: 'terminal:ops',
      timeZone: 'UTC',
      nextAt: SLOT + HOUR_MS,
      latest: {
        id: `heartbeat:${SLOT + 30 * MINUTE_MS}`,
        at: SLOT + 30 * MINUTE_MS,
        outcome: 'unchanged',
        note: 'The last heartbeat found nothing, and heartbeat.md has not changed.',
      },
      last: expect.objectContaining({ at: SLOT, state: 'answered', wasTold: false }),
      today: expect.objectContaining({ turns: 1 }),
      tokensToday: 1_200,
      dailyTokens: 5_000,
    })
  })

  it("has the next one tomorrow when today's tokens are used up", async () => {
    const { stage, beat } = await setup({ dailyTokens: 1_000, activeHours: { from: '08:00', to: '20:00' } })
    await beat()
    await stage.answerAll('HEARTBEAT_OK', 1_000)
    const status = await heartbeatStatus(stage.config, stage.store, stage.now)
    expect(new Date(status?.nextAt ?? 0).toISOString()).toEqual('2026-06-02T08:00:00.000Z')
  })
})
