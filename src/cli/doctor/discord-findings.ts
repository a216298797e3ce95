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
  /** `non-text`: categories and the like, which have no messages. */
  kind: 'text' | 'thread' | 'direct' | 'other' | 'non-text'
  missing: PermissionsString[]
}

export interface GuildFacts {
  id: string
  name: string
  /** False during a Discord outage. */
  isAvailable: boolean
  roles: { id: string; name: string }[]
  /** Channels where a mention can be answered. */
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
  if (canReadMessages) return good('the bot can read messages')
  return bad(
    'the bot cannot read messages, so the gateway does not serve Discord',
    `Turn on "Message Content Intent" and save: ${botPage(applicationId)}`,
  )
}

function guildFindings(config: Lists, facts: DiscordFacts): Finding[] {
  if (facts.guilds.length === 0)
    return [bad('the bot is not in any server', `Add it with this link: ${facts.inviteLink}`)]
  return facts.guilds.map((guild) => guildFinding(config, guild))
}

function guildFinding(config: Lists, guild: GuildFacts): Finding {
  const title = `server ${guild.name} (${guild.id})`
  if (!guild.isAvailable) {
    return doubtful(`${title}: unavailable now`, 'Discord may have an outage: see https://discordstatus.com')
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
    const advice = 'Add one, or remove the bot from the server'
    return config.discordChannels.length > 0
      ? doubtful(`${title}: none of its text channels is in discordChannels`, advice)
      : doubtful(`${title}: the bot sees no channel`, 'Give the bot\'s role "View Channels" there')
  }
  const gaps = gapsOf(config, served)
  const count = served.length === 1 ? '1 channel' : `${served.length} channels`
  if (gaps.length === 0) return good(`${title}: ${count}, with all permissions`)
  const isBroken = gaps.some(
    ({ isRequired, channels }) =>
      isRequired && (channels.length === served.length || channels.some(({ id }) => named.has(id))),
  )
  return {
    mark: isBroken ? '✗' : '!',
    text: `${title}: ${count}, permissions missing`,
    details: [
      ...gaps.map(({ label, without, channels }) => {
        const place =
          channels.length === served.length ? 'everywhere' : `in ${listed(channels.map(({ name }) => name))}`
        return `"${label}" ${place}: without it, ${without}`
      }),
      "Give them to the bot's role: in Server Settings, Roles, or in the channel's permissions",
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

/** Checks that every configured id exists and is reachable. */
function* listFindings(config: Lists, facts: DiscordFacts): Generator<Finding> {
  const guildOf = (id: string): GuildFacts | undefined => facts.guilds.find((guild) => guild.id === id)
  for (const id of config.discordGuilds.filter((id) => !guildOf(id))) {
    yield bad(`discordGuilds: the bot is not in the server ${id}`, `Add it with ${facts.inviteLink}, or remove the id`)
  }
  for (const id of config.discordChannels) yield* channelFindings('discordChannels', id, config, facts)
  for (const { id: project, discordChannels = [] } of config.projects) {
    for (const id of discordChannels) yield* channelFindings(`projects.${project}.discordChannels`, id, config, facts)
  }
  const owner = config.discordOwnerId === undefined ? [] : [['discordOwnerId', config.discordOwnerId] as const]
  const people = [...owner, ...config.discordUsers.map((id) => ['discordUsers', id] as const)]
  for (const [place, id] of people.filter(([, id]) => facts.members.get(id) === undefined)) {
    yield doubtful(`${place}: ${id} is in none of the bot's servers`, 'Check the id, have them join, or remove the id')
  }
  for (const id of config.discordRoles) {
    const everyone = guildOf(id)
    const isKnown = facts.guilds.some((guild) => guild.roles.some((role) => role.id === id))
    if (everyone) {
      const problem = `discordRoles: ${id} is @everyone of ${everyone.name}, which lets nobody in`
      yield bad(problem, 'Put it in discordGuilds instead')
    } else if (!isKnown) {
      yield doubtful(`discordRoles: none of the bot's servers has the role ${id}`, 'Check the id, or remove it')
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
    yield bad(`${place}: ${missing}`, "Give it to the bot's role there")
  } else if (guild && discordGuilds.length > 0 && !discordGuilds.includes(guild.id)) {
    const advice = `Add ${guild.id} to discordGuilds, or remove the channel`
    yield doubtful(`${place}: ${id} is in ${guild.name}, where only the owner may talk`, advice)
  } else if (discordChannels.length > 0 && !discordChannels.includes(id)) {
    yield doubtful(`${place}: only the owner may talk in ${channel?.name}`, `Add ${id} to discordChannels, too`)
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
  return [bad(`outputChannelId: ${missing}`, "Give it to the bot's role there")]
}

/** Empty if no relevant permission is missing. */
function missingIn(channel: ChannelFacts | undefined, counts: (permission: NeededPermission) => boolean): string {
  const missing = NEEDED_PERMISSIONS.filter((one) => channel?.missing.includes(one.name) && counts(one))
  if (missing.length === 0) return ''
  return `${missing.map(({ label }) => `"${label}"`).join(' and ')} is missing in ${channel?.name}`
}

function unreachable(id: string, facts: DiscordFacts): { text: string; advice: string } | undefined {
  const guild = facts.guilds.find((found) => found.id === id)
  if (guild) return { text: `${id} is the server ${guild.name}`, advice: 'Use the id of one of its channels' }
  const channel = facts.channels.get(id)
  if (!channel || !isSeen(channel)) {
    const advice = 'Give the bot\'s role "View Channels" there, add the bot to that server, or check the id'
    return { text: `the bot cannot see ${channel ? `${channel.name} (${id})` : `the channel ${id}`}`, advice }
  }
  if (channel.kind === 'non-text') {
    return { text: `${channel.name} (${id}) is not a text channel`, advice: 'Use a text channel' }
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
    return good(`only the owner (${owners}) may talk to it; to let others in, see docs/discord.md`)
  }
  const who = people === '' ? 'everyone' : `everyone in ${people}`
  const configured = places === '' ? who : `${who}, within ${places}`
  const others = [
    ...(people === '' && places === '' ? [] : [configured]),
    ...(admitted.length === 0 ? [] : [`${listed(admitted)} (let in with /allow)`]),
  ]
  return good(`these may talk to it: the owner (${owners}); ${others.join('; ')}`)
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
