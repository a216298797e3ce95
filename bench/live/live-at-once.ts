/** Eight conversations that are all asked at once, until the last one is answered: the bare protocol, our `run()`, the
 *  whole gateway, turn about. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Agent } from '../../conformance/agents.js'
import { findPinned } from '../../conformance/installations.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement, rounded } from '../measurement.js'
import { bareSides } from './bare-sides.js'
import { AT_ONCE, gatewaySide, runSide } from './own-sides.js'
import { ANSWER, PROMPT } from './script.js'
import { type Conversation, type OpenedSide, openSide, type OpenSide, startModel } from './side.js'

const GOAL = 1.2
const WARM_UPS = 2
const REST_MS = 150

type Way = 'bare' | 'run' | 'gateway'

export async function measureLiveAtOnce(options: BenchOptions): Promise<Measurement[]> {
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
  const conversations = new Map<Way, Conversation[]>()
  const times: Record<Way, number[]> = { bare: [], run: [], gateway: [] }
  try {
    for (const [way, openIn] of ways) {
      const side = await openSide(openIn, modelUrl, place)
      sides.push(side)
      conversations.set(way, await openAll(side))
    }
    const order = [...conversations]
    for (let pair = -WARM_UPS; pair < pairs; pair += 1) {
      for (const [way, all] of order) {
        signal.throwIfAborted()
        await sleep(REST_MS)
        const startedAt = performance.now()
        const turns = await Promise.all(all.map((conversation) => conversation.say(PROMPT)))
        if (pair >= 0) times[way].push(performance.now() - startedAt)
        for (const { text } of turns) assert.equal(text, ANSWER, `the answer by ${way}`)
      }
      order.push(...order.splice(0, 1))
    }
  } finally {
    for (const side of sides) await side.close()
  }
  const [bare, run, gateway] = [lowerQuartile(times.bare), lowerQuartile(times.run), lowerQuartile(times.gateway)]
  const figures = { totalMs: { bare: rounded(bare), run: rounded(run), gateway: rounded(gateway) } }
  progress(`${AT_ONCE} conversations of ${agent.name} at once: ${JSON.stringify(figures)}`)
  return [
    { ...atMost(`live-at-once.${agent.name}.run`, run / bare, GOAL, 'run()/bare'), figures },
    atMost(`live-at-once.${agent.name}.gateway`, gateway / bare, GOAL, 'gateway/bare'),
  ]
}

/** One after the other: eight that start at once are a burden of its own. */
async function openAll(side: OpenedSide): Promise<Conversation[]> {
  const conversations: Conversation[] = []
  while (conversations.length < AT_ONCE) {
    const conversation = await side.open()
    await conversation.say(PROMPT)
    conversations.push(conversation)
  }
  return conversations
}
