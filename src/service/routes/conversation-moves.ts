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
    const advice = 'Send new commands to the other project.'
    throw new GatewayError('conflict', `Conversation ${id} holds commands of its project, and cannot move. ${advice}`)
  }
  // Open messages were sent to the current project.
  if (channel === WEB_CHANNEL && open > 0) {
    const advice = 'Wait for the answers or stop them, then move it.'
    throw new GatewayError('conflict', `Conversation ${id} has messages that run or wait in its project. ${advice}`)
  }
}

/** Contract: throws `forbidden` unless a project token names one of its own projects. */
export function requireOwnProject(caller: Caller, projectId: string | undefined): void {
  if (caller.projects === undefined || (projectId !== undefined && mayUse(caller, projectId))) return
  const known = caller.projects.join(', ') || 'none'
  throw new GatewayError(
    'forbidden',
    `This token is limited to certain projects. Set project_id to one of them: ${known}.`,
  )
}
