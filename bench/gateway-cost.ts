/** What a running gateway costs: the time until an agent starts, and memory when idle. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { atMost, type BenchOptions, type Measurement } from './measurement.js'

const SPAWN_GOAL_MS = 5
const MEMORY_GOAL_MB = 120
const SETTLE_MS = 3_000
const START_LIMIT_MS = 20_000
const RUN_LIMIT_MS = 120_000

/** Answers at once, in Claude Code's format. */
const AGENT = `#!/bin/sh
cat >/dev/null
echo '{"type":"result","subtype":"success","is_error":false,"result":"hello","session_id":"00000000-0000-4000-8000-000000000000"}'
`

interface SpawnTimes {
  callMs: number
  startMs: number
}

export async function measureGatewayCost({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const home = await mkdtemp(join(tmpdir(), 'gateway-'))
  const agent = join(home, 'agent')
  await writeFile(agent, AGENT, { mode: 0o700 })
  const environment = {
    PATH: process.env['PATH'],
    HOME: home,
    AETHEEL_HOME: home,
    BACKEND_CLI_PATH: agent,
    AGENT_MODE: 'oneshot',
    WORKING_DIR: home,
  }
  try {
    const { callMs, startMs } = await measureTimeToSpawn(environment, signal)
    progress(
      `from a message's arrival to the call that starts its agent ${callMs.toFixed(2)} ms, to its process ${startMs.toFixed(2)} ms`,
    )
    const memory = await measureIdleMemory(environment, signal)
    progress(`an idle gateway with its guardian: ${memory.toFixed(0)} MB`)
    return [
      atMost('gateway.accept-to-spawn.sqlite', callMs, SPAWN_GOAL_MS, 'ms'),
      atMost('gateway.idle-memory', memory, MEMORY_GOAL_MB, 'MB'),
    ]
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  }
}

async function measureTimeToSpawn(environment: NodeJS.ProcessEnv, signal: AbortSignal): Promise<SpawnTimes> {
  const program = join(import.meta.dirname, 'accept-to-spawn.mjs')
  const options = { env: environment, signal, timeout: RUN_LIMIT_MS }
  const { stdout } = await promisify(execFile)(process.execPath, [program], options)
  return JSON.parse(stdout) as SpawnTimes
}

/** Measures the built gateway, as operators run it. */
async function measureIdleMemory(environment: NodeJS.ProcessEnv, signal: AbortSignal): Promise<number> {
  const main = join(import.meta.dirname, '../dist/main.js')
  const gateway = spawn(process.execPath, [main, 'start'], { env: environment, stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    await Promise.race([once(gateway.stdout, 'data'), failAfter(START_LIMIT_MS, 'The gateway did not start')])
    await sleep(SETTLE_MS, undefined, { signal })
    const pids = [gateway.pid ?? 0, ...(await childrenOf(gateway.pid ?? 0))]
    const bytes = await Promise.all(pids.map(residentBytes))
    return bytes.reduce((sum, size) => sum + size, 0) / 1e6
  } finally {
    gateway.kill('SIGTERM')
    await once(gateway, 'exit')
  }
}

async function childrenOf(parent: number): Promise<number[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const parents = await Promise.all(
    names.map(async (name) => {
      const stat = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    }),
  )
  return names.filter((_, index) => parents[index] === parent).map(Number)
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1')
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024
}

async function failAfter(ms: number, problem: string): Promise<never> {
  await sleep(ms, undefined, { ref: false })
  throw new Error(problem)
}
