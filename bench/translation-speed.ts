/**
 * How fast a CLI's bytes become events, compared with bare JSON.parse of the same lines, already split and decoded. The
 * bytes take the path of `startRun`, without process and consumer.
 */
import { createBackend } from '../src/backends/registry.js'
import { readInto } from '../src/backends/engine/translation.js'
import type { Turn } from '../src/backends/engine/turn.js'
import { BACKEND_NAMES, type BackendName } from '../src/backends/types.js'
import { LineSplitter, OUTPUT_LIMITS } from '../src/processes/output.js'
import { readCapturedStream, roundsFor } from './captured-stream.js'
import { atLeast, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'

const RATIO_GOAL = 0.5
const STREAM_BYTES = 32_000_000
/** What a pipe delivers at once. */
const CHUNK_BYTES = 65_536
const WARM_UPS = 2
const ROUNDS = 12

export async function measureTranslationSpeed({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  for (const name of BACKEND_NAMES) {
    const stream = await readCapturedStream(name)
    const text = stream.opening + stream.round.repeat(roundsFor(stream, STREAM_BYTES)) + stream.ending
    const bytes = Buffer.from(text)
    const lines = cut(bytes)
    const times = { translation: new Array<number>(), bare: new Array<number>() }
    for (let round = -WARM_UPS; round < ROUNDS; round += 1) {
      signal.throwIfAborted()
      const pair = { translation: timeTranslation(name, bytes), bare: timeBare(lines) }
      if (round < 0) continue
      times.translation.push(pair.translation)
      times.bare.push(pair.bare)
    }
    const speed = bytes.length / 1000 / lowerQuartile(times.translation)
    const bareSpeed = bytes.length / 1000 / lowerQuartile(times.bare)
    progress(`translation for ${name}: ${speed.toFixed(0)} MB/s, JSON.parse ${bareSpeed.toFixed(0)} MB/s`)
    measurements.push(
      atLeast(`translation.${name}.ratio`, speed / bareSpeed, RATIO_GOAL, 'run()/JSON.parse'),
      atLeast(`translation.${name}.speed`, speed, bareSpeed * RATIO_GOAL, 'MB/s'),
    )
  }
  return measurements
}

function timeTranslation(name: BackendName, bytes: Buffer): number {
  const turn: Turn = {
    prompt: 'x',
    systemPrompt: '',
    allowedTools: [],
    workingDir: '/',
    maxTurns: 0,
    isUntrusted: false,
    isAsking: false,
  }
  const config = { cliPath: name, workingDir: '/', queryTimeoutMs: 1, allowedTools: [], maxTurns: 0 }
  let events = 0
  const startedAt = performance.now()
  const translation = createBackend(name, config)['translation'](() => (events += 1), turn)
  const reader = readInto(translation, OUTPUT_LIMITS.lineBytes)
  const splitter = new LineSplitter(
    OUTPUT_LIMITS,
    (line) => reader.line(line),
    (problem) => {
      throw new Error(problem)
    },
  )
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    splitter.push(bytes.subarray(start, start + CHUNK_BYTES))
  }
  splitter.end()
  reader.end()
  const duration = performance.now() - startedAt
  if (events === 0 || translation.verdict?.isError !== false)
    throw new Error(`The stream of ${name} is not a successful turn`)
  return duration
}

function timeBare(lines: string[]): number {
  let objects = 0
  const startedAt = performance.now()
  for (const line of lines) if (JSON.parse(line) !== null) objects += 1
  const duration = performance.now() - startedAt
  if (objects !== lines.length) throw new Error('A line has no value')
  return duration
}

/** Decoded one by one: split from the whole text, they would be slices of it in its wider encoding. */
function cut(bytes: Buffer): string[] {
  const lines: string[] = []
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf('\n', start)
    lines.push(bytes.toString('utf8', start, end))
    start = end + 1
  }
  return lines
}
