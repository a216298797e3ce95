/** Shared by the benchmarks of warm agents. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Agent } from '../../conformance/agents.js'
import { findPinned } from '../../conformance/installations.js'
import type { BenchOptions, Measurement } from '../measurement.js'
import { bareSides } from './bare-sides.js'
import { gatewaySide, runSide } from './own-sides.js'
import { type OpenedSide, openSide, type OpenSide, startModel } from './side.js'

export type Way = 'bare' | 'run' | 'gateway'

export type MeasureAgent = (agent: Agent, modelUrl: string, options: BenchOptions) => Promise<Measurement[]>

const WARM_UPS = 2
/** How often each side is started: two processes of the same CLI may differ by a fifth or more for their whole life. */
export const OPENINGS = 5

export async function measureEach(options: BenchOptions, measureAgent: MeasureAgent): Promise<Measurement[]> {
  const model = await startModel()
  try {
    const measurements: Measurement[] = []
    for (const agent of options.agents) measurements.push(...(await measureAgent(agent, model.url, options)))
    return measurements
  } finally {
    model.close()
  }
}

/** So that no side always follows the same one, which may still be busy after its turn. */
export function shuffled<T>(ordered: T[]): T[] {
  const rest = [...ordered]
  return ordered.flatMap(() => rest.splice(Math.floor(Math.random() * rest.length), 1))
}

/** Measures the bare protocol, our `run()` and the whole gateway together, in changing order. */
export async function turnAbout<Cost>(
  agent: Agent,
  modelUrl: string,
  { pairs, signal }: Pick<BenchOptions, 'pairs' | 'signal'>,
  restMs: number,
  open: (side: OpenedSide) => Promise<() => Promise<Cost>>,
): Promise<Record<Way, Cost[]>> {
  const place = { agent, installation: await findPinned(agent), signal }
  const ways: [Way, OpenSide][] = [
    ['bare', bareSides[agent.name]],
    ['run', runSide('live')],
    ['gateway', gatewaySide],
  ]
  const costs: Record<Way, Cost[]> = { bare: [], run: [], gateway: [] }
  for (let opening = 0; opening < OPENINGS; opening += 1) {
    const sides: OpenedSide[] = []
    const order: [Way, () => Promise<Cost>][] = []
    try {
      for (const [way, openIn] of ways) {
        const side = await openSide(openIn, modelUrl, place)
        sides.push(side)
        order.push([way, await open(side)])
      }
      for (let pair = -WARM_UPS; pair < Math.ceil(pairs / OPENINGS); pair += 1) {
        for (const [way, measure] of shuffled(order)) {
          signal.throwIfAborted()
          await sleep(restMs)
          const cost = await measure()
          if (pair >= 0) costs[way].push(cost)
        }
      }
    } finally {
      for (const side of sides) await side.close()
    }
  }
  return costs
}
