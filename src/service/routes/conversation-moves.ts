import { GatewayError } from '../../errors.js'
import type { ConversationView } from '../../store/conversation-views.js'
import type { Caller, ServiceDependencies } from '../dependencies.js'
import { HTTP_CHANNEL, WEB_CHANNEL } from '../http-channel.js'
import { mayUse } from './changes.js'

/** Contract: throws if the conversation cannot move. */
export async function requireMovable(
  { id, channel, open }: ConversationView,
  caller: Caller,
  projectId: string | null,
  { projects }: Pick<ServiceDependencies, 'projects'>,
): Promise<void> {
  requireOwnProject(caller, projectId ?? undefined)
  if (projectId !== null) await projects.get(projectId)
  if (channel === HTTP_CHANNEL) {
    throw new GatewayError('conflict', `The commands of ${id} were given to its project. Give new ones to another.`)
  }
  // Open messages were sent to the current project.
  if (channel === WEB_CHANNEL && open > 0) {
    const advice = 'Wait for the answers, or stop them.'
    throw new GatewayError('conflict', `Messages of ${id} are worked on or wait in its project. ${advice}`)
  }
}

/** Contract: throws `forbidden` if a project token names no project of its own. */
export function requireOwnProject(caller: Caller, projectId: string | undefined): void {
  if (caller.projects === undefined || (projectId !== undefined && mayUse(caller, projectId))) return
  const known = caller.projects.join(', ') || 'none'
  throw new GatewayError('forbidden', `This token is for single projects. Name one of them as project_id: ${known}.`)
}
