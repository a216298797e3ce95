/**
 * Runs the benchmarks: `tsx bench/run.ts [--pairs 20] [--only queue,live,…] [--agent claude,…]`. `--only` takes names of
 * benchmarks, or prefixes.
 *
 * The results go to `bench/results.json` and `docs/performance.md`; with fewer pairs, or not all agents, they are only
 * printed. A missed goal is reported but does not fail the run.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Agent, agents } from '../conformance/agents.js'
import { measureColdTurns } from './cold-turn.js'
import { measureDashboard } from './dashboard.js'
import { type BenchOptions, type Measurement, renderTable } from './measurement.js'
import { measureExecuteSpeed } from './execute-speed.js'
import { measureGatewayCost } from './gateway-cost.js'
import { measureLineLatency } from './line-latency.js'
import { withResults } from './performance-page.js'
import { measureQueueSpeed } from './queue-speed.js'
import { measureStreamMemory } from './stream-memory.js'
import { measureStreams } from './streams.js'
import { measureTranslationSpeed } from './translation-speed.js'
import { measureLiveAtOnce } from './live/live-at-once.js'
import { measureLiveMemory } from './live/live-memory.js'
import { measureLiveStreams } from './live/live-streams.js'
import { measureLiveTurns } from './live/live-turns.js'

const FEWEST_PAIRS = 20
const DEADLINE_MS = 90 * 60_000

const benchmarks: Record<string, (options: BenchOptions) => Promise<Measurement[]>> = {
  translation: measureTranslationSpeed,
  'stream-memory': measureStreamMemory,
  queue: measureQueueSpeed,
  gateway: measureGatewayCost,
  streams: measureStreams,
  'line-latency': measureLineLatency,
  execute: measureExecuteSpeed,
  dashboard: measureDashboard,
  'cold-turn': measureColdTurns,
  'live-turns': measureLiveTurns,
  'live-streams': measureLiveStreams,
  'live-at-once': measureLiveAtOnce,
  'live-memory': measureLiveMemory,
}

const { values } = parseArgs({
  options: { pairs: { type: 'string' }, only: { type: 'string' }, agent: { type: 'string' } },
})
const pairs = Number(values.pairs ?? FEWEST_PAIRS)
if (!Number.isInteger(pairs) || pairs < 1) throw new Error(`--pairs must be a whole number, not "${values.pairs}"`)
const names = values.only === undefined ? Object.keys(benchmarks) : values.only.split(',').flatMap(benchmarksNamed)
const chosenAgents = values.agent === undefined ? agents : values.agent.split(',').map(agentNamed)
const isComplete = pairs >= FEWEST_PAIRS && chosenAgents === agents

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())
const signal = AbortSignal.any([interrupted.signal, AbortSignal.timeout(DEADLINE_MS)])

const [load = 0] = loadavg()
if (load > availableParallelism() / 2 && !process.send)
  console.error(`The machine is busy (load ${load.toFixed(1)}): expect noise.`)

// All temporary files, including those of backends and agents, are below one directory and are removed with it.
const temporary = await mkdtemp(join(tmpdir(), 'aetheel-bench-'))
process.env['TMPDIR'] = temporary
try {
  const measurements: Measurement[] = []
  for (const [name, benchmark] of Object.entries(benchmarks)) {
    if (!names.includes(name)) continue
    const progress = (line: string): void => console.error(line)
    if (name.startsWith('live-') && chosenAgents.length > 1) {
      for (const agent of chosenAgents) measurements.push(...(await measureApart(name, agent)))
    } else measurements.push(...(await benchmark({ pairs, agents: chosenAgents, signal, progress })))
  }
  if (process.send) process.send(measurements)
  else await report(measurements)
} finally {
  await rm(temporary, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
}

/** In its own process: the cost of garbage collection depends on what earlier benchmarks left in memory. */
async function measureApart(name: string, agent: Agent): Promise<Measurement[]> {
  const args = ['--only', name, '--agent', agent.name, '--pairs', String(pairs)]
  const child = fork(import.meta.filename, args, { signal, killSignal: 'SIGTERM' })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${name} of ${agent.name} ended with ${String(code)}`)
  })
  const [measurements] = (await Promise.race([once(child, 'message'), ended])) as [Measurement[]]
  child.disconnect()
  await ended.catch(() => {})
  return measurements
}

async function report(measurements: Measurement[]): Promise<void> {
  const missed = measurements.filter(({ holds }) => !holds)
  console.log(`\n${renderTable(measurements)}\n`)
  console.log(`${measurements.length - missed.length} of ${measurements.length} goals met.`)
  for (const { name, value, unit, goal } of missed) console.log(`Missed: ${name} is ${value} ${unit}, goal ${goal}`)
  if (isComplete) await keepResults(names, measurements)
  else console.log('Incomplete measurement: bench/results.json was not changed.')
}

/** All with this prefix. */
function benchmarksNamed(word: string): string[] {
  const found = Object.keys(benchmarks).filter((name) => name.startsWith(word))
  if (found.length === 0) throw new Error(`Unknown benchmark "${word}". Known: ${Object.keys(benchmarks).join(', ')}`)
  return found
}

function agentNamed(name: string): Agent {
  const found = agents.find((agent) => agent.name === name)
  if (!found) throw new Error(`Unknown agent "${name}". Known: ${agents.map((agent) => agent.name).join(', ')}`)
  return found
}

/** Keeps earlier results of benchmarks that were not run. */
async function keepResults(measured: string[], measurements: Measurement[]): Promise<void> {
  const file = join(import.meta.dirname, 'results.json')
  const before = JSON.parse(await readFile(file, 'utf8')) as Measurement[]
  const results = Object.keys(benchmarks).flatMap((name) =>
    (measured.includes(name) ? measurements : before).filter((one) => one.name.startsWith(`${name}.`)),
  )
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`)
  const page = join(import.meta.dirname, '../docs/performance.md')
  await writeFile(page, withResults(await readFile(page, 'utf8'), results))
}
