/**
 * An answer of 20,000 characters in pieces of eight: how long it takes, and what it costs us beside what it costs the
 * command line itself. Turn about: the bare protocol, our `run()`, the whole gateway.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Agent } from '../../conformance/agents.js'
import { findPinned } from '../../conformance/installations.js'
import type { Sandbox } from '../../conformance/sandbox.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement, rounded } from '../measurement.js'
import { bareSides } from './bare-sides.js'
import { gatewaySide, runSide } from './own-sides.js'
import { LONG_ANSWER, LONG_PROMPT } from './script.js'
import { type OpenedSide, openSide, type OpenSide, startModel } from './side.js'

const TIME_GOAL = 1.15
const CPU_GOAL = 0.25
const WARM_UPS = 2
const REST_MS = 100
/** How the kernel counts, whatever the machine. */
const TICK_MS = 10

type Way = 'bare' | 'run' | 'gateway'

interface Cost {
  totalMs: number
  /** Of this process, in which all three sides are. */
  ownCpuMs: number
  agentCpuMs: number
}

export async function measureLiveStreams(options: BenchOptions): Promise<Measurement[]> {
  const model = await startModel()
  try {
    const measurements: Measurement[] = []
    for (const agent of options.agents) measurements.push(...(await measureAgent(agent, model.url, options)))
    return measurements
  } finally {
    model.close()
  }
}

async function measureAgent(agent: Agent, modelUrl: string, options: BenchOptions): Promise<Measurement[]> {
  const { pairs, signal, progress } = options
  const place = { agent, installation: await findPinned(agent), signal }
  const ways: [Way, OpenSide][] = [
    ['bare', bareSides[agent.name]],
    ['run', runSide('live')],
    ['gateway', gatewaySide],
  ]
  const sides: OpenedSide[] = []
  const streams = new Map<Way, () => Promise<Cost>>()
  const costs: Record<Way, Cost[]> = { bare: [], run: [], gateway: [] }
  try {
    for (const [way, openIn] of ways) {
      const side = await openSide(openIn, modelUrl, place)
      sides.push(side)
      streams.set(way, await openStream(side))
    }
    const order = [...streams]
    for (let pair = -WARM_UPS; pair < pairs; pair += 1) {
      for (const [way, stream] of order) {
        signal.throwIfAborted()
        await sleep(REST_MS)
        const cost = await stream()
        if (pair >= 0) costs[way].push(cost)
      }
      order.push(...order.splice(0, 1))
    }
  } finally {
    for (const side of sides) await side.close()
  }
  const figures = Object.fromEntries(Object.entries(costs).map(([way, all]) => [way, summary(all)]))
  progress(`long answers of ${agent.name}: ${JSON.stringify(figures)}`)
  return judge(agent, costs, figures)
}

async function openStream(side: OpenedSide): Promise<() => Promise<Cost>> {
  const conversation = await side.open()
  return async () => {
    const agentBefore = await agentCpuMs(side.sandbox)
    const ownBefore = process.cpuUsage()
    const { totalMs, text } = await conversation.say(LONG_PROMPT)
    const { user, system } = process.cpuUsage(ownBefore)
    assert.equal(text, LONG_ANSWER, 'the long answer')
    return { totalMs, ownCpuMs: (user + system) / 1000, agentCpuMs: (await agentCpuMs(side.sandbox)) - agentBefore }
  }
}

/** The kernel counts an agent in ticks, so its turns are counted together. */
function summary(costs: Cost[]): Record<string, number> {
  const mean = (of: keyof Cost): number => costs.reduce((sum, cost) => sum + cost[of], 0) / costs.length
  const megabytes = LONG_ANSWER.length / 1e6
  return {
    totalMs: rounded(lowerQuartile(costs.map(({ totalMs }) => totalMs))),
    ownCpuSecondsPerMb: rounded(lowerQuartile(costs.map(({ ownCpuMs }) => ownCpuMs)) / 1000 / megabytes),
    agentCpuSecondsPerMb: rounded(mean('agentCpuMs') / 1000 / megabytes),
  }
}

function judge(
  { name }: Agent,
  costs: Record<Way, Cost[]>,
  figures: NonNullable<Measurement['figures']>,
): Measurement[] {
  const total = (way: Way): number => lowerQuartile(costs[way].map(({ totalMs }) => totalMs))
  const share = (way: Way): number =>
    (figures[way]?.['ownCpuSecondsPerMb'] ?? NaN) / (figures[way]?.['agentCpuSecondsPerMb'] ?? NaN)
  const of = (what: string): string => `live-streams.${name}.${what}`
  return [
    { ...atMost(of('run'), total('run') / total('bare'), TIME_GOAL, 'run()/bare'), figures },
    atMost(of('gateway'), total('gateway') / total('bare'), TIME_GOAL, 'gateway/bare'),
    atMost(of('run-cpu'), share('run'), CPU_GOAL, 'of the CLI'),
    atMost(of('gateway-cpu'), share('gateway'), CPU_GOAL, 'of the CLI'),
  ]
}

async function agentCpuMs(sandbox: Sandbox): Promise<number> {
  const ticks = (await sandbox.processes()).map(async ({ pid }) => {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
  })
  return (await Promise.all(ticks)).reduce((sum, count) => sum + count, 0) * TICK_MS
}
