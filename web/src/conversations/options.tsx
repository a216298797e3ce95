import type { Agent, Project } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'

/** `none` is what it means to choose none; without it, that cannot be. Contract: what is chosen is always among them. */
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

/** `standard` is who answers when none is chosen, where that is known. */
export function AgentOptions({ agents, standard }: { agents: Agent[]; standard?: string | undefined }) {
  return (
    <>
      <option value="">{standard === undefined ? 'Default agent' : `${agentName(standard)} (default)`}</option>
      {agents.map(({ provider, status }) => (
        <option key={provider} value={provider} disabled={status !== 'available'}>
          {status === 'available' ? agentName(provider) : `${agentName(provider)} (not installed)`}
        </option>
      ))}
    </>
  )
}

export const NO_PROJECT = 'No project'
