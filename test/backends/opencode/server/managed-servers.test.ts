import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'vitest'
import { OpenCodeBackend } from '../../../../src/backends/opencode/backend.js'
import {
  MANAGED_LIMITS,
  ManagedServers,
  type ManagedLimits,
} from '../../../../src/backends/opencode/server/managed-servers.js'
import type { ServerLease, ServerNeeds } from '../../../../src/backends/opencode/server/servers.js'
import { createScrubber } from '../../../../src/credentials/scrubber.js'
import type { ProcessOwner, StartedProcess } from '../../../../src/processes/process-owner.js'
import { endLivingProcesses, livingProcesses } from '../../../kit/living-processes.js'
import { until } from '../../../kit/waiting.js'
import { createStage } from '../../fake-cli.js'
import { adapterConfig } from '../../../kit/adapter-config.js'
import { agentPath } from '../../../kit/agents.js'

const EXECUTABLE = agentPath('serving-opencode.mjs')
const NEVER = new AbortController().signal

describe.concurrent('a managed OpenCode server', () => {
  it('is started on loopback with a password that no argument shows, away from any project', async ({
    expect,
    onTestFinished,
  }) => {
    const { servers, starts, healthOf } = setup(onTestFinished, {
      environment: { OPENCODE_SERVER_USERNAME: 'somebody' },
    })
    const { endpoint } = await servers.acquire(needs(), NEVER)
    const { argv, cwd, environment } = onlyOne(starts())
    const port = new URL(endpoint.url).port
    expect([argv, cwd, environment['PWD'], endpoint.username, environment['OPENCODE_DISABLE_AUTOUPDATE']]).toEqual([
      ['serve', '--hostname', '127.0.0.1', '--port', port],
      '/',
      '/',
      'opencode',
      '1',
    ])
    expect(environment['OPENCODE_SERVER_PASSWORD']).toEqual(endpoint.password)
    expect(endpoint.password).toMatch(/^[\w-]{43}$/)
    expect(await healthOf(endpoint)).toMatchObject({ healthy: true })
    expect((await fetch(`${endpoint.url}/global/health`)).status).toBe(401)
  })

  it('is shared by runs with the same needs, even simultaneous ones, and has another password each time', async ({
    expect,
    onTestFinished,
  }) => {
    const { servers, starts } = setup(onTestFinished)
    const leases = await Promise.all([1, 2, 3].map(() => servers.acquire(needs(), NEVER)))
    const untrusted = await servers.acquire(needs({ isUntrusted: true }), NEVER)
    const withToken = await servers.acquire(needs({ environment: { TOKEN: 'one' } }), NEVER)
    const withOther = await servers.acquire(needs({ environment: { TOKEN: 'other' } }), NEVER)
    const again = await servers.acquire(needs({ environment: { TOKEN: 'one' } }), NEVER)
    expect(starts().length).toBe(4)
    expect(new Set(leases.map(({ endpoint }) => endpoint.url)).size).toBe(1)
    expect(again.endpoint).toEqual(withToken.endpoint)
    const distinct = [leases[0], untrusted, withToken, withOther].map((lease) => lease?.endpoint.password)
    expect(new Set(distinct).size).toBe(4)
  })

  it('has what its runs need, and the switches against an untrusted project only if needed', async ({
    expect,
    onTestFinished,
  }) => {
    const { servers, starts } = setup(onTestFinished, {
      environment: { OPENCODE_CONFIG_CONTENT: '{"theme":"dark"}', DATABASE_URL: 'secret' },
    })
    const secretFiles = [{ variable: 'KEY_FILE', content: 'the key' }]
    await servers.acquire(needs({ environment: { TOKEN: 'one' }, secretFiles, isUntrusted: true }), NEVER)
    const { environment } = onlyOne(starts())
    const file = environment['KEY_FILE'] ?? ''
    expect(environment).toMatchObject({
      TOKEN: 'one',
      OPENCODE_DISABLE_PROJECT_CONFIG: '1',
      OPENCODE_DISABLE_EXTERNAL_SKILLS: '1',
      OPENCODE_CONFIG_CONTENT: JSON.stringify({ theme: 'dark', lsp: false, formatter: false }),
      GIT_CONFIG_KEY_1: 'core.hooksPath',
    })
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual(['the key', 0o600])
    expect(environment['DATABASE_URL']).toBeUndefined()
    await servers.stop()
    expect(existsSync(file)).toBe(false)

    const trusted = setup(onTestFinished)
    await trusted.servers.acquire(needs(), NEVER)
    const [plain] = trusted.starts()
    expect(plain?.environment['OPENCODE_DISABLE_PROJECT_CONFIG']).toBeUndefined()
    expect(plain?.environment['GIT_CONFIG_KEY_1']).toBeUndefined()
  })

  it('takes another port if the first one was taken in the meantime', async ({ expect, onTestFinished }) => {
    const { servers, starts, tell, healthOf } = setup(onTestFinished)
    tell('mode', 'waits')
    const acquired = servers.acquire(needs(), NEVER)
    const [first] = await until(() => starts().length > 0 && starts(), 'the first start')
    const port = Number(first?.argv.at(-1))
    const other = createServer()
    onTestFinished(() => void other.close())
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve))
    tell('go', '')
    const { endpoint } = await acquired
    expect(new URL(endpoint.url).port).not.toBe(String(port))
    expect([await healthOf(endpoint), starts().length]).toMatchObject([{ healthy: true }, 2])
  })

  it('that exits at its start is reported with its last output, without the password, and once', async ({
    expect,
    onTestFinished,
  }) => {
    const { servers, starts, tell, alive, runDirectories } = setup(onTestFinished)
    tell('mode', 'exits')
    await expect(servers.acquire(needs(), NEVER)).rejects.toThrow(
      'The OpenCode server did not start: it ended with exit code 1. Its last output: Error: Configuration is invalid, password [secret]. Start "opencode serve" by hand',
    )
    expect([starts().length, alive(), runDirectories()]).toEqual([1, [], []])
  })

  it('that is never ready is ended after a while', async ({ expect, onTestFinished }) => {
    const { servers, tell, alive } = setup(onTestFinished, { limits: { startTimeoutMs: 1_500 } })
    tell('mode', 'silent')
    await expect(servers.acquire(needs(), NEVER)).rejects.toThrow('it was not ready within 1.5 s')
    expect(alive()).toEqual([])
  })

  it('that is not installed is reported with what to do', async ({ expect, onTestFinished }) => {
    const { servers } = setup(onTestFinished, { cliPath: '/no/such/opencode' })
    await expect(servers.acquire(needs(), NEVER)).rejects.toThrow('OpenCode CLI "/no/such/opencode" was not found.')
    expect(await servers.probe()).toMatchObject({ isFound: false })
  })

  it('that died is restarted for the next run', async ({ expect, onTestFinished }) => {
    const { servers, starts, call, log } = setup(onTestFinished)
    const dead = await servers.acquire(needs(), NEVER)
    await call(dead, '/crash').catch(() => {})
    await until(() => log.includes('opencode-server.died'), 'its death')
    await dead.release('untidy')
    const next = await servers.acquire(needs(), NEVER)
    expect([await call(next, '/global/health'), starts().length]).toMatchObject([{ healthy: true }, 2])
  })

  it('that died is not used while its tools are being ended', async ({ expect, onTestFinished }) => {
    const { servers, starts, call } = setup(onTestFinished)
    const dead = await servers.acquire(needs(), NEVER)
    await call(dead, '/stubborn-tool')
    const { pid } = onlyOne(starts())
    await call(dead, '/crash').catch(() => {})
    await until(() => !isThere(pid), 'its death')
    const next = await servers.acquire(needs(), NEVER)
    expect([await call(next, '/global/health'), starts().length]).toMatchObject([{ healthy: true }, 2])
  })

  it('waits longer each time it dies at once', async ({ expect, onTestFinished }) => {
    const { servers, tell } = setup(onTestFinished)
    tell('mode', 'exits')
    const took: number[] = []
    for (let start = 0; start < 3; start += 1) {
      const startedAt = performance.now()
      await servers.acquire(needs(), NEVER).catch(() => {})
      took.push(performance.now() - startedAt)
    }
    expect([(took[1] ?? 0) >= 450, (took[2] ?? 0) >= 950]).toEqual([true, true])
  })

  it('is ended when nobody has used it for a while, and not before', async ({ expect, onTestFinished }) => {
    const { servers, alive, log, call } = setup(onTestFinished, { limits: { idleMs: 50 } })
    const [one, other] = [await servers.acquire(needs(), NEVER), await servers.acquire(needs(), NEVER)]
    await one.release('untidy')
    // Releasing twice counts once.
    await one.release('untidy')
    await call(other, '/tool')
    expect(alive().length).toBe(2)
    await other.release('untidy')
    await until(() => log.includes('opencode-server.ended'), 'its end')
    expect(alive()).toEqual([])
  })

  it('loses what tools left behind as soon as it is idle, and keeps its MCP servers', async ({
    expect,
    onTestFinished,
  }) => {
    const { servers, alive, call } = setup(onTestFinished)
    const [one, other] = [await servers.acquire(needs(), NEVER), await servers.acquire(needs(), NEVER)]
    await call(one, '/tool')
    await call(one, '/mcp')
    await one.release('untidy')
    const whileUsed = alive().length
    await other.release('nothing')
    expect([whileUsed, alive().length]).toEqual([3, 2])
    const next = await servers.acquire(needs(), NEVER)
    expect(await call(next, '/global/health')).toMatchObject({ healthy: true })
  })

  it('makes room for another when idle, the least recently used first', async ({ expect, onTestFinished }) => {
    const { servers, alive } = setup(onTestFinished, { limits: { maxServers: 2 } })
    const [first, second] = [await acquire(servers, 'first'), await acquire(servers, 'second')]
    await first.release('untidy')
    await second.release('untidy')
    await (await acquire(servers, 'first')).release('untidy')
    const pids = alive()
    const third = await acquire(servers, 'third')
    expect(alive().length).toBe(2)
    const again = await acquire(servers, 'first')
    expect(again.endpoint).toEqual(first.endpoint)
    expect(alive().filter((pid) => pids.includes(pid)).length).toBe(1)
    expect(third.endpoint.url).not.toBe(first.endpoint.url)
  })

  it('is waited for if all are busy, until one is released or the run is cancelled', async ({
    expect,
    onTestFinished,
  }) => {
    const { servers, starts } = setup(onTestFinished, { limits: { maxServers: 1 } })
    const busy = await acquire(servers, 'first')
    const cancel = new AbortController()
    const cancelled = servers.acquire(needs({ environment: { TOKEN: 'second' } }), cancel.signal)
    const waiting = acquire(servers, 'third')
    cancel.abort(new Error('Cancelled'))
    await expect(cancelled).rejects.toThrow('Cancelled')
    expect(starts().length).toBe(1)
    await busy.release('untidy')
    expect((await waiting).endpoint.url).not.toBe(busy.endpoint.url)
  })

  it('keeps starting for others when a waiting run leaves', async ({ expect, onTestFinished }) => {
    const { servers, starts, tell } = setup(onTestFinished)
    tell('mode', 'waits')
    const cancel = new AbortController()
    const leaving = servers.acquire(needs(), cancel.signal)
    const other = servers.acquire(needs(), NEVER)
    await until(() => starts().length > 0, 'the start')
    cancel.abort(new Error('Cancelled'))
    await expect(leaving).rejects.toThrow('Cancelled')
    tell('go', '')
    expect([(await other).endpoint.username, starts().length]).toEqual(['opencode', 1])
  })

  it('is ended if it no longer answers, and the next run gets another', async ({ expect, onTestFinished }) => {
    const { servers, starts, healthOf, alive, log } = setup(onTestFinished)
    const [one, other] = [await acquire(servers, 'first'), await acquire(servers, 'first')]
    // The run is mistaken: the server still answers.
    await other.release('broken')
    const same = await acquire(servers, 'first')
    const { pid } = onlyOne(starts())
    process.kill(pid, 'SIGSTOP')
    await one.release('broken')
    const next = await acquire(servers, 'first')
    expect([same.endpoint.url, next.endpoint.password === one.endpoint.password]).toEqual([one.endpoint.url, false])
    expect([await healthOf(next.endpoint), alive()]).toMatchObject([{ healthy: true }, [starts()[1]?.pid]])
    expect(log).toContain('opencode-server.hung')
  })

  it('leaves nothing behind when stopped: no tool, no file, nothing on record', async ({ expect, onTestFinished }) => {
    const { servers, alive, call, record, runDirectories, tell, starts } = setup(onTestFinished)
    await call(await acquire(servers, 'first'), '/tool')
    expect([alive().length, record.size, runDirectories().length]).toEqual([2, 1, 1])
    tell('mode', 'silent')
    const starting = acquire(servers, 'second')
    await until(() => starts().length === 2, 'the second start')
    await Promise.all([servers.stop(), expect(starting).rejects.toThrow('The OpenCode servers are being stopped.')])
    expect([alive(), record.size, runDirectories()]).toEqual([[], 0, []])
    await expect(acquire(servers, 'first')).rejects.toThrow('The OpenCode servers are being stopped.')
  })
})

interface Options {
  cliPath?: string
  environment?: NodeJS.ProcessEnv
  limits?: Partial<ManagedLimits>
}

interface Start {
  pid: number
  argv: string[]
  cwd: string
  environment: Record<string, string>
}

function setup(
  onTestFinished: TestContext['onTestFinished'],
  { cliPath = EXECUTABLE, environment, limits }: Options = {},
) {
  const stage = createStage(onTestFinished)
  const log: string[] = []
  const note = (message: string): void => void log.push(message)
  const logger = { debug: note, info: note, warn: note, error: note }
  const record = new Map<string, StartedProcess>()
  const owner: ProcessOwner = {
    id: `managed-${stage.home.split('-').at(-1)?.split('/')[0]}`,
    started: async (process) => void record.set(process.runId, process),
    ended: async (runId) => void record.delete(runId),
  }
  const cli = new OpenCodeBackend(adapterConfig({ cliPath, workingDir: stage.workingDir }), {
    environment: { PATH: process.env['PATH'], HOME: stage.home, OPENCODE_FAKE_DIRECTORY: stage.home, ...environment },
    log: logger,
  })
  const servers = new ManagedServers({
    cli: () => cli,
    owner,
    scrubber: createScrubber(),
    log: logger,
    limits: { ...MANAGED_LIMITS, ...limits },
  })
  onTestFinished(async () => {
    await servers.stop()
    endLivingProcesses(stage.home)
  })
  const call = async ({ endpoint: { url, username, password } }: Pick<ServerLease, 'endpoint'>, path: string) => {
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const response = await fetch(`${url}${path}`, { headers: { authorization } })
    const answer: unknown = await response.json()
    return answer
  }
  return {
    servers,
    log,
    record,
    call,
    healthOf: (endpoint: ServerLease['endpoint']) => call({ endpoint }, '/global/health'),
    tell: (name: string, content: string) => writeFileSync(join(stage.home, name), content),
    alive: () => livingProcesses(stage.home).map(({ pid }) => pid),
    runDirectories: () => readdirSync(tmpdir()).filter((name) => name.includes(owner.id)),
    starts(): Start[] {
      const file = join(stage.home, 'starts')
      if (!existsSync(file)) return []
      const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
      return lines.map((line) => JSON.parse(line) as Start)
    },
  }
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function onlyOne(starts: Start[]): Start {
  const [start, ...others] = starts
  if (!start || others.length > 0) throw new Error(`There were ${starts.length} starts`)
  return start
}

function needs(given: Partial<ServerNeeds> = {}): ServerNeeds {
  return { environment: {}, secretFiles: [], isUntrusted: false, ...given }
}

function acquire(servers: ManagedServers, token: string): Promise<ServerLease> {
  return servers.acquire(needs({ environment: { TOKEN: token } }), NEVER)
}
