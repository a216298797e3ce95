import type { Agent, Project } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'

/** `none` labels the empty choice; without it, there is none. Contract: the current choice is always listed. */
export function ProjectOptions({
  projects,
  chosen,
  none,
}: {
  projects: Project[]
  chosen: string | null
  none: string | undefined
}) {
  return (
    <>
      {none !== undefined && <option value="">{none}</option>}
      {projects.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
      {chosen !== null && !projects.some(({ id }) => id === chosen) && <option value={chosen}>{chosen}</option>}
    </>
  )
}

/** `standard` is the agent that answers if none is chosen, if known. */
export function AgentOptions({ agents, standard }: { agents: Agent[]; standard?: string | undefined }) {
  return (
    <>
      <option value="">{standard === undefined ? 'Default agent' : `${agentName(standard)} (default)`}</option>
      {agents.map(({ provider, status }) => (
        <option key={provider} value={provider} disabled={status !== 'available'}>
          {status === 'available' ? agentName(provider) : `${agentName(provider)} (unavailable)`}
        </option>
      ))}
    </>
  )
}

export const NO_PROJECT = 'No project'
