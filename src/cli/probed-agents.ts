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
  return path === undefined ? 'not installed' : `not reachable at ${path}`
}

export function describeLogin(login: AgentLogin | undefined): string {
  switch (login?.state) {
    case 'logged-in':
      return `logged in with ${login.how}`
    case 'logged-out':
      return 'not logged in'
    default:
      return 'login unknown'
  }
}

/** How to log in: the command, or the steps if no single command does it. */
export function howToLogIn({ fix, next }: AgentLogin): string {
  return next === undefined ? fix : `start ${fix} and ${next}`
}

/** The same as a full line. */
export function adviceToLogIn(login: AgentLogin): string {
  return login.next === undefined ? adviceToRun(login.fix) : `Start ${login.fix} and ${login.next}.`
}

/** The command that checks what only a turn can show. */
export function liveCheckOf(name: BackendName): string {
  return `aetheel doctor --live --agent ${name}`
}

export const REAL_AGENT_ADVICE = 'To choose a real agent: aetheel init'

/** The command that fixes it, ready to copy. */
export function adviceToRun(command: string): string {
  return `Run: ${command}`
}
