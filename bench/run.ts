/**
 * Runs the benchmarks: `tsx bench/run.ts [--pairs 20] [--only queue,streams,…]`.
 *
 * A whole run writes `bench/results.json`; a shortened one only prints. It is a report: a goal that does not hold is
 * told, not failed on.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureColdTurns } from './cold-turn.js'
import { type BenchOptions, type Measurement, renderTable } from './measurement.js'
import { measureExecuteSpeed } from './execute-speed.js'
import { measureGatewayCost } from './gateway-cost.js'
import { measureLineLatency } from './line-latency.js'
import { measureQueueSpeed } from './queue-speed.js'
import { measureStreamMemory } from './stream-memory.js'
import { measureStreams } from './streams.js'
import { measureTranslationSpeed } from './translation-speed.js'
import { measureWarmTurns } from './warm-turn.js'

const FEWEST_PAIRS = 20
const DEADLINE_MS = 15 * 60_000

const benchmarks: Record<string, (options: BenchOptions) => Promise<Measurement[]>> = {
  translation: measureTranslationSpeed,
  'stream-memory': measureStreamMemory,
  queue: measureQueueSpeed,
  gateway: measureGatewayCost,
  streams: measureStreams,
  'line-latency': measureLineLatency,
  execute: measureExecuteSpeed,
  'cold-turn': measureColdTurns,
  'warm-turn': measureWarmTurns,
}

const { values } = parseArgs({ options: { pairs: { type: 'string' }, only: { type: 'string' } } })
const pairs = Number(values.pairs ?? FEWEST_PAIRS)
if (!Number.isInteger(pairs) || pairs < 1) throw new Error(`--pairs must be a whole number, not "${values.pairs}"`)
const names = values.only?.split(',') ?? Object.keys(benchmarks)

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())
const signal = AbortSignal.any([interrupted.signal, AbortSignal.timeout(DEADLINE_MS)])

const [load = 0] = loadavg()
if (load > availableParallelism() / 2)
  console.error(`The machine has other work (load ${load.toFixed(1)}): expect noise.`)

// Everything temporary, also of the backends and the agents, stands below one directory and goes with it.
const temporary = await mkdtemp(join(tmpdir(), 'aetheel-bench-'))
process.env['TMPDIR'] = temporary
try {
  const measurements: Measurement[] = []
  for (const name of names) {
    const benchmark = benchmarks[name]
    if (!benchmark) throw new Error(`Unknown benchmark "${name}". Known: ${Object.keys(benchmarks).join(', ')}`)
    measurements.push(...(await benchmark({ pairs, signal, progress: (line) => console.error(line) })))
  }
  const missed = measurements.filter(({ holds }) => !holds)
  console.log(`\n${renderTable(measurements)}\n`)
  console.log(`${measurements.length - missed.length} of ${measurements.length} goals hold.`)
  for (const { name, value, unit, goal } of missed)
    console.log(`Does not hold: ${name} is ${value} ${unit}, goal ${goal}`)
  if (pairs >= FEWEST_PAIRS && names.length === Object.keys(benchmarks).length) {
    await writeFile(join(import.meta.dirname, 'results.json'), `${JSON.stringify(measurements, null, 2)}\n`)
  } else console.log('Not a whole run: bench/results.json is as it was.')
} finally {
  await rm(temporary, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
}
