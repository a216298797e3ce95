import { describe, expect, it } from 'vitest'
import { describeEngines, openTestStore } from '../kit/engines.js'
import { CHANNELS, HOUR_MS, MINUTE_MS, scheduleConfig, ScheduleStage } from './stage.js'

const START = '2026-06-01T10:00:30Z'
const SLOT = Date.parse('2026-06-01T10:05:00Z')
const EVERY_MS = 5 * MINUTE_MS

async function setup() {
  const stage = new ScheduleStage(await openTestStore({ file: ':memory:' }), scheduleConfig(), START)
  const scheduler = stage.scheduler()
  const tick = async (at: number) => {
    stage.now = at
    await scheduler.tick(at)
  }
  return { stage, scheduler, tick, problem: async () => (await stage.store.cronJobs.list())[0]?.problem }
}

describeEngines('a cron job', (engine) => {
  it('runs once at each of its times, whichever gateway looks', async () => {
    const stage = new ScheduleStage(await engine.createStore(), scheduleConfig(), START)
    const id = await stage.add()
    const gateways = [stage.scheduler(), stage.scheduler()]
    for (const at of [SLOT - 1_000, SLOT, SLOT + 10_000, SLOT + EVERY_MS, SLOT + EVERY_MS + 1_000]) {
      stage.now = at
      await Promise.all([...gateways, stage.scheduler()].map((gateway) => gateway.tick(at)))
      await stage.answerAll('Done')
    }
    expect(await stage.ids()).toEqual([`cron:${id}:${SLOT}`, `cron:${id}:${SLOT + EVERY_MS}`])
  })

  it('is stored completely, and gone when removed', async () => {
    const stage = new ScheduleStage(await engine.createStore(), scheduleConfig(), START)
    const { cronJobs, projects } = stage.store
    await projects.put({ id: 'site', directory: '/srv/site' }, 'api', 1)
    const id = await stage.add({ name: 'a', projectId: 'site', catchUp: 'skip', schedule: ' @daily ' })
    await stage.add({ name: 'b', prompt: '', command: ['make', '-k', "it's"], session: 'shared' })
    const jobs = await cronJobs.list()
    await cronJobs.remove(id)
    const common = { timeZone: 'UTC', channel: 'terminal', address: 'ops', lastSlot: stage.now, createdAt: stage.now }
    expect([jobs, (await cronJobs.list()).map(({ name }) => name)]).toEqual([
      [
        {
          ...common,
          id,
          name: 'a',
          schedule: '@daily',
          work: { prompt: 'Look' },
          projectId: 'site',
          session: 'own',
          catchUp: 'skip',
        },
        {
          ...common,
          id: jobs[1]?.id,
          name: 'b',
          schedule: '*/5 * * * *',
          work: { command: ['make', '-k', "it's"] },
          session: 'shared',
          catchUp: 'once',
        },
      ],
      ['b'],
    ])
  })

  it('is skipped by all gateways once one has skipped it', async () => {
    const stage = new ScheduleStage(await engine.createStore(), scheduleConfig(), START)
    const id = await stage.add()
    const gateways = [stage.scheduler(), stage.scheduler(), stage.scheduler()]
    for (const at of [SLOT, SLOT + EVERY_MS]) {
      stage.now = at
      await Promise.all(gateways.map((gateway) => gateway.tick(at)))
    }
    const skips = stage.logged.filter(([message]) => message === 'cron.skipped')
    expect([await stage.ids(), skips.length]).toEqual([[`cron:${id}:${SLOT}`], 1])
  })
})

describe('a cron job', () => {
  it.each([
    ['a prompt', {}, 'Look', { job: 'job', session: 'own' }],
    ['a prompt in the session of the conversation', { session: 'shared' as const }, 'Look', { job: 'job' }],
    [
      'a command',
      { prompt: '', command: ['make', 'all'] },
      'make all',
      { job: 'job', session: 'own', command: ['make', 'all'] },
    ],
  ])('gives the gateway %s', async (_, wish, text, options) => {
    const { stage, tick } = await setup()
    await stage.add(wish)
    await tick(SLOT)
    expect(await stage.messages()).toMatchObject([{ kind: 'cron', author: 'cron:job', text, options }])
  })

  it('works in its project, not in that of the conversation', async () => {
    const { stage, tick } = await setup()
    for (const id of ['site', 'mine']) {
      await stage.store.projects.put({ id, directory: `/srv/${id}` }, 'api', 1)
    }
    await stage.write()
    const conversation = await stage.store.conversations.find('terminal', 'ops')
    await stage.store.conversations.configure(conversation?.id ?? '', { projectId: 'mine' })
    await stage.add({ projectId: 'site' })
    await tick(SLOT)
    const persons = await stage.take()
    if (persons) await stage.answer(persons, 'Hi')
    const jobs = await stage.take()
    expect([persons?.project?.id, jobs?.project?.id, jobs?.conversation.projectId]).toEqual(['mine', 'site', 'site'])
  })

  it('does not run for times before it was created', async () => {
    const { stage, tick } = await setup()
    await stage.add()
    await tick(stage.now)
    expect(await stage.ids()).toEqual([])
  })

  it.each([
    ['once', 3 * HOUR_MS, true, undefined],
    ['once', 25 * HOUR_MS, false, 'No gateway was running at that time or in the 24 hours after it.'],
    ['skip', 2 * MINUTE_MS, false, 'No gateway was running at that time.'],
    ['skip', 50_000, true, undefined],
  ] as const)('with the rule %s, found after %d ms, is made up for: %s', async (catchUp, lateMs, isDone, problem) => {
    const { stage, tick, problem: problemOf } = await setup()
    const id = await stage.add({ catchUp, schedule: '5 10 1 6 *' })
    await tick(SLOT + lateMs)
    expect([await stage.ids(), await problemOf()]).toEqual([isDone ? [`cron:${id}:${SLOT}`] : [], problem])
  })

  it('runs once after many missed times', async () => {
    const { stage, tick } = await setup()
    const id = await stage.add({ schedule: '0 * * * *' })
    await tick(Date.parse('2026-06-03T10:30:00Z'))
    expect(await stage.ids()).toEqual([`cron:${id}:${Date.parse('2026-06-03T10:00:00Z')}`])
  })

  it('is skipped while its previous run is still in progress, and says so', async () => {
    const { stage, tick, problem } = await setup()
    const id = await stage.add()
    await tick(SLOT)
    await tick(SLOT + EVERY_MS)
    const told = await problem()
    await stage.answerAll('Done')
    await tick(SLOT + 2 * EVERY_MS)
    expect([await stage.ids(), told, await problem(), stage.logged.map(([message]) => message)]).toEqual([
      [`cron:${id}:${SLOT}`, `cron:${id}:${SLOT + 2 * EVERY_MS}`],
      'The previous run had not finished.',
      undefined,
      ['cron.begun', 'cron.skipped', 'cron.begun'],
    ])
  })

  it('runs once even if the gateway ends before recording it', async () => {
    const { stage, tick } = await setup()
    const id = await stage.add()
    const { cronJobs } = stage.store
    const advance = cronJobs.advance.bind(cronJobs)
    cronJobs.advance = () => Promise.reject(new Error('killed'))
    await tick(SLOT)
    cronJobs.advance = advance
    await stage.answerAll('Done')
    await stage.scheduler().tick(SLOT + 10_000)
    const [job] = await cronJobs.list()
    expect([await stage.ids(), job?.lastSlot]).toEqual([[`cron:${id}:${SLOT}`], SLOT])
  })

  it('for a channel that is not served here is left to a gateway that serves it', async () => {
    const { stage } = await setup()
    const id = await stage.add({ to: '+4915112345678' })
    const without = stage.scheduler(stage.config, ['terminal'])
    await without.tick(SLOT)
    await without.tick(SLOT + 1_000)
    const before = await stage.messages('+4915112345678', 'whatsapp')
    await stage.scheduler(stage.config, CHANNELS).tick(SLOT + 2_000)
    const after = await stage.messages('+4915112345678', 'whatsapp')
    expect([before, after.map(({ platformId }) => platformId), stage.logged.map(([message]) => message)]).toEqual([
      [],
      [`cron:${id}:${SLOT}`],
      ['cron.no-channel', 'cron.begun'],
    ])
  })

  it('that the queue refuses says so', async () => {
    const { stage, tick, problem } = await setup()
    await stage.add()
    for (let count = 0; count < 10; count += 1) await stage.write()
    await tick(SLOT)
    expect(await problem()).toEqual(expect.stringContaining('10 messages are already waiting in this conversation'))
  })

  it('that cannot be read does not hold up the others', async () => {
    const { stage, tick } = await setup()
    const id = await stage.add({ name: 'b', to: 'terminal:b' })
    const broken = { name: 'a', timeZone: 'Mars/Base', schedule: '* * * * *' }
    const common = { id: 'x', channel: 'terminal', address: 'a', session: 'own', catchUp: 'once' } as const
    await stage.store.cronJobs.add({ ...broken, ...common, work: { prompt: 'Look' } }, stage.now)
    await tick(SLOT)
    expect([await stage.ids('b'), stage.logged[0]?.[0]]).toEqual([[`cron:${id}:${SLOT}`], 'cron.failed'])
  })

  it('can be run by hand, but not twice at once', async () => {
    const { stage, scheduler } = await setup()
    const id = await stage.add()
    const done = await scheduler.runCronJob('job')
    const again = await scheduler.runCronJob(id.slice(0, 8)).catch(String)
    const unknown = await scheduler.runCronJob('other').catch(String)
    expect([done, await stage.ids(), again, unknown]).toEqual([
      { job: 'job', messageId: expect.any(String) },
      [expect.stringMatching(`^cron:${id}:run:`)],
      'GatewayError: The job job has not finished. Wait, or stop it with /stop.',
      'GatewayError: There is no job other. "aetheel cron list" shows them.',
    ])
  })
})

describe('a new cron job', () => {
  it.each([
    ['a name with spaces', { name: 'my job' }, /"my job" is not a job name\. Use up to 100 letters/],
    ['neither prompt nor command', { prompt: ' ' }, /either a prompt for the agent, as --prompt "…", or a command/],
    ['both', { command: ['make'] }, /either a prompt for the agent/],
    ['a command without an executable', { prompt: '', command: [''] }, /needs an executable/],
    ['a schedule that cannot be read', { schedule: '99 * * * *' }, /Invalid schedule "99 \* \* \* \*"/],
    ['a schedule that never comes', { schedule: '0 0 30 2 *' }, /"0 0 30 2 \*" never runs/],
    ['an unknown time zone', { timeZone: 'Europe/Bonn' }, /Unknown time zone "Europe\/Bonn"/],
    ['nobody to tell', { to: 'ann' }, /"ann" is not a recipient/],
    ['a project that is not there', { projectId: 'nope' }, /There is no project nope/],
    ['a project and the session of the conversation', { projectId: 'a', session: 'shared' as const }, /cannot share/],
  ])('with %s is refused, and nothing is kept', async (_, wish, problem) => {
    const { stage } = await setup()
    await expect(stage.add(wish)).rejects.toThrow(problem)
    expect(await stage.store.cronJobs.list()).toEqual([])
  })

  it('needs a unique name', async () => {
    const { stage } = await setup()
    await stage.add()
    await expect(stage.add()).rejects.toThrow('A job named job already exists.')
    expect(await stage.store.cronJobs.list()).toHaveLength(1)
  })
})
