/**
 * An answer of 20,000 characters in pieces of eight: how long it takes, and what it costs us compared with the CLI itself.
 * Alternates between the bare protocol, our `run()` and the whole gateway.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { Agent } from '../../conformance/agents.js'
import type { Sandbox } from '../../conformance/sandbox.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement, rounded } from '../measurement.js'
import { LONG_ANSWER, LONG_PROMPT } from './script.js'
import type { OpenedSide } from './side.js'
import { measureEach, turnAbout, type Way } from './turn-about.js'

const TIME_GOAL = 1.15
const CPU_GOAL = 0.25
const REST_MS = 100
/** The kernel's clock tick, the same on every machine. */
const TICK_MS = 10

interface Cost {
  totalMs: number
  /** Of this process, which runs all three sides. */
  ownCpuMs: number
  agentCpuMs: number
}

export function measureLiveStreams(options: BenchOptions): Promise<Measurement[]> {
  return measureEach(options, measureAgent)
}

async function measureAgent(agent: Agent, modelUrl: string, options: BenchOptions): Promise<Measurement[]> {
  const costs = await turnAbout(agent, modelUrl, options, REST_MS, openStream)
  const figures = Object.fromEntries(Object.entries(costs).map(([way, all]) => [way, summary(all)]))
  options.progress(`long answers of ${agent.name}: ${JSON.stringify(figures)}`)
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

/** The kernel counts an agent's CPU time in ticks, so its turns are averaged. */
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
