/** What a running gateway costs: the time until an agent is started, and memory while nothing happens. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../src/config.js'
import { startGateway } from '../src/gateway.js'
import { createLog } from '../src/log.js'
import { atMost, type BenchOptions, type Measurement } from './measurement.js'

const TURNS = 100
const SPAWN_GOAL_MS = 5
const MEMORY_GOAL_MB = 120
const SETTLE_MS = 3_000
const START_LIMIT_MS = 20_000
const TURN_LIMIT_MS = 10_000

/** Answers at once, in Claude Code's format. */
const AGENT = `#!/bin/sh
cat >/dev/null
echo '{"type":"result","subtype":"success","is_error":false,"result":"hello","session_id":"00000000-0000-4000-8000-000000000000"}'
`

export async function measureGatewayCost({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const home = await mkdtemp(join(tmpdir(), 'gateway-'))
  const agent = join(home, 'agent')
  await writeFile(agent, AGENT, { mode: 0o700 })
  const environment = {
    PATH: process.env['PATH'],
    HOME: home,
    AETHEEL_HOME: home,
    BACKEND_CLI_PATH: agent,
    WORKING_DIR: home,
  }
  try {
    const toSpawn = await measureTimeToSpawn(environment, signal)
    progress(`from the arrival of a message to its agent's process: ${toSpawn.toFixed(2)} ms (median of ${TURNS})`)
    const memory = await measureIdleMemory(environment, signal)
    progress(`an idle gateway with its guardian: ${memory.toFixed(0)} MB`)
    return [
      atMost('gateway.accept-to-spawn.sqlite', toSpawn, SPAWN_GOAL_MS, 'ms'),
      atMost('gateway.idle-memory', memory, MEMORY_GOAL_MB, 'MB'),
    ]
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  }
}

async function measureTimeToSpawn(environment: NodeJS.ProcessEnv, signal: AbortSignal): Promise<number> {
  let replied = (): void => {}
  const gateway = await startGateway(loadConfig(environment), {
    environment,
    log: createLog(),
    channels: [
      {
        name: 'bench',
        start: async () => {},
        send: async () => replied(),
        stop: async () => {},
        close: async () => {},
      },
    ],
  })
  try {
    const { ledger } = gateway.store
    const add = ledger.add.bind(ledger)
    let spawnedAt = 0
    // Called with every process, right after its start.
    ledger.add = (entry) => {
      spawnedAt = performance.now()
      return add(entry)
    }
    const times: number[] = []
    for (let turn = 0; turn < TURNS; turn += 1) {
      signal.throwIfAborted()
      const reply = new Promise<void>((resolve) => {
        replied = resolve
      })
      const startedAt = performance.now()
      const message = { address: `conversation-${turn}`, platformId: `${turn}`, author: 'bench', text: 'hello' }
      await gateway.hostOf('bench').onMessage(message)
      await Promise.race([reply, failAfter(TURN_LIMIT_MS, 'There was no reply')])
      times.push(spawnedAt - startedAt)
    }
    return times.toSorted((a, b) => a - b)[TURNS / 2] ?? Number.NaN
  } finally {
    await gateway.stop()
  }
}

/** Of the built gateway, as operators run it. */
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
