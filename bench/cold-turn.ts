/**
 * What `run()` adds to a turn of the real CLI: the same arguments, environment, input and directory, alternately through
 * the backend and bare, against a model that answers at once.
 */
import assert from 'node:assert/strict'
import type { Agent } from '../conformance/agents.js'
import { findPinned } from '../conformance/installations.js'
import { createSandbox } from '../conformance/sandbox.js'
import { startScriptedModel } from '../conformance/scripted-model.js'
import type { AgentBackend } from '../src/backends/types.js'
import { backendFor, recordInvocation, REQUEST, timeBare } from './bare-turn.js'
import { ANSWER } from './live/script.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'

const RATIO_GOAL = 1.05
const ADDED_GOAL_MS = 20
const WARM_UPS = 2
export async function measureColdTurns(options: BenchOptions): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  for (const agent of options.agents) measurements.push(...(await measureAgent(agent, options)))
  return measurements
}

async function measureAgent(agent: Agent, options: BenchOptions): Promise<Measurement[]> {
  const installation = await findPinned(agent)
  const model = await startScriptedModel(() => ({ type: 'text', deltas: [ANSWER] }))
  const sandbox = await createSandbox(agent, model.url, installation.path)
  try {
    const backend = backendFor(agent, sandbox, installation.cliPath)
    const invocation = await recordInvocation(agent, sandbox, options.signal)
    const sides = {
      run: () => timeRun(backend, options.signal),
      bare: async () => (await timeBare(installation.cliPath, invocation, options.signal)).totalMs,
    }
    return await compare(agent, sides, options)
  } finally {
    await sandbox.remove()
    await model.close()
  }
}

async function compare(
  { name }: Agent,
  sides: Record<'run' | 'bare', () => Promise<number>>,
  { pairs, progress }: BenchOptions,
): Promise<Measurement[]> {
  const times = { run: new Array<number>(), bare: new Array<number>() }
  for (let pair = -WARM_UPS; pair < pairs; pair += 1) {
    for (const side of pair % 2 === 0 ? (['run', 'bare'] as const) : (['bare', 'run'] as const)) {
      const time = await sides[side]()
      if (pair >= 0) times[side].push(time)
    }
  }
  const [run, bare] = [lowerQuartile(times.run), lowerQuartile(times.bare)]
  progress(`cold turn of ${name}: bare ${bare.toFixed(0)} ms, run() ${run.toFixed(0)} ms, ${pairs} pairs`)
  const allowedMs = Math.max(ADDED_GOAL_MS, bare * (RATIO_GOAL - 1))
  return [
    atMost(`cold-turn.${name}.ratio`, run / bare, 1 + allowedMs / bare, 'run()/bare'),
    atMost(`cold-turn.${name}.added`, run - bare, allowedMs, 'ms'),
  ]
}

/** Measured until the iteration ends, when nothing of the run is left. */
async function timeRun(backend: AgentBackend, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted()
  const startedAt = performance.now()
  let finalOutput: string | undefined
  for await (const event of backend.run(REQUEST, signal)) {
    if (event.type === 'complete') finalOutput = event.result.finalOutput ?? event.result.failure?.message
  }
  const duration = performance.now() - startedAt
  signal.throwIfAborted()
  assert.equal(finalOutput, ANSWER, `the answer of ${backend.name()}`)
  return duration
}
