// Inspects Discord with its own client. This file loads discord.js.

import { within } from '../../core/async.js'
import {
  type Channel,
  ChannelType,
  Client,
  Events,
  GatewayIntentBits,
  type Guild,
  type PermissionsString,
} from 'discord.js'
import type { GatewayConfig } from '../../config.js'
import { GatewayError } from '../../errors.js'
import { ClosableStrategy } from '../../channels/discord/connection.js'
import { identify, ownersOf, readsMessages } from '../../channels/discord/identity.js'
import type { ChannelFacts, DiscordFacts, GuildFacts } from './discord-findings.js'
import { inviteLink, nameOf, NEEDED_PERMISSIONS } from '../discord-needs.js'
import { printable } from '../../core/one-line.js'

const REQUEST_TIMEOUT_MS = 8_000

/** Contract: disconnected from Discord when it settles. */
export async function surveyDiscord(
  config: GatewayConfig,
  token: string,
  timeoutMs: number,
): Promise<Omit<DiscordFacts, 'admitted'>> {
  const leaving = new AbortController()
  const client = new Client({
    intents: [GatewayIntentBits.Guilds],
    rest: { api: config.discordApiUrl, timeout: REQUEST_TIMEOUT_MS, retries: 1 },
    ws: { buildStrategy: (manager) => new ClosableStrategy(manager, leaving.signal) },
    waitGuildTimeout: timeoutMs / 2,
  })
  client.rest.setToken(token)
  try {
    const facts = await within(timeoutMs, collect(client, token, config))
    if (facts) return facts
    const message = `Discord did not answer within ${timeoutMs / 1000} s. Check the network, any firewall that blocks WebSockets, and https://discordstatus.com`
    throw new GatewayError('config_invalid', message)
  } finally {
    leaving.abort()
    await client.destroy()
  }
}

async function collect(client: Client, token: string, config: GatewayConfig): Promise<Omit<DiscordFacts, 'admitted'>> {
  const { user, application } = await identify(client.rest)
  await logIn(client, token)
  const guilds = [...client.guilds.cache.values()]
  const { discordOwnerId } = config
  const people = [...(discordOwnerId === undefined ? [] : [discordOwnerId]), ...config.discordUsers]
  const named = [
    ...config.discordChannels,
    ...config.projects.flatMap(({ discordChannels = [] }) => discordChannels),
    ...(config.outputChannelId === undefined ? [] : [config.outputChannelId]),
  ]
  return {
    bot: { id: user.id, name: nameOf(user) },
    applicationId: application.id,
    inviteLink: await inviteLink(application.id),
    canReadMessages: readsMessages(application),
    owners:
      discordOwnerId === undefined
        ? ownersOf(application).map((owner) => ({ id: owner.id, name: nameOf(owner) }))
        : [{ id: discordOwnerId }],
    guilds: await Promise.all(guilds.map((guild) => guildFacts(guild))),
    members: new Map(await Promise.all(people.map(async (id) => [id, await findMember(guilds, id)] as const))),
    channels: new Map(
      await Promise.all([...new Set(named)].map(async (id) => [id, await findChannel(client, id)] as const)),
    ),
  }
}

/** Settles when every announced server is known. */
async function logIn(client: Client, token: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    client.once(Events.ClientReady, () => resolve())
    client.on(Events.Error, reject)
    client.on(Events.ShardError, reject)
    client.on(Events.ShardDisconnect, ({ code }) => {
      reject(new Error(`Discord closed the connection with code ${code}`))
    })
    client.login(token).catch(reject)
  })
}

async function guildFacts(guild: Guild): Promise<GuildFacts> {
  const channels = await Promise.all([...guild.channels.cache.values()].map((channel) => channelFacts(channel)))
  return {
    id: guild.id,
    // During an outage nothing else is known.
    name: guild.available ? printable(guild.name) : guild.id,
    isAvailable: guild.available,
    roles: [...guild.roles.cache.values()].map(({ id, name }) => ({ id, name: printable(name) })),
    channels: channels.filter((channel) => channel.kind === 'text'),
  }
}

async function channelFacts(channel: Channel): Promise<ChannelFacts> {
  if (channel.isDMBased()) return { id: channel.id, name: 'a direct message', kind: 'direct', missing: [] }
  const isText = channel.type === ChannelType.GuildText || channel.type === ChannelType.GuildAnnouncement
  const kind = channel.isThread() ? 'thread' : isText ? 'text' : channel.isTextBased() ? 'other' : 'non-text'
  const facts = { id: channel.id, name: `#${printable(channel.name)}`, guildId: channel.guild.id, kind } as const
  // Without its parent channel, permissions cannot be computed.
  if (channel.isThread() && !channel.parent) return { ...facts, missing: [] }
  const allowed = channel.permissionsFor(await channel.guild.members.fetchMe())
  const missing = NEEDED_PERMISSIONS.map(({ name }) => name).filter(
    (name) => isNeeded(name, kind) && !allowed.has(name),
  )
  return { ...facts, missing }
}

function isNeeded(name: PermissionsString, kind: ChannelFacts['kind']): boolean {
  switch (name) {
    case 'CreatePublicThreads':
      return kind === 'text'
    case 'SendMessagesInThreads':
      return kind === 'text' || kind === 'thread'
    case 'SendMessages':
      return kind !== 'thread'
    default:
      return true
  }
}

async function findMember(guilds: Guild[], id: string): Promise<string | undefined> {
  for (const guild of guilds) {
    const member = await guild.members.fetch(id).catch(unlessUnknown)
    if (member) return printable(member.displayName)
  }
  return undefined
}

async function findChannel(client: Client, id: string): Promise<ChannelFacts | undefined> {
  const channel = await client.channels.fetch(id).catch(unlessUnknown)
  return channel ? channelFacts(channel) : undefined
}

/** Something missing, or hidden from the bot, is a valid answer. */
function unlessUnknown(error: unknown): undefined {
  const status = error instanceof Error && 'status' in error ? error.status : undefined
  if (status !== 403 && status !== 404) throw error
  return undefined
}
