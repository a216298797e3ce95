// What the bot needs of a server, and where a person gives it.

import type { APIUser, PermissionsString } from 'discord.js'
import { DEVELOPER_PORTAL } from '../channels/discord/identity.js'
import { showable } from '../core/one-line.js'

export interface NeededPermission {
  name: PermissionsString
  /** As the settings of a server call it. */
  label: string
  /** What goes wrong without it. */
  without: string
  /** Without it there is no answer at all. */
  isVital: boolean
}

export const NEEDED_PERMISSIONS: NeededPermission[] = [
  { name: 'ViewChannel', label: 'View Channels', without: 'it does not see what is written there', isVital: true },
  { name: 'SendMessages', label: 'Send Messages', without: 'it cannot answer there', isVital: true },
  {
    name: 'CreatePublicThreads',
    label: 'Create Public Threads',
    without: 'it cannot open a thread for a mention',
    isVital: true,
  },
  {
    name: 'SendMessagesInThreads',
    label: 'Send Messages in Threads',
    without: 'it cannot answer in threads',
    isVital: true,
  },
  {
    name: 'ReadMessageHistory',
    label: 'Read Message History',
    without: 'it misses what was written while it was away, and cannot refer to a message',
    isVital: true,
  },
  { name: 'AddReactions', label: 'Add Reactions', without: 'it cannot mark a message as seen', isVital: false },
  { name: 'AttachFiles', label: 'Attach Files', without: 'it cannot send files', isVital: false },
]

/** The page on which a person adds the bot to a server, with the permissions that it needs and no others. */
export async function inviteLink(applicationId: string): Promise<string> {
  const { PermissionFlagsBits } = await import('discord.js')
  const permissions = NEEDED_PERMISSIONS.reduce((bits, { name }) => bits | PermissionFlagsBits[name], 0n)
  return `https://discord.com/oauth2/authorize?client_id=${applicationId}&scope=bot+applications.commands&permissions=${permissions}`
}

/** The page on which the intents of the bot are switched. */
export function botPage(applicationId: string): string {
  return `${DEVELOPER_PORTAL}/${applicationId}/bot`
}

export function nameOf({ username, global_name: globalName }: Pick<APIUser, 'username' | 'global_name'>): string {
  return showable(globalName ?? username) || 'someone without a name'
}
