import type { Agent, Project } from '../../../src/client/aetheel-client.js'
import { agentName, nameOfAgent } from '../agent-names.js'

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
  const usual = agents.find(({ provider }) => provider === standard)
  const usualName = usual ? nameOfAgent(usual) : standard && agentName(standard)
  return (
    <>
      <option value="">{usualName === undefined ? 'Default agent' : `${usualName} (default)`}</option>
      {agents.map((agent) => (
        <option key={agent.provider} value={agent.provider} disabled={agent.status !== 'available'}>
          {agent.status === 'available' ? nameOfAgent(agent) : `${nameOfAgent(agent)} (unavailable)`}
        </option>
      ))}
    </>
  )
}

export const NO_PROJECT = 'No project'
