// Turns what "doctor" saw on Discord into findings.

import type { PermissionsString } from 'discord.js'
import type { GatewayConfig } from '../../config.js'
import { botPage, NEEDED_PERMISSIONS, type NeededPermission } from '../discord-needs.js'
import { bad, doubtful, type Finding, good } from './findings.js'

export interface ChannelFacts {
  id: string
  name: string
  /** Absent for a direct message. */
  guildId?: string
  /** `non-text` are categories and the like, which hold no messages. */
  kind: 'text' | 'thread' | 'direct' | 'other' | 'non-text'
  missing: PermissionsString[]
}

export interface GuildFacts {
  id: string
  name: string
  /** False during a Discord outage. */
  isAvailable: boolean
  roles: { id: string; name: string }[]
  /** Channels in which a mention can be answered. */
  channels: ChannelFacts[]
}

export interface DiscordFacts {
  bot: { id: string; name: string }
  applicationId: string
  inviteLink: string
  canReadMessages: boolean
  /** People who may always talk to it. */
  owners: { id: string; name?: string }[]
  guilds: GuildFacts[]
  /** Names of those let in by `/allow`. */
  admitted: string[]
  /** Names of people in the configuration; undefined for those in none of the servers. */
  members: Map<string, string | undefined>
  /** Channels in the configuration; undefined for those that do not exist or that the bot cannot see. */
  channels: Map<string, ChannelFacts | undefined>
}

type Lists = Pick<
  GatewayConfig,
  | 'discordOwnerId'
  | 'discordGuilds'
  | 'discordChannels'
  | 'discordUsers'
  | 'discordRoles'
  | 'discordThreads'
  | 'outputChannelId'
  | 'projects'
>

/** Nobody reads more names than this. */
const MAX_NAMES = 5

export function discordFindings(config: Lists, facts: DiscordFacts): Finding[] {
  return [
    good(`the token works; the bot is ${facts.bot.name} (${facts.bot.id})`),
    intentFinding(facts),
    ...guildFindings(config, facts),
    ...listFindings(config, facts),
    ...outputFindings(config, facts),
    audienceFinding(config, facts),
  ]
}

function intentFinding({ canReadMessages, applicationId }: DiscordFacts): Finding {
  if (canReadMessages) return good('the bot may read messages')
  return bad(
    'the bot may not read messages, so the gateway does not serve Discord',
    `Switch "Message Content Intent" on and save: ${botPage(applicationId)}`,
  )
}

function guildFindings(config: Lists, facts: DiscordFacts): Finding[] {
  if (facts.guilds.length === 0) return [bad('the bot is in no server', `Add it with this link: ${facts.inviteLink}`)]
  return facts.guilds.map((guild) => guildFinding(config, guild))
}

function guildFinding(config: Lists, guild: GuildFacts): Finding {
  const title = `server ${guild.name} (${guild.id})`
  if (!guild.isAvailable) {
    return doubtful(`${title}: not available now`, 'Discord has an outage: see https://discordstatus.com')
  }
  if (config.discordGuilds.length > 0 && !config.discordGuilds.includes(guild.id)) {
    return good(`${title}: not in discordGuilds, so only the owner may talk to it there`)
  }
  const named = namedChannels(config)
  const isServed = ({ id }: ChannelFacts): boolean =>
    config.discordChannels.length === 0 || config.discordChannels.includes(id)
  // A configured channel that is not visible is reported with its list.
  const served = guild.channels.filter((channel) => isServed(channel) && isSeen(channel))
  if (served.length === 0) {
    const advice = 'Add one, or let the bot leave the server'
    return config.discordChannels.length > 0
      ? doubtful(`${title}: none of its text channels is in discordChannels`, advice)
      : doubtful(`${title}: the bot sees no channel`, 'Give the role of the bot "View Channels" there')
  }
  const gaps = gapsOf(config, served)
  const count = served.length === 1 ? '1 channel' : `${served.length} channels`
  if (gaps.length === 0) return good(`${title}: ${count}, with every permission`)
  const isBroken = gaps.some(
    ({ isRequired, channels }) =>
      isRequired && (channels.length === served.length || channels.some(({ id }) => named.has(id))),
  )
  return {
    mark: isBroken ? '✗' : '!',
    text: `${title}: ${count}, and permissions are missing`,
    details: [
      ...gaps.map(({ label, without, channels }) => {
        const place =
          channels.length === served.length ? 'everywhere' : `in ${listed(channels.map(({ name }) => name))}`
        return `"${label}" ${place}: without it, ${without}`
      }),
      'Give them to the role of the bot: Server Settings, Roles, or the permissions of a channel',
    ],
  }
}

/** Missing permissions, and where. */
function gapsOf({ discordThreads }: Lists, channels: ChannelFacts[]) {
  return NEEDED_PERMISSIONS.filter(({ name }) => discordThreads || name !== 'CreatePublicThreads')
    .map((permission) => ({
      ...permission,
      channels: channels.filter(({ missing }) => missing.includes(permission.name)),
    }))
    .filter(({ channels }) => channels.length > 0)
}

/** Every configured id must exist and be reachable. */
function* listFindings(config: Lists, facts: DiscordFacts): Generator<Finding> {
  const guildOf = (id: string): GuildFacts | undefined => facts.guilds.find((guild) => guild.id === id)
  for (const id of config.discordGuilds.filter((id) => !guildOf(id))) {
    yield bad(`discordGuilds: the bot is in no server ${id}`, `Add it with ${facts.inviteLink}, or take it out`)
  }
  for (const id of config.discordChannels) yield* channelFindings('discordChannels', id, config, facts)
  for (const { id: project, discordChannels = [] } of config.projects) {
    for (const id of discordChannels) yield* channelFindings(`projects.${project}.discordChannels`, id, config, facts)
  }
  const owner = config.discordOwnerId === undefined ? [] : [['discordOwnerId', config.discordOwnerId] as const]
  const people = [...owner, ...config.discordUsers.map((id) => ['discordUsers', id] as const)]
  for (const [place, id] of people.filter(([, id]) => facts.members.get(id) === undefined)) {
    yield doubtful(`${place}: ${id} is in no server of the bot`, 'Copy the id again, let them join, or take it out')
  }
  for (const id of config.discordRoles) {
    const everyone = guildOf(id)
    const isKnown = facts.guilds.some((guild) => guild.roles.some((role) => role.id === id))
    if (everyone) {
      const problem = `discordRoles: ${id} is @everyone of ${everyone.name}, which lets nobody in`
      yield bad(problem, 'Name it in discordGuilds instead')
    } else if (!isKnown) {
      yield doubtful(`discordRoles: no server of the bot has a role ${id}`, 'Copy the id again, or take it out')
    }
  }
}

function* channelFindings(place: string, id: string, config: Lists, facts: DiscordFacts): Generator<Finding> {
  const { discordGuilds, discordChannels } = config
  const problem = unreachable(id, facts)
  const channel = facts.channels.get(id)
  // Text channels are reported with their server.
  const missing = channel?.kind === 'text' ? '' : missingIn(channel, ({ isRequired }) => isRequired)
  const guild = facts.guilds.find(({ id }) => id === channel?.guildId)
  if (problem) {
    yield bad(`${place}: ${problem.text}`, problem.advice)
  } else if (missing !== '') {
    yield bad(`${place}: ${missing}`, 'Give it to the role of the bot there')
  } else if (guild && discordGuilds.length > 0 && !discordGuilds.includes(guild.id)) {
    const advice = `Add ${guild.id} to discordGuilds, or take the channel out`
    yield doubtful(`${place}: ${id} is in ${guild.name}, where only the owner may talk`, advice)
  } else if (discordChannels.length > 0 && !discordChannels.includes(id)) {
    yield doubtful(`${place}: only the owner may talk in ${channel?.name}`, `Add ${id} to discordChannels as well`)
  }
}

function outputFindings({ outputChannelId: id }: Lists, facts: DiscordFacts): Finding[] {
  if (id === undefined) return []
  const problem = unreachable(id, facts)
  if (problem) return [bad(`outputChannelId: ${problem.text}`, problem.advice)]
  const channel = facts.channels.get(id)
  const missing = missingIn(channel, ({ name }) =>
    name === 'SendMessagesInThreads' ? channel?.kind === 'thread' : name === 'SendMessages' || name === 'AttachFiles',
  )
  if (missing === '') return [good(`outputChannelId: ${channel?.name} can be reached`)]
  return [bad(`outputChannelId: ${missing}`, 'Give it to the role of the bot there')]
}

/** Empty if no relevant permission is missing. */
function missingIn(channel: ChannelFacts | undefined, counts: (permission: NeededPermission) => boolean): string {
  const missing = NEEDED_PERMISSIONS.filter((one) => channel?.missing.includes(one.name) && counts(one))
  if (missing.length === 0) return ''
  return `${missing.map(({ label }) => `"${label}"`).join(' and ')} is missing in ${channel?.name}`
}

function unreachable(id: string, facts: DiscordFacts): { text: string; advice: string } | undefined {
  const guild = facts.guilds.find((found) => found.id === id)
  if (guild) return { text: `${id} is the server ${guild.name}`, advice: 'Name one of its channels' }
  const channel = facts.channels.get(id)
  if (!channel || !isSeen(channel)) {
    const advice = 'Give the role of the bot "View Channels" there, add the bot to that server, or copy the id again'
    return { text: `the bot does not see ${channel ? `${channel.name} (${id})` : `a channel ${id}`}`, advice }
  }
  if (channel.kind === 'non-text') {
    return { text: `${channel.name} (${id}) is not a text channel`, advice: 'Name a text channel' }
  }
  return undefined
}

function audienceFinding(config: Lists, facts: DiscordFacts): Finding {
  const owners = listed(facts.owners.map(({ id, name }) => name ?? facts.members.get(id) ?? id))
  const named = (...lists: ('discordGuilds' | 'discordChannels' | 'discordUsers' | 'discordRoles')[]): string =>
    lists.filter((list) => config[list].length > 0).join(' and ')
  const places = named('discordGuilds', 'discordChannels')
  const people = named('discordUsers', 'discordRoles')
  const { admitted } = facts
  if (people === '' && places === '' && admitted.length === 0) {
    return good(`nobody but the owner (${owners}) may talk to it; docs/discord.md says how to let others in`)
  }
  const who = people === '' ? 'everybody' : `those of ${people}`
  const configured = places === '' ? who : `${who} in the places of ${places}`
  const others = [
    ...(people === '' && places === '' ? [] : [configured]),
    ...(admitted.length === 0 ? [] : [`${listed(admitted)} by /allow`]),
  ]
  return good(`the owner (${owners}) may talk to it, and ${others.join(', and ')}`)
}

function namedChannels({ discordChannels, projects }: Lists): Set<string> {
  return new Set([...discordChannels, ...projects.flatMap((project) => project.discordChannels ?? [])])
}

function isSeen({ missing }: ChannelFacts): boolean {
  return !missing.includes('ViewChannel')
}

function listed(names: string[]): string {
  const shown = names.slice(0, MAX_NAMES).join(', ')
  return names.length > MAX_NAMES ? `${shown} and ${names.length - MAX_NAMES} more` : shown
}
