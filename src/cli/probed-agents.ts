import type { AgentBackend, AgentLogin, AgentProbe, BackendName, ProbeOptions } from '../backends/types.js'

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

export function describeLogin(login: AgentLogin | undefined): string {
  switch (login?.state) {
    case 'logged-in':
      return `logged in by ${login.how}`
    case 'logged-out':
      return 'not logged in'
    default:
      return 'login unknown'
  }
}

/** How to log in to it: the command, or what to do where none does it. */
export function howToLogIn({ fix, next }: AgentLogin): string {
  return next === undefined ? fix : `start ${fix} and ${next}`
}

/** The same as a line of its own. */
export function adviceToLogIn(login: AgentLogin): string {
  return login.next === undefined ? adviceToRun(login.fix) : `Start ${login.fix} and ${login.next}.`
}

/** The command that finds out what only a turn can tell. */
export function liveCheckOf(name: BackendName): string {
  return `aetheel doctor --live --agent ${name}`
}

export const REAL_AGENT_ADVICE = 'To choose a real agent: aetheel init'

/** The one command that puts it right, to be copied. */
export function adviceToRun(command: string): string {
  return `Run: ${command}`
}
