// Finds out who the bot is, or why Discord does not say. Imports only types from discord.js, since "doctor" uses it
// too.

import type { APIApplication, APITeamMember, APIUser, REST, TeamMemberMembershipState } from 'discord.js'
import { GatewayError, messageOf } from '../../errors.js'
import { printable } from '../../core/one-line.js'

export const DEVELOPER_PORTAL = 'https://discord.com/developers/applications'

export interface Identity {
  user: APIUser
  application: APIApplication
}

/** Contract: rejects with an error that `describeProblem` can explain. */
export async function identify(rest: REST, signal?: AbortSignal): Promise<Identity> {
  const options = signal ? { signal } : {}
  const user = (await rest.get('/users/@me', options)) as Partial<APIUser> | undefined
  const application = (await rest.get('/applications/@me', options)) as Partial<APIApplication> | undefined
  // A proxy or a captive portal may answer in Discord's place.
  if (typeof user?.id !== 'string' || typeof application?.id !== 'string') {
    throw new GatewayError(
      'config_invalid',
      `The server at ${rest.options.api} is not Discord: check discordApiUrl and any proxy in between`,
    )
  }
  return { user, application } as Identity
}

// https://discord.com/developers/docs/resources/application#application-object-application-flags
const READS_MESSAGES = 1 << 18
/** For a bot that Discord has not verified. */
const READS_MESSAGES_LIMITED = 1 << 19

/** Whether the bot receives the content of messages. */
export function readsMessages({ flags }: Pick<APIApplication, 'flags'>): boolean {
  return (flags & (READS_MESSAGES | READS_MESSAGES_LIMITED)) !== 0
}

// https://discord.com/developers/docs/topics/teams#data-models-membership-state-enum
const ACCEPTED: TeamMemberMembershipState = 2

/** The owners of an application, the team's owner first. */
export function ownersOf({ owner, team }: Pick<APIApplication, 'owner' | 'team'>): APIUser[] {
  if (!team) return owner ? [owner] : []
  const isOwner = ({ user }: APITeamMember): boolean => user.id === team.owner_user_id
  const members = team.members.filter(({ membership_state }) => membership_state === ACCEPTED)
  return members.toSorted((a, b) => Number(isOwner(b)) - Number(isOwner(a))).map(({ user }) => user)
}

export function isRefusal(error: unknown): boolean {
  return statusOf(error) === 401
}

/** A sentence telling the operator what to do. */
export function describeProblem(error: unknown, apiUrl: string): string {
  if (error instanceof GatewayError) return error.message
  const status = statusOf(error)
  if (isRefusal(error)) {
    return `Discord rejected the token: get a new one on the Bot page of your application (${DEVELOPER_PORTAL})`
  }
  if (status !== undefined && status >= 500) {
    return `Discord is having problems (HTTP ${status}): see https://discordstatus.com, and try again later`
  }
  if (status !== undefined) return `Discord says: ${printable(messageOf(error))} (HTTP ${status})`
  const reason = networkReason(error)
  if (reason === undefined) {
    return `${printable(messageOf(error))}: try again, and see https://discordstatus.com if it persists`
  }
  return `${new URL(apiUrl).host} cannot be reached (${reason}): check the network, any firewall and discordApiUrl`
}

function statusOf(error: unknown): number | undefined {
  return error instanceof Error && 'status' in error && typeof error.status === 'number' ? error.status : undefined
}

/** Error codes of Node.js are in capitals, those of discord.js are not. */
function networkReason(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'no answer in time'
  if ('code' in error && typeof error.code === 'string' && /^[A-Z0-9_]+$/.test(error.code)) return error.code
  return networkReason(error.cause)
}
