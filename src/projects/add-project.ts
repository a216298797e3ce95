import { GatewayError } from '../errors.js'
import type { Note } from '../store/audit.js'
import type { Project } from '../store/projects.js'
import type { ProjectSource } from '../store/schema.js'
import type { Tables } from '../store/store.js'

/** Contract: throws `conflict` if the id is taken. */
export async function addProject(
  tables: Tables,
  project: Project,
  source: ProjectSource,
  now: number,
  note: Note | undefined,
): Promise<void> {
  const { id } = project
  if (!(await tables.projects.add(project, now, source))) throw idIsTaken(id)
  // A project in the configuration file may have had this id before.
  await revokeGrants(tables, id)
  await note?.(tables, { action: 'project.create', subject: id })
}

/** Whatever was granted to a project must not pass to another one that reuses its id. */
export async function revokeGrants({ credentials, tokens, approvalRules }: Tables, projectId: string): Promise<void> {
  await credentials.removeAllOf(projectId)
  await tokens.forgetProject(projectId)
  await approvalRules.removeAllOf(projectId)
}

export function idIsTaken(id: string): GatewayError {
  return new GatewayError('conflict', `There is already a project ${id}. Choose another id.`)
}
