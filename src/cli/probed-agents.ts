import type { AgentBackend, AgentProbe, ProbeOptions } from '../backends/types.js'

export interface ProbedAgent {
  backend: AgentBackend
  probe: AgentProbe
}

export async function probeAll(backends: AgentBackend[], options?: ProbeOptions): Promise<ProbedAgent[]> {
  return Promise.all(backends.map(async (backend) => ({ backend, probe: await backend.probe(options) })))
}

/** Why an agent was not found, in a few words. */
export function describeAbsence({ path }: AgentProbe): string {
  return path === undefined ? 'not installed' : `not reached at ${path}`
}
