import type { Agent, Project } from '../../../src/client/aetheel-client.js'

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

export function AgentOptions({ agents }: { agents: Agent[] }) {
  return (
    <>
      <option value="">As the project has it</option>
      {agents.map(({ provider, status }) => (
        <option key={provider} value={provider} disabled={status !== 'available'}>
          {status === 'available' ? provider : `${provider} (not available)`}
        </option>
      ))}
    </>
  )
}

export const NO_PROJECT = 'None: the working directory'
