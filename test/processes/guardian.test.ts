// A small gateway in its own process is killed; what it started must not survive.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'vitest'
import { startGuardian } from '../../src/processes/guardian.js'
import { AgentScript } from '../contract/agent-script.js'
import { agentPath } from '../kit/agents.js'
import { livingProcesses } from '../kit/living-processes.js'
import { processDirectory } from '../kit/temporary-directory.js'
import { recordingLog, SILENT_LOG } from '../kit/log.js'
import { until } from '../kit/waiting.js'

const WITHIN_10_SECONDS = { timeout: 10_000 }

describe.concurrent('a gateway that is killed', () => {
  it('leaves none of its agents and no guardian, and the agents of others alone', async ({
    expect,
    onTestFinished,
  }) => {
    const [killed, other] = [setup(onTestFinished), setup(onTestFinished)]
    for (const { startGateway, prompt } of [killed, other]) startGateway(START_AGENT, prompt)
    await Promise.all([killed.ready(), other.ready()])
    const before = [killed.alive(), other.alive()]
    killed.kill()
    await expect.poll(() => [killed.alive(), killed.guardians()], WITHIN_10_SECONDS).toEqual([0, []])
    expect([before, other.alive(), other.guardians().length]).toEqual([[6, 6], 6, 1])
  })

  it('leaves no agent that was just started and is not yet recorded', async ({ expect, onTestFinished }) => {
    const { startGateway, alive, kill } = setup(onTestFinished)
    startGateway(`
      startAgent({ executable: '/bin/sleep', args: ['1000'], owner: { ...owner, started: () => new Promise(() => {}) } })
    `)
    await expect.poll(alive, WITHIN_10_SECONDS).toEqual(1)
    kill()
    await expect.poll(alive, WITHIN_10_SECONDS).toEqual(0)
  })

  it('leaves nothing behind, even if its guardian was told to stop as well, before and after', async ({
    expect,
    onTestFinished,
  }) => {
    const { startGateway, prompt, ready, alive, guardians, kill } = setup(onTestFinished)
    startGateway(START_AGENT, prompt)
    await ready()
    const [guardian = 0] = guardians()
    for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.kill(-guardian, signal)
    kill()
    // The sweep gets the signal too.
    await expect.poll(() => guardians().length, { interval: 2 }).toEqual(2)
    process.kill(-guardian, 'SIGTERM')
    await expect.poll(() => [alive(), guardians()], WITHIN_10_SECONDS).toEqual([0, []])
  })

  it('has its output closed at once', async ({ expect, onTestFinished }) => {
    const { startGateway, prompt, ready, kill } = setup(onTestFinished)
    const gateway = startGateway(START_AGENT, prompt)
    const closed = once(gateway, 'close')
    await ready()
    kill()
    expect(await closed).toEqual([null, 'SIGKILL'])
  })
})

describe.concurrent('a gateway that stops cleanly', () => {
  it('ends its guardian, and only that', async ({ expect, onTestFinished }) => {
    const { startGateway, guardians, alive } = setup(onTestFinished)
    const gateway = startGateway(`
      startAgent({ executable: '/bin/sleep', args: ['1000'] })
      await Promise.all([guardian.stop(), guardian.stop()])
      console.log('stopped')
      process.exit(3)
    `)
    const [stdout, [code]] = await Promise.all([textOf(gateway), once(gateway, 'close')])
    expect([stdout, code, guardians(), alive()]).toEqual(['stopped\n', 3, [], 1])
  })

  it('is not kept alive by its guardian, which then exits', async ({ expect, onTestFinished }) => {
    const { startGateway, guardians } = setup(onTestFinished)
    const gateway = startGateway(`console.log('done')`)
    expect([await textOf(gateway), gateway.signalCode]).toEqual(['done\n', null])
    await expect.poll(guardians, WITHIN_10_SECONDS).toEqual([])
  })
})

describe.concurrent('a guardian', () => {
  it('that dies unexpectedly is replaced, and reported', async ({ expect, onTestFinished }) => {
    const { ownerId, guardians } = setup(onTestFinished)
    const log = recordingLog()
    const guardian = startGuardian(ownerId, log)
    onTestFinished(guardian.stop)
    const pids: number[] = []
    for (let death = 0; death < 2; death += 1) {
      await expect.poll(() => guardians().filter((pid) => !pids.includes(pid)), WITHIN_10_SECONDS).toHaveLength(1)
      pids.push(...guardians())
      process.kill(pids.at(-1) ?? 0, 'SIGKILL')
    }
    await expect.poll(() => guardians().filter((pid) => !pids.includes(pid)), WITHIN_10_SECONDS).toHaveLength(1)
    await guardian.stop()
    const died = (pid: number | undefined, restartInMs: number) => [
      'guardian.died',
      { pid, code: null, signal: 'SIGKILL', restartInMs },
    ]
    expect([log.warnings, guardians()]).toEqual([[died(pids[0], 0), died(pids[1], 100)], []])
  })

  it('is a separate process: own session, own directory, almost no environment', async ({ expect, onTestFinished }) => {
    const { ownerId, guardians } = setup(onTestFinished)
    const guardian = startGuardian(ownerId, SILENT_LOG)
    onTestFinished(guardian.stop)
    await expect.poll(guardians, WITHIN_10_SECONDS).toHaveLength(1)
    const [pid] = guardians()
    const seen = {
      environment: readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean),
      directory: realpathSync(`/proc/${pid}/cwd`),
      isLeaderOfSession: readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[5] === String(pid),
    }
    expect(seen).toEqual({
      environment: [expect.stringMatching(/^PATH=/), expect.stringMatching(/^TMPDIR=/)],
      directory: '/',
      isLeaderOfSession: true,
    })
  })
})

const START_AGENT = `startAgent({ executable: ${JSON.stringify(agentPath('fake-agent.sh'))}, args: [] })`

const GATEWAY = `
  import { startGuardian } from ${moduleName('guardian')}
  import { startProcess } from ${moduleName('local-process')}
  const [ownerId, directory, stdin] = JSON.parse(process.argv[1])
  const guardian = startGuardian(ownerId, { debug() {}, info() {}, warn: console.log, error() {} })
  const owner = { id: ownerId, started: async () => {}, ended: async () => {} }
  const startAgent = (options) =>
    startProcess({
      cwd: directory,
      environment: { PATH: '/usr/bin:/bin' },
      stdin,
      runId: 'run-of-' + ownerId,
      owner,
      stopSignal: 'SIGTERM',
      onStdout() {},
      onStderr() {},
      ...options,
    })
`

function setup(onTestFinished: TestContext['onTestFinished']) {
  const directory = processDirectory(onTestFinished)
  const ownerId = `owner-${directory.split('-').at(-1)}`
  let gateway: ChildProcess | undefined
  const kill = () => gateway?.kill('SIGKILL')
  const guardians = () => processesAbout(ownerId)
  onTestFinished(() => {
    kill()
    for (const pid of guardians()) process.kill(pid, 'SIGKILL')
  })
  return {
    ownerId,
    guardians,
    kill,
    /** An agent with tools that hide and, like itself, ignore polite signals. */
    prompt: new AgentScript('claude', directory).prompt([
      { ignoreSignals: ['SIGINT', 'SIGTERM'] },
      { descendant: 'child' },
      { descendant: 'own-session' },
      { descendant: 'orphan' },
      { descendant: 'own-session-no-environment' },
      { descendant: 'holds-output' },
      { touch: 'ready' },
      { hang: true },
    ]),
    startGateway(script: string, prompt = '') {
      const argument = JSON.stringify([ownerId, directory, prompt])
      const options = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', GATEWAY + script]
      const child = spawn(process.execPath, [...options, argument], {
        cwd: '/',
        env: { PATH: process.env['PATH'] },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      gateway = child
      return child
    },
    ready: () => until(() => existsSync(join(directory, 'ready')), 'the agent'),
    alive: () => livingProcesses(directory).length,
  }
}

/** The guardian of that owner, and its sweep. */
function processesAbout(ownerId: string): number[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').at(-2) === ownerId ? [Number(pid)] : []
    } catch {
      return [] // It has ended since it was listed.
    }
  })
}

function moduleName(name: string): string {
  return JSON.stringify(new URL(`../../src/processes/${name}.ts`, import.meta.url).href)
}

async function textOf({ stdout }: ChildProcess): Promise<string> {
  return stdout ? text(stdout) : ''
}
