/** Eight conversations asked at once, until the last is answered, alternating between the bare protocol, our `run()` and
 *  the whole gateway. */
import assert from 'node:assert/strict'
import type { Agent } from '../../conformance/agents.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement, rounded } from '../measurement.js'
import { AT_ONCE } from './own-sides.js'
import { ANSWER, PROMPT } from './script.js'
import type { Conversation, OpenedSide } from './side.js'
import { measureEach, turnAbout } from './turn-about.js'

const GOAL = 1.2
const REST_MS = 150

export function measureLiveAtOnce(options: BenchOptions): Promise<Measurement[]> {
  return measureEach(options, measureAgent)
}

async function measureAgent(agent: Agent, modelUrl: string, options: BenchOptions): Promise<Measurement[]> {
  const times = await turnAbout(agent, modelUrl, options, REST_MS, askAll)
  const [bare, run, gateway] = [lowerQuartile(times.bare), lowerQuartile(times.run), lowerQuartile(times.gateway)]
  const figures = { totalMs: { bare: rounded(bare), run: rounded(run), gateway: rounded(gateway) } }
  options.progress(`${AT_ONCE} conversations of ${agent.name} at once: ${JSON.stringify(figures)}`)
  return [
    { ...atMost(`live-at-once.${agent.name}.run`, run / bare, GOAL, 'run()/bare'), figures },
    atMost(`live-at-once.${agent.name}.gateway`, gateway / bare, GOAL, 'gateway/bare'),
  ]
}

async function askAll(side: OpenedSide): Promise<() => Promise<number>> {
  const conversations: Conversation[] = []
  // One after the other: eight concurrent starts would overload the machine.
  while (conversations.length < AT_ONCE) {
    const conversation = await side.open()
    await conversation.say(PROMPT)
    conversations.push(conversation)
  }
  return async () => {
    const startedAt = performance.now()
    const turns = await Promise.all(conversations.map((conversation) => conversation.say(PROMPT)))
    const totalMs = performance.now() - startedAt
    for (const { text } of turns) assert.equal(text, ANSWER, 'the answer')
    return totalMs
  }
}
