import type { AgentLogin, AgentProbe, BackendName } from '../../backends/types.js'
import { DEMO } from '../../core/demo-agent.js'
import {
  adviceToLogIn,
  adviceToRun,
  describeAbsence,
  describeLogin,
  howToLogIn,
  liveCheckOf,
  type ProbedAgent,
  REAL_AGENT_ADVICE,
} from '../probed-agents.js'
import type { DoctorReport, Finding } from './findings.js'

/** The agents part of `aetheel doctor`: healthy unless the chosen agent is missing or certainly logged out. */
export function agentsReport(agents: ProbedAgent[], chosen: string): DoctorReport {
  const findings = agents.map(({ backend, probe }) => agentFinding(backend.name(), probe, backend.name() === chosen))
  const lines = findings.flatMap(({ mark, text, details }) => [
    `${mark} ${text}`,
    ...details.map((detail) => `    ${detail}`),
  ])
  return { text: lines.join('\n'), isHealthy: findings.every(({ mark }) => mark !== '✗') }
}

type AgentFinding = Omit<Finding, 'mark'> & { mark: Finding['mark'] | '-' }

function agentFinding(name: BackendName, probe: AgentProbe, isChosen: boolean): AgentFinding {
  if (!probe.isFound) return missingFinding(name, probe, isChosen)
  if (probe.isDemo) return demoFinding(name, probe, isChosen)
  const { version = 'version unknown', path, mode, model, login, problems, whyNotLive } = probe
  const facts = [`${version} at ${path}`, mode, model && `model ${model}`, describeLogin(login)]
  const details = [
    ...problems,
    ...updateAdvice(probe),
    ...(whyNotLive === undefined ? [] : [whyNotLive]),
    ...loginAdvice(name, login),
  ]
  const isDoubtful = problems.length > 0 || login?.state !== 'logged-in'
  return {
    mark: isChosen && login?.state === 'logged-out' ? '✗' : isDoubtful ? '!' : '✓',
    text: `${titleOf(name, isChosen)}: ${facts.filter(Boolean).join(', ')}`,
    details,
  }
}

/** A missing agent that is not the chosen one gets only one line. */
function missingFinding(name: BackendName, probe: AgentProbe, isChosen: boolean): AgentFinding {
  const { install, problems } = probe
  const title = `${titleOf(name, isChosen)}: ${describeAbsence(probe)}`
  if (!isChosen && install !== undefined) return { mark: '-', text: `${title}. ${adviceToRun(install)}`, details: [] }
  return { mark: isChosen ? '✗' : '!', text: title, details: install === undefined ? problems : [adviceToRun(install)] }
}

/** It needs no login, and is ready wherever Node.js is. */
function demoFinding(name: BackendName, { mode, problems }: AgentProbe, isChosen: boolean): AgentFinding {
  const isReady = problems.length === 0
  const facts = ['built in', isReady && 'always ready', mode, `in place of ${name}, without a model`]
  return {
    mark: isReady ? '✓' : '!',
    text: `${titleOf(DEMO, isChosen)}: ${facts.filter(Boolean).join(', ')}`,
    details: [...problems, REAL_AGENT_ADVICE],
  }
}

function titleOf(name: string, isChosen: boolean): string {
  return isChosen ? `${name} (chosen)` : name
}

function updateAdvice({ install }: AgentProbe): string[] {
  return install === undefined ? [] : [adviceToRun(install)]
}

function loginAdvice(name: BackendName, login: AgentLogin | undefined): string[] {
  if (!login || login.state === 'logged-in') return []
  if (login.state === 'logged-out') return [adviceToLogIn(login)]
  return [login.why, `To find out: ${liveCheckOf(name)}`, `To log in: ${howToLogIn(login)}`]
}
