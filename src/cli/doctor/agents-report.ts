import type { AgentProbe } from '../../backends/types.js'
import { describeAbsence, type ProbedAgent } from '../probed-agents.js'
import type { DoctorReport, Finding } from './findings.js'

/** The part of `aetheel doctor` about agents: healthy unless the chosen one is missing or surely logged out. */
export function agentsReport(agents: ProbedAgent[], chosen: string): DoctorReport {
  const findings = agents.map(({ backend, probe }) => agentFinding(backend.name(), probe, backend.name() === chosen))
  const lines = findings.flatMap(({ mark, text, details }) => [
    `${mark} ${text}`,
    ...details.map((detail) => `    ${detail}`),
  ])
  return { text: lines.join('\n'), isHealthy: findings.every(({ mark }) => mark !== '✗') }
}

type AgentFinding = Omit<Finding, 'mark'> & { mark: Finding['mark'] | '-' }

function agentFinding(name: string, probe: AgentProbe, isChosen: boolean): AgentFinding {
  if (!probe.isFound) return absence(name, probe, isChosen)
  const { version = 'version unknown', path, mode, model, login, problems, whyNotLive } = probe
  const facts = [`${version} at ${path}`, mode, model && `model ${model}`, describeLogin(login)]
  const details = [
    ...problems,
    ...updates(probe),
    ...(whyNotLive === undefined ? [] : [whyNotLive]),
    ...advice(name, login),
  ]
  const isDoubtful = problems.length > 0 || login?.state !== 'logged-in'
  return {
    mark: isChosen && login?.state === 'logged-out' ? '✗' : isDoubtful ? '!' : '✓',
    text: `${titleOf(name, isChosen)}: ${facts.filter(Boolean).join(', ')}`,
    details,
  }
}

/** An agent that nobody chose may be missing: one quiet line. */
function absence(name: string, probe: AgentProbe, isChosen: boolean): AgentFinding {
  const { install, problems } = probe
  const title = `${titleOf(name, isChosen)}: ${describeAbsence(probe)}`
  if (!isChosen && install !== undefined) return { mark: '-', text: `${title}. ${adviceToRun(install)}`, details: [] }
  return { mark: isChosen ? '✗' : '!', text: title, details: install === undefined ? problems : [adviceToRun(install)] }
}

function titleOf(name: string, isChosen: boolean): string {
  return isChosen ? `${name} (chosen)` : name
}

function updates({ install }: AgentProbe): string[] {
  return install === undefined ? [] : [adviceToRun(install)]
}

export function describeLogin(login: AgentProbe['login']): string {
  switch (login?.state) {
    case 'logged-in':
      return `logged in by ${login.how}`
    case 'logged-out':
      return 'not logged in'
    default:
      return 'login unknown'
  }
}

function advice(name: string, login: AgentProbe['login']): string[] {
  if (!login || login.state === 'logged-in') return []
  if (login.state === 'logged-out') return [adviceToRun(login.fix)]
  return [login.why, `To find out: aetheel doctor --live --agent ${name}`, `To log in: ${login.fix}`]
}

/** The one command that puts it right, to be copied. */
export function adviceToRun(command: string): string {
  return `Run: ${command}`
}
