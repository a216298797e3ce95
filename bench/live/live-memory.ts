/** The memory of five idle conversations: the bare CLI, kept warm, and the same under a gateway, including the gateway
 *  itself. */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Agent } from '../../conformance/agents.js'
import { findPinned } from '../../conformance/installations.js'
import { createSandbox, type Sandbox } from '../../conformance/sandbox.js'
import { atMost, type BenchOptions, type Measurement, rounded } from '../measurement.js'
import { bareSides } from './bare-sides.js'
import { environmentOf } from './own-sides.js'
import { PROMPT } from './script.js'
import { openSide, type SidePlace } from './side.js'
import { measureEach } from './turn-about.js'

const CONVERSATIONS = 5
const GOAL_MB = 100
const SETTLE_MS = 3_000

type Place = Omit<SidePlace, 'sandbox'>

export function measureLiveMemory(options: BenchOptions): Promise<Measurement[]> {
  return measureEach(options, measureAgent)
}

async function measureAgent(agent: Agent, modelUrl: string, options: BenchOptions): Promise<Measurement[]> {
  const { signal, progress } = options
  const place = { agent, installation: await findPinned(agent), signal }
  const bare = await bareMb(modelUrl, place)
  const gateway = await gatewayMb(modelUrl, place)
  const figures = { memoryMb: { bare: rounded(bare), gateway: rounded(gateway) } }
  progress(`${CONVERSATIONS} idle conversations of ${agent.name}: ${JSON.stringify(figures)}`)
  return [{ ...atMost(`live-memory.${agent.name}`, gateway - bare, GOAL_MB, 'MB added'), figures }]
}

async function bareMb(modelUrl: string, place: Place): Promise<number> {
  const side = await openSide(bareSides[place.agent.name], modelUrl, place)
  try {
    for (let count = 0; count < CONVERSATIONS; count += 1) await (await side.open()).say(PROMPT)
    await sleep(SETTLE_MS, undefined, { signal: place.signal })
    return await memoryIn(side.sandbox)
  } finally {
    await side.close()
  }
}

async function gatewayMb(modelUrl: string, place: Place): Promise<number> {
  const { agent, installation, signal } = place
  const sandbox = await createSandbox(agent, modelUrl, installation.path)
  const args = [join(import.meta.dirname, 'idle-gateway.mjs'), String(CONVERSATIONS), PROMPT]
  const env = environmentOf({ ...place, sandbox }, 'live')
  const gateway = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit'], signal })
  const exit = once(gateway, 'exit')
  try {
    const failed = exit.then(() => {
      throw new Error(`The gateway with ${CONVERSATIONS} conversations of ${agent.name} ended`)
    })
    await Promise.race([once(gateway.stdout, 'data'), failed])
    await sleep(SETTLE_MS, undefined, { signal })
    return await memoryIn(sandbox)
  } finally {
    gateway.stdin.end()
    await exit
    await sandbox.remove()
  }
}

/** Of all processes with the sandbox's home directory. Shared memory is counted once. */
async function memoryIn(sandbox: Sandbox): Promise<number> {
  const sizes = (await sandbox.processes()).map(async ({ pid }) => {
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1')
    return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1]) * 1024
  })
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0) / 1e6
}
