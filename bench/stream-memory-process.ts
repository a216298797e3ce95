/** Runs one turn with the given backend and executable, and prints its memory use as JSON. */
import { createBackend, resolveBackendName } from '../src/backends/registry.js'

export interface MemoryReport {
  idleBytes: number
  peakBytes: number
  events: number
  durationMs: number
}

const [name, cliPath = ''] = process.argv.slice(2)
const backend = createBackend(resolveBackendName(name), {
  cliPath,
  workingDir: process.cwd(),
  queryTimeoutMs: 60_000,
  allowedTools: [],
  maxTurns: 0,
})

const idleBytes = process.memoryUsage.rss()
let events = 0
for await (const event of backend.run({ prompt: 'Go on.' }, new AbortController().signal)) {
  events += 1
  if (event.type !== 'complete') continue
  const { isError, failure, durationMs } = event.result
  if (isError) throw new Error(failure?.message)
  const peakBytes = process.resourceUsage().maxRSS * 1024
  const report: MemoryReport = { idleBytes, peakBytes, events, durationMs }
  console.log(JSON.stringify(report))
}
