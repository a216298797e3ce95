// What "init" and "doctor" ask Discord, and how they speak of what it says.

import type { APIApplication, APITeamMember, APIUser, PermissionsString, REST } from 'discord.js'
import { GatewayError, messageOf } from '../errors.js'
import { showable } from '../one-line.js'

export const DEVELOPER_PORTAL = 'https://discord.com/developers/applications'

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

/** Whether Discord gives the bot what people write. The limited form is that of a bot in fewer than 100 servers. */
export async function readsMessages({ flags }: Pick<APIApplication, 'flags'>): Promise<boolean> {
  const { ApplicationFlags } = await import('discord.js')
  return (flags & (ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited)) !== 0
}

/** The people to whom an application belongs, its owner first. */
export function ownersOf({ owner, team }: Pick<APIApplication, 'owner' | 'team'>): APIUser[] {
  if (!team) return owner ? [owner] : []
  const isOwner = ({ user }: APITeamMember): boolean => user.id === team.owner_user_id
  return team.members.toSorted((a, b) => Number(isOwner(b)) - Number(isOwner(a))).map(({ user }) => user)
}

export function nameOf({ username, global_name: globalName }: Pick<APIUser, 'username' | 'global_name'>): string {
  return showable(globalName ?? username) || 'someone without a name'
}

export interface Identity {
  user: APIUser
  application: APIApplication
}

/** Contract: rejects with what `describeProblem` can put into words. */
export async function identify(rest: REST): Promise<Identity> {
  const { Routes } = await import('discord.js')
  const user = (await rest.get(Routes.user())) as Partial<APIUser> | undefined
  const application = (await rest.get(Routes.currentApplication())) as Partial<APIApplication> | undefined
  // A proxy or the page of a hotel answers in the name of others.
  if (typeof user?.id !== 'string' || typeof application?.id !== 'string') {
    throw new GatewayError(
      'config_invalid',
      `What answers at ${rest.options.api} is not Discord: check discordApiUrl, and what stands between`,
    )
  }
  return { user, application } as Identity
}

export function isRefusal(error: unknown): boolean {
  return statusOf(error) === 401
}

/** A sentence that says what to do. */
export function describeProblem(error: unknown, apiUrl: string): string {
  if (error instanceof GatewayError) return error.message
  const status = statusOf(error)
  if (isRefusal(error)) {
    return `Discord refuses the token: take a new one from the page Bot of your application (${DEVELOPER_PORTAL})`
  }
  if (status !== undefined && status >= 500) {
    return `Discord has trouble of its own (HTTP ${status}): try again later; https://discordstatus.com tells of it`
  }
  if (status !== undefined) return `Discord says: ${showable(messageOf(error))} (HTTP ${status})`
  const reason = networkReason(error)
  if (reason === undefined) {
    return `${showable(messageOf(error))}: try again, and look at https://discordstatus.com when it stays so`
  }
  return `${new URL(apiUrl).host} cannot be reached (${reason}): check the network, a firewall and discordApiUrl`
}

function statusOf(error: unknown): number | undefined {
  return error instanceof Error && 'status' in error && typeof error.status === 'number' ? error.status : undefined
}

/** Codes of Node.js are in capitals, those of discord.js are not. */
function networkReason(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'no answer in time'
  if ('code' in error && typeof error.code === 'string' && /^[A-Z0-9_]+$/.test(error.code)) return error.code
  return networkReason(error.cause)
}
