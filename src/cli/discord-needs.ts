// The permissions the bot needs in a server, and the pages where a person grants them.

import type { APIUser, PermissionsString } from 'discord.js'
import { DEVELOPER_PORTAL } from '../channels/discord/identity.js'
import { printable } from '../core/one-line.js'

export interface NeededPermission {
  name: PermissionsString
  /** As Discord's server settings show it. */
  label: string
  /** What goes wrong without it. */
  without: string
  /** Without it the bot cannot answer at all. */
  isRequired: boolean
}

export const NEEDED_PERMISSIONS: NeededPermission[] = [
  { name: 'ViewChannel', label: 'View Channels', without: 'the bot cannot see messages there', isRequired: true },
  { name: 'SendMessages', label: 'Send Messages', without: 'the bot cannot answer there', isRequired: true },
  {
    name: 'CreatePublicThreads',
    label: 'Create Public Threads',
    without: 'the bot cannot open a thread for a mention',
    isRequired: true,
  },
  {
    name: 'SendMessagesInThreads',
    label: 'Send Messages in Threads',
    without: 'the bot cannot answer in threads',
    isRequired: true,
  },
  {
    name: 'ReadMessageHistory',
    label: 'Read Message History',
    without: 'the bot misses messages sent while it was offline, and cannot reply to a specific message',
    isRequired: true,
  },
  { name: 'AddReactions', label: 'Add Reactions', without: 'the bot cannot mark a message as seen', isRequired: false },
  { name: 'AttachFiles', label: 'Attach Files', without: 'the bot cannot send files', isRequired: false },
]

/** The page that adds the bot to a server, with exactly the permissions it needs. */
export async function inviteLink(applicationId: string): Promise<string> {
  const { PermissionFlagsBits } = await import('discord.js')
  const permissions = NEEDED_PERMISSIONS.reduce((bits, { name }) => bits | PermissionFlagsBits[name], 0n)
  return `https://discord.com/oauth2/authorize?client_id=${applicationId}&scope=bot+applications.commands&permissions=${permissions}`
}

/** The page with the bot's intents. */
export function botPage(applicationId: string): string {
  return `${DEVELOPER_PORTAL}/${applicationId}/bot`
}

export function nameOf({ username, global_name: globalName }: Pick<APIUser, 'username' | 'global_name'>): string {
  return printable(globalName ?? username) || 'an unnamed user'
}
