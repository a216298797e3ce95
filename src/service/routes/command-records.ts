// Commands as stored: messages of the channel `http`, in conversations named after their project's instance, so a
// project created again under the same id does not inherit them.

import type { MessageOptions } from '../../channels/types.js'
import { GatewayError } from '../../errors.js'
import type { Conversation } from '../../store/conversations.js'
import type { Message } from '../../store/inbox.js'
import type { ProjectRecord } from '../../store/projects.js'
import type { Store } from '../../store/store.js'
import { HTTP_CHANNEL } from '../http-channel.js'

export interface CommandRecord {
  message: Message
  options: MessageOptions
}

export function recordOf(message: Message): CommandRecord {
  return { message, options: message.options ?? {} }
}

export function addressIn({ instance }: ProjectRecord, name: string): string {
  return `${instance}/${name}`
}

/** Where all commands of a project are. */
export function commandsOf(project: ProjectRecord): { channel: string; prefix: string; projectId: string } {
  return { channel: HTTP_CHANNEL, prefix: addressIn(project, ''), projectId: project.id }
}

export function isIn(project: ProjectRecord, { channel, address }: Pick<Conversation, 'channel' | 'address'>): boolean {
  return channel === HTTP_CHANNEL && address.startsWith(addressIn(project, ''))
}

/** Contract: throws `not_found`, also for a command of another project. */
export async function findCommand(store: Store, project: ProjectRecord, commandId: string): Promise<CommandRecord> {
  const message = await store.inbox.get(commandId)
  const conversation = message && (await store.conversations.get(message.conversationId))
  if (conversation && isIn(project, conversation)) return recordOf(message)
  const advice = `List them with GET /projects/${project.id}/commands.`
  throw new GatewayError('not_found', `There is no command ${commandId} in project ${project.id}. ${advice}`)
}

/** A project's commands before `before`, newest first, at most one more than `limit`. */
export async function listCommands(
  store: Pick<Store, 'inbox'>,
  project: ProjectRecord,
  limit: number,
  before: string | undefined,
): Promise<Message[]> {
  const last = before === undefined ? undefined : await store.inbox.get(before)
  return store.inbox.listUnder(HTTP_CHANNEL, addressIn(project, ''), limit + 1, last)
}
