import { GatewayError } from '../errors.js'
import type { Note } from '../store/audit.js'
import type { Project } from '../store/projects.js'
import type { ProjectSource } from '../store/schema.js'
import type { Tables } from '../store/store.js'

/** Contract: throws `conflict` when the id is taken. */
export async function addProject(
  tables: Tables,
  project: Project,
  source: ProjectSource,
  now: number,
  note: Note | undefined,
): Promise<void> {
  const { id } = project
  if (!(await tables.projects.add(project, now, source))) throw idIsTaken(id)
  // Of one that the configuration file had under this id.
  await forgetRights(tables, id)
  await note?.(tables, { action: 'project.create', subject: id })
}

/** What was given to a project or for it must not serve another that gets its id. */
export async function forgetRights({ credentials, tokens, approvalRules }: Tables, projectId: string): Promise<void> {
  await credentials.removeAllOf(projectId)
  await tokens.forgetProject(projectId)
  await approvalRules.removeAllOf(projectId)
}

export function idIsTaken(id: string): GatewayError {
  return new GatewayError('conflict', `There is already a project ${id}. Choose another id.`)
}
