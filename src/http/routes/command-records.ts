// Commands as the store has them: messages of the channel `http`, in conversations named after their project.

import type { MessageOptions } from '../../channels/types.js'
import { GatewayError } from '../../errors.js'
import type { Conversation } from '../../store/conversations.js'
import type { Message } from '../../store/inbox.js'
import type { Store } from '../../store/store.js'
import { HTTP_CHANNEL } from '../http-channel.js'

export interface CommandRecord {
  message: Message
  conversation: Conversation
  /** What was asked beside the text. */
  options: MessageOptions
}

export function addressIn(projectId: string, name: string): string {
  return `${projectId}/${name}`
}

export function isIn(projectId: string, { channel, address }: Pick<Conversation, 'channel' | 'address'>): boolean {
  return channel === HTTP_CHANNEL && address.startsWith(addressIn(projectId, ''))
}

/** Contract: throws `not_found` for one of another project, too. */
export async function findCommand(store: Store, projectId: string, commandId: string): Promise<CommandRecord> {
  const message = await store.inbox.get(commandId)
  const conversation = message && (await store.conversations.get(message.conversationId))
  if (conversation && isIn(projectId, conversation)) return { message, conversation, options: message.options ?? {} }
  const advice = `GET /projects/${projectId}/commands shows those there are.`
  throw new GatewayError('not_found', `There is no command ${commandId} in the project ${projectId}. ${advice}`)
}

/** The ids of the commands of a project before one of them, newest first, and at most one more than `limit`. */
export async function listCommands(
  store: Pick<Store, 'inbox'>,
  projectId: string,
  limit: number,
  before: string | undefined,
): Promise<string[]> {
  const last = before === undefined ? undefined : await store.inbox.get(before)
  return store.inbox.idsUnder(HTTP_CHANNEL, addressIn(projectId, ''), limit + 1, last)
}
