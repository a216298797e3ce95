/** How much a gateway's memory grows while an agent prints 100 MB; each agent is measured in its own process. */
import { execFile } from 'node:child_process'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BACKEND_NAMES, type BackendName } from '../src/backends/types.js'
import { readCapturedStream, roundsFor } from './captured-stream.js'
import { atMost, type BenchOptions, type Measurement } from './measurement.js'
import type { MemoryReport } from './stream-memory-process.js'

const STREAM_BYTES = 100_000_000
/** V8 accumulates up to 90 MB between collections, with 8 MB in use; keeping the stream would add 100. */
const GROWTH_GOAL_MB = 150
const TIMEOUT_MS = 60_000

export async function measureStreamMemory({ signal, progress }: BenchOptions): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  for (const name of BACKEND_NAMES) {
    const directory = await mkdtemp(join(tmpdir(), `stream-${name}-`))
    try {
      const report = await readStream(name, await createPrinter(name, directory), directory, signal)
      const growth = (report.peakBytes - report.idleBytes) / 1e6
      const [idle, seconds] = [report.idleBytes / 1e6, report.durationMs / 1000]
      progress(
        `memory of ${name}: ${idle.toFixed(0)} MB idle, ${growth.toFixed(0)} MB more at its peak, ${report.events} events in ${seconds.toFixed(1)} s`,
      )
      measurements.push(atMost(`stream-memory.${name}`, growth, GROWTH_GOAL_MB, 'MB'))
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }
  return measurements
}

/** An executable that prints the stream as fast as it is read. */
async function createPrinter(name: BackendName, directory: string): Promise<string> {
  const stream = await readCapturedStream(name)
  const [content, printer] = [join(directory, 'stdout'), join(directory, name)]
  const file = await open(content, 'w')
  try {
    await file.write(stream.opening)
    const block = stream.round.repeat(roundsFor(stream, 1_000_000))
    for (let bytes = 0; bytes < STREAM_BYTES; bytes += Buffer.byteLength(block)) await file.write(block)
    await file.write(stream.ending)
  } finally {
    await file.close()
  }
  await writeFile(printer, `#!/bin/sh\nexec cat '${content}'\n`, { mode: 0o700 })
  return printer
}

async function readStream(
  name: BackendName,
  cliPath: string,
  directory: string,
  signal: AbortSignal,
): Promise<MemoryReport> {
  const program = join(import.meta.dirname, 'stream-memory-process.ts')
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', import.meta.resolve('tsx'), program, name, cliPath],
    {
      cwd: directory,
      env: { PATH: process.env['PATH'], HOME: directory, TMPDIR: tmpdir() },
      signal,
      timeout: TIMEOUT_MS,
    },
  )
  return JSON.parse(stdout) as MemoryReport
}
