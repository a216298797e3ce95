import type { AgentBackend, AgentProbe } from '../../backends/types.js'
import { table } from '../table.js'

export interface ProbedAgent {
  backend: AgentBackend
  probe: AgentProbe
}

export async function probeAll(backends: AgentBackend[]): Promise<ProbedAgent[]> {
  return Promise.all(backends.map(async (backend) => ({ backend, probe: await backend.probe() })))
}

/** The table of `aetheel agents`. */
export function agentsTable(agents: ProbedAgent[]): string {
  const rows = agents.map(({ backend, probe }) => {
    const { supportsStreaming, supportsToolControl, supportsMaxTurns } = backend.capabilities()
    return [
      backend.name(),
      probe.isFound ? 'yes' : 'no',
      probe.version ?? '-',
      probe.mode ?? '-',
      supportsStreaming ? 'text as written' : 'whole texts',
      supportsToolControl ? 'yes' : 'no',
      supportsMaxTurns ? 'yes' : 'no',
      probe.problems.length === 0 ? '-' : `${probe.problems.length}, see "aetheel doctor"`,
    ]
  })
  return table([['AGENT', 'FOUND', 'VERSION', 'MODE', 'STREAMS', 'TOOL LIST', 'TURN LIMIT', 'PROBLEMS'], ...rows])
}

/** The report of `aetheel doctor`, and whether the agent the gateway would use is there. */
export function doctorReport(agents: ProbedAgent[], chosen: string): { text: string; isHealthy: boolean } {
  const lines = agents.flatMap(({ backend, probe }) => {
    const name = backend.name() === chosen ? `${backend.name()} (chosen)` : backend.name()
    const mode = probe.mode === undefined ? '' : `, ${probe.mode}`
    const state = probe.isFound ? `${probe.version ?? 'version unknown'} at ${probe.path}${mode}` : absence(probe)
    const mark = !probe.isFound ? '✗' : probe.problems.length > 0 ? '!' : '✓'
    const sentences = [...probe.problems, ...(probe.whyNotLive === undefined ? [] : [probe.whyNotLive])]
    return [`${mark} ${name}: ${state}`, ...sentences.map((sentence) => `    ${sentence}`)]
  })
  const isHealthy = agents.some(({ backend, probe }) => backend.name() === chosen && probe.isFound)
  return { text: lines.join('\n'), isHealthy }
}

/** In one or two words. */
export function absence({ path }: AgentProbe): string {
  return path === undefined ? 'not installed' : `not reached at ${path}`
}
