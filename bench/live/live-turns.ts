/**
 * How long the next turn of a conversation takes with the bare CLI, cold and warm, our `run()`, cold and warm, the whole
 * gateway, and the vendors' own SDKs. Alternating, against a model that answers at once.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Agent } from '../../conformance/agents.js'
import { findPinned } from '../../conformance/installations.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement, rounded } from '../measurement.js'
import { bareSides } from './bare-sides.js'
import { coldSide } from './cold-side.js'
import { gatewaySide, runSide } from './own-sides.js'
import { ANSWER, PROMPT } from './script.js'
import { sdkSides } from './sdk-sides.js'
import { type Conversation, type OpenedSide, openSide, type OpenSide } from './side.js'
import { measureEach, OPENINGS, shuffled } from './turn-about.js'

const RATIO_GOAL = 1.15
/** The HTTP requests to the server take most of the turn, and both make the same ones. */
const SERVER_RATIO_GOAL = 1.1
const ADDED_GOAL_MS = 3
const COLD_GOAL = 0.25
const FIRST_TEXT_GOAL_MS = 5
const GATEWAY_GOAL_MS = 10
const WARM_UPS = 2
/** Warm turns per cold turn: they are short, but as noisy as long ones. */
const MORE_TURNS = 10
/** So that one side's pending writes do not disturb the next. */
const REST_MS = 100

type Times = Record<'first' | 'total', number[]>

interface Speaker {
  name: string
  /** Whether it starts a process for each turn. */
  isCold: boolean
  conversation: Conversation
}

export function measureLiveTurns(options: BenchOptions): Promise<Measurement[]> {
  return measureEach(options, measureAgent)
}

async function measureAgent(agent: Agent, modelUrl: string, options: BenchOptions): Promise<Measurement[]> {
  const { pairs, signal, progress } = options
  const place = { agent, installation: await findPinned(agent), signal }
  const sdk = sdkSides[agent.name]
  const ways: Array<Omit<Speaker, 'conversation'> & { openIn: OpenSide }> = [
    { name: 'cold', isCold: true, openIn: coldSide },
    { name: 'bare', isCold: false, openIn: bareSides[agent.name] },
    { name: 'oneShot', isCold: true, openIn: runSide('oneshot') },
    { name: 'live', isCold: false, openIn: runSide('live') },
    { name: 'gateway', isCold: false, openIn: gatewaySide },
    ...(sdk ? [{ name: 'sdk', isCold: false, openIn: sdk }] : []),
  ]
  const names = ways.map(({ name }) => name)
  const times = new Map(names.map((name): [string, Times] => [name, { first: [], total: [] }]))
  for (let opening = 0; opening < OPENINGS; opening += 1) {
    const sides: OpenedSide[] = []
    try {
      const speakers: Speaker[] = []
      for (const { name, openIn, isCold } of ways) {
        // Two identical servers differ by as much as is measured here, so all warm sides share one.
        const endpoint = isCold ? undefined : sides.find((side) => side.endpoint)?.endpoint
        const side = await openSide(openIn, modelUrl, { ...place, ...(endpoint && { endpoint }) })
        sides.push(side)
        speakers.push({ name, isCold, conversation: await side.open() })
      }
      await takeTurns(speakers, Math.ceil(pairs / OPENINGS), times, signal)
    } finally {
      for (const side of sides.toReversed()) await side.close()
    }
  }
  const quartile = (name: string, of: keyof Times): number => lowerQuartile(times.get(name)?.[of] ?? [])
  const figures = {
    firstTextMs: Object.fromEntries(names.map((name) => [name, rounded(quartile(name, 'first'))])),
    turnMs: Object.fromEntries(names.map((name) => [name, rounded(quartile(name, 'total'))])),
  }
  progress(`turns of ${agent.name}: ${JSON.stringify(figures)}`)
  return judge(agent, quartile, figures, names.includes('sdk'))
}

async function takeTurns(
  speakers: Speaker[],
  pairs: number,
  times: Map<string, Times>,
  signal: AbortSignal,
): Promise<void> {
  for (let pair = -WARM_UPS; pair < pairs; pair += 1) {
    for (let turn = 0; turn < MORE_TURNS; turn += 1) {
      for (const { name, isCold, conversation } of shuffled(speakers)) {
        // A cold side needs no warm-up.
        if (isCold && (pair < 0 || turn > 0)) continue
        signal.throwIfAborted()
        await sleep(REST_MS)
        const { firstTextMs, totalMs, text } = await conversation.say(PROMPT)
        assert.equal(text, ANSWER, `the answer by ${name}`)
        if (pair < 0) continue
        times.get(name)?.first.push(firstTextMs)
        times.get(name)?.total.push(totalMs)
      }
    }
  }
}

function judge(
  { name }: Agent,
  quartile: (side: string, of: keyof Times) => number,
  figures: NonNullable<Measurement['figures']>,
  hasSdk: boolean,
): Measurement[] {
  const [cold, bare, live, gateway] = (['cold', 'bare', 'live', 'gateway'] as const).map((side) => ({
    first: quartile(side, 'first'),
    total: quartile(side, 'total'),
  })) as [Point, Point, Point, Point]
  const allowed = Math.max(RATIO_GOAL, 1 + ADDED_GOAL_MS / bare.total)
  const of = (what: string): string => `live-turns.${name}.${what}`
  return [
    { ...atMost(of('run'), live.total / bare.total, allowed, 'run()/bare'), figures },
    ...(name === 'opencode'
      ? [atMost(of('run-to-http'), live.total / bare.total, SERVER_RATIO_GOAL, 'run()/HTTP')]
      : []),
    atMost(of('run-to-cold'), live.total / cold.total, COLD_GOAL, 'run()/cold'),
    atMost(of('run-first-text'), live.first - bare.first, FIRST_TEXT_GOAL_MS, 'ms added'),
    atMost(of('gateway'), gateway.total - bare.total, GATEWAY_GOAL_MS, 'ms added'),
    atMost(of('gateway-first-text'), gateway.first - bare.first, FIRST_TEXT_GOAL_MS, 'ms added'),
    ...(hasSdk ? [atMost(of('run-to-sdk'), live.total / quartile('sdk', 'total'), 1, 'run()/SDK')] : []),
  ]
}

interface Point {
  first: number
  total: number
}
