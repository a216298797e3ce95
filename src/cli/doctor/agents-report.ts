import { describeAbsence, type ProbedAgent } from '../probed-agents.js'
import type { DoctorReport } from './findings.js'

/** The part of `aetheel doctor` about agents: healthy if the chosen one is installed. */
export function agentsReport(agents: ProbedAgent[], chosen: string): DoctorReport {
  const lines = agents.flatMap(({ backend, probe }) => {
    const name = backend.name() === chosen ? `${backend.name()} (chosen)` : backend.name()
    const mode = probe.mode === undefined ? '' : `, ${probe.mode}`
    const state = probe.isFound
      ? `${probe.version ?? 'version unknown'} at ${probe.path}${mode}`
      : describeAbsence(probe)
    const mark = !probe.isFound ? '✗' : probe.problems.length > 0 ? '!' : '✓'
    const sentences = [...probe.problems, ...(probe.whyNotLive === undefined ? [] : [probe.whyNotLive])]
    return [`${mark} ${name}: ${state}`, ...sentences.map((sentence) => `    ${sentence}`)]
  })
  const isHealthy = agents.some(({ backend, probe }) => backend.name() === chosen && probe.isFound)
  return { text: lines.join('\n'), isHealthy }
}
