import { describe, expect, it, onTestFinished } from 'vitest'
import { cronList } from '../../../src/cli/commands/cron.js'
import { heartbeatReport, heartbeatRun } from '../../../src/cli/commands/heartbeat.js'
import { send } from '../../../src/cli/commands/send.js'
import { type Handlers, socketPath } from '../../../src/cli/control/protocol.js'
import { startControlServer } from '../../../src/cli/control/server.js'
import { openTestStore } from '../../kit/engines.js'
import { scheduleConfig, ScheduleStage } from '../../schedule/stage.js'
import { DEMO_AGENT } from '../../kit/agents.js'
import { Terminal } from '../../kit/terminal.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'
import { SILENT_LOG } from '../../kit/log.js'

const START = '2026-06-01T10:00:00Z'
const NO_GATEWAY = 'No gateway is running here. Start one with "aetheel start".\n'

async function setup(heartbeat?: object) {
  const store = await openTestStore({ file: ':memory:' })
  return new ScheduleStage(store, scheduleConfig(heartbeat), START)
}

/** A gateway that gives this answer. */
async function gateway(handlers: Partial<Handlers>): Promise<string> {
  const home = temporaryDirectory()
  const server = await startControlServer(socketPath(home), handlers, SILENT_LOG)
  onTestFinished(() => server.close())
  return home
}

describe('aetheel heartbeat status', () => {
  it('says how to begin if there is none', async () => {
    const { store, config, now } = await setup()
    expect(await heartbeatReport(store, config, { isJson: false, now })).toEqual(
      'Heartbeats are off. Set heartbeat.everyMinutes and heartbeat.to in the configuration file.',
    )
  })

  it("shows the last check and why nothing came of it, the last beat, and today's usage", async () => {
    const stage = await setup({ everyMinutes: 30, dailyTokens: 10_000 })
    await stage.scheduler().tick(stage.now)
    await stage.answerAll('HEARTBEAT_OK', 1_234)
    stage.now += 30 * 60_000
    await stage.scheduler().tick(stage.now)
    stage.now += 60_000
    expect(await heartbeatReport(stage.store, stage.config, { isJson: false, now: stage.now })).toEqual(
      `every         30 minutes
to            terminal:ops
next          once a gateway runs: aetheel start
last check    60 s ago. The last heartbeat found nothing, and heartbeat.md has not changed.
last run      31 min ago, nothing to report
tokens today  1,234 of 10,000 in 1 turn
cost today    not reported by the agent`,
    )
  })

  it('shows why the last beat failed', async () => {
    const stage = await setup({ everyMinutes: 30 })
    await stage.scheduler().tick(stage.now)
    const work = await stage.take()
    if (work) await stage.fail(work)
    const report = await heartbeatReport(stage.store, stage.config, { isJson: false, now: stage.now })
    expect(report).toContain('last run      0 s ago, failed: auth: Not logged in')
  })

  it('has everything as JSON, too', async () => {
    const stage = await setup({ everyMinutes: 30 })
    const report = await heartbeatReport(stage.store, stage.config, { isJson: true, now: stage.now })
    expect(JSON.parse(report)).toMatchObject({ everyMinutes: 30, to: 'terminal:ops', tokensToday: 0 })
  })
})

describe('aetheel heartbeat run', () => {
  it('says that the agent looks', async () => {
    const home = await gateway({ 'heartbeat.run': async () => ({ status: 'begun', messageId: '0123456789' }) })
    expect(await heartbeatRun(home, false)).toEqual('Started a heartbeat, as message 01234567.')
  })

  it('says what speaks against it, and how to have it all the same', async () => {
    const note = 'heartbeat.md is missing or lists nothing to do.'
    const home = await gateway({ 'heartbeat.run': async () => ({ status: 'skipped', reason: 'no-file', note }) })
    await expect(heartbeatRun(home, false)).rejects.toThrow(
      `Started no heartbeat. ${note} To start one anyway, use --force.`,
    )
  })
})

describe('aetheel cron list', () => {
  const options = { limit: 50, isJson: false, width: 200 }

  it('says how to begin if there are none', async () => {
    const { store, now } = await setup()
    expect(await cronList(store, { ...options, now })).toEqual('There are no jobs. "aetheel cron add" adds one.')
  })

  it('shows when each comes, and what became of the last time', async () => {
    const stage = await setup()
    await stage.add({ name: 'mail', timeZone: 'Europe/Berlin', schedule: '0 9 * * *' })
    await stage.add({ name: 'slow', prompt: '', command: ['make', '-k'] })
    stage.now += 5 * 60_000
    await stage.scheduler().tick(stage.now)
    stage.now += 5 * 60_000
    await stage.scheduler().tick(stage.now)
    const working = await cronList(stage.store, { ...options, now: stage.now })
    await stage.answerAll('Done')
    const afterwards = await cronList(stage.store, { ...options, now: stage.now + 60_000 })
    expect([working, afterwards].map((text) => text.replaceAll(/^[0-9a-f]{8}/gm, 'xxxxxxxx'))).toEqual([
      `ID        NAME  SCHEDULE     NEXT                              TO            LAST     WORK
xxxxxxxx  mail  0 9 * * *    2026-06-02 09:00 (Europe/Berlin)  terminal:ops  never    Look
xxxxxxxx  slow  */5 * * * *  2026-06-01 10:15 (UTC)            terminal:ops  running  $ make -k`,
      `ID        NAME  SCHEDULE     NEXT                              TO            LAST                                      WORK
xxxxxxxx  mail  0 9 * * *    2026-06-02 09:00 (Europe/Berlin)  terminal:ops  never                                     Look
xxxxxxxx  slow  */5 * * * *  2026-06-01 10:15 (UTC)            terminal:ops  60 s ago, skipped: The previous run had…  $ make -k`,
    ])
  })
})

it('aetheel cron list shows with which code a command has ended', async () => {
  const stage = await setup()
  await stage.add({ name: 'slow', prompt: '', command: ['make', '-k'] })
  stage.now += 5 * 60_000
  await stage.scheduler().tick(stage.now)
  const work = await stage.take()
  const [run] = await stage.store.runs.ofMessage(work?.message.id ?? '')
  if (!work || !run) throw new Error('The job was not begun')
  const result = { isError: true, exitCode: 3, durationMs: 1 }
  await stage.queue.settle(work, { kind: 'answered', run: { id: run.id, result } })
  const list = await cronList(stage.store, { limit: 50, isJson: false, width: 200, now: stage.now + 60_000 })
  expect(list).toContain('60 s ago, exit code 3')
})

describe('aetheel send', () => {
  it('gives it to the gateway', async () => {
    const asked: unknown[] = []
    const home = await gateway({
      send: async (message) => {
        asked.push(message)
        return { channel: 'whatsapp', address: '+4915112345678' }
      },
    })
    expect([await send(home, '+49 151 12345678', 'Hello'), asked]).toEqual([
      'On its way to whatsapp:+4915112345678. "aetheel queue list" shows it if it cannot be delivered.',
      [{ to: '+49 151 12345678', text: 'Hello' }],
    ])
  })
})

describe.concurrent('the command line', () => {
  it.for([
    [['send', '--to', '+4915112345678', ' '], 'Say what to send: aetheel send --to whatsapp:+4915112345678 "…"\n'],
    [['send', '--to', 'whatsapp:0151', 'Hello'], /"0151" is not a phone number in international format/],
    [['send', '--to', 'fax:1', 'Hello'], /Unknown channel "fax"/],
    [['send', '--to', '+4915112345678', 'Hello'], NO_GATEWAY],
    [['heartbeat', 'run'], NO_GATEWAY],
    [['cron', 'run', 'mail'], NO_GATEWAY],
    [['cron', 'rm', 'mail'], 'There is no job mail. "aetheel cron list" shows them.\n'],
    [['cron', 'add', 'mail', '61 * * * *', '--to', 'terminal:default', '--prompt', 'Look'], /Invalid schedule "61/],
  ] as Array<[string[], string | RegExp]>)('of %j says what is wrong', async ([args, problem], test) => {
    const terminal = new Terminal(test)
    const { exitCode, stdout, stderr } = await terminal.run(args)
    const isSaid = typeof problem === 'string' ? stderr === problem : problem.test(stderr)
    expect([exitCode, stdout, isSaid ? '' : stderr]).toEqual([1, '', ''])
  })

  it('keeps a cron job without a gateway, and a gateway does it', async ({ expect, onTestFinished }) => {
    const terminal = new Terminal({ onTestFinished })
    const where = ['--to', 'terminal:default', '--zone', 'Europe/Berlin']
    const added = await terminal.run(['cron', 'add', 'list', '0 9 1 1 *', ...where, '--', 'ls', '-a', '/nowhere'])
    const running = await terminal.startGateway({ BACKEND_CLI_PATH: DEMO_AGENT })
    const done = await terminal.run(['cron', 'run', 'list'])
    const sent = await terminal.run(['send', '--to', 'terminal:default', 'Hello'])
    await expect
      .poll(async () => (await terminal.run(['search', 'exit', 'code'])).stdout, { interval: 200 })
      .toContain('exit code 2')
    const jobs = JSON.parse((await terminal.run(['cron', '--json'])).stdout) as object[]
    const status = await terminal.run(['heartbeat'])
    const removed = await terminal.run(['cron', 'rm', 'list'])
    running.kill('SIGTERM')
    await running.exited
    expect([added.stdout, done.stdout, sent.exitCode, jobs, status.stdout, removed.stdout]).toEqual([
      expect.stringMatching(/^Added the job list\. It runs next at \d{4}-01-01 09:00 \(Europe\/Berlin\)\.\n$/),
      expect.stringMatching(/^Started the job list, as message [0-9a-f]{8}\.\n$/),
      0,
      [expect.objectContaining({ work: { command: ['ls', '-a', '/nowhere'] }, lastState: 'answered' })],
      'Heartbeats are off. Set heartbeat.everyMinutes and heartbeat.to in the configuration file.\n',
      'Removed the job list.\n',
    ])
  })
})
