// The records of the fake Discord, and the parts of the API's values that depend on nothing else.

import { ChannelType, GatewayIntentBits, Locale, MessageReferenceType } from 'discord.js'
import type { APIGuildMember, APIMessage, APIOverwrite, APIRole, APIUser } from 'discord.js'

export interface FakeGuild {
  id: string
  name: string
  ownerId: string
  roles: Map<string, APIRole>
  members: Map<string, FakeMember>
  channels: Map<string, FakeChannel>
  createdAt: number
}

export interface FakeMember {
  user: APIUser
  roles: string[]
  joinedAt: number
}

export interface FakeThread {
  ownerId: string
  isArchived: boolean
  isLocked: boolean
  archiveChangedAt: number
  createdAt: number
  messageCount: number
  totalMessageSent: number
  memberIds: Set<string>
}

export interface FakeChannel {
  id: string
  type: ChannelType
  name: string | null
  guild?: FakeGuild
  parentId?: string
  topic?: string
  overwrites: APIOverwrite[]
  /** The other person, in a direct message. */
  recipient?: APIUser
  lastMessageId: string | null
  thread?: FakeThread
  /** Oldest first. */
  messages: FakeMessage[]
}

export interface FakeMessage {
  /** Without dependent parts, such as reactions and the thread: `payload` adds those. */
  core: APIMessage
  channel: FakeChannel
  repliesTo?: FakeMessage | undefined
  /** The ids of those who reacted, by emoji. */
  reactions: Map<string, Set<string>>
  /** Visible to one person; in no list of messages. */
  isEphemeral: boolean
}

export interface StoredFile {
  name: string
  type: string
  content: Uint8Array
}

/** Assignable to every flags enum. */
export const NO_FLAGS = 0 as never

export function isForum({ type }: FakeChannel): boolean {
  return type === ChannelType.GuildForum || type === ChannelType.GuildMedia
}

/** The index of the first message newer than this one; messages are sorted by id. */
export function indexAfter(messages: FakeMessage[], id: string): number {
  let low = 0
  let high = messages.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const found = messages[middle]
    if (found && compareIds(found.core.id, id) <= 0) low = middle + 1
    else high = middle
  }
  return low
}

export function compareIds(left: string, right: string): number {
  if (left.length !== right.length) return left.length - right.length
  if (left === right) return 0
  return left < right ? -1 : 1
}

export function isoTime(at: number): string {
  return new Date(at).toISOString().replace('Z', '000+00:00')
}

export function memberPayload({ user, roles, joinedAt }: FakeMember): APIGuildMember {
  return {
    user,
    nick: null,
    avatar: null,
    roles: [...roles],
    joined_at: isoTime(joinedAt),
    premium_since: null,
    deaf: false,
    mute: false,
    pending: false,
    flags: NO_FLAGS,
  }
}

/** A guild as the API returns it, without the parts that only GUILD_CREATE has. */
export function guildFields(guild: FakeGuild) {
  return {
    id: guild.id,
    name: guild.name,
    icon: null,
    splash: null,
    discovery_splash: null,
    banner: null,
    description: null,
    owner_id: guild.ownerId,
    afk_channel_id: null,
    afk_timeout: 300 as const,
    verification_level: 0,
    default_message_notifications: 0,
    explicit_content_filter: 0,
    roles: [...guild.roles.values()],
    emojis: [],
    stickers: [],
    features: [],
    mfa_level: 0,
    application_id: null,
    system_channel_id: null,
    system_channel_flags: NO_FLAGS,
    rules_channel_id: null,
    vanity_url_code: null,
    premium_tier: 0,
    preferred_locale: Locale.EnglishUS,
    public_updates_channel_id: null,
    nsfw_level: 0,
    premium_progress_bar_enabled: false,
    hub_type: null,
    safety_alerts_channel_id: null,
    incidents_data: null,
  }
}

/** The message as seen without the message content intent. */
export function conceal(core: APIMessage): APIMessage {
  return { ...core, content: '', embeds: [], attachments: [], components: [] }
}

export function referenceTo({ core, channel }: FakeMessage): NonNullable<APIMessage['message_reference']> {
  return {
    type: MessageReferenceType.Default,
    message_id: core.id,
    channel_id: channel.id,
    ...(channel.guild ? { guild_id: channel.guild.id } : {}),
  }
}

export function messageIntents({ guild }: FakeChannel): number {
  return guild ? GatewayIntentBits.GuildMessages : GatewayIntentBits.DirectMessages
}

export function emptyChannel(id: string, type: ChannelType, name: string | null): FakeChannel {
  return { id, type, name, overwrites: [], lastMessageId: null, messages: [] }
}

export function newRole(id: string, name: string, permissions: bigint, position: number): APIRole {
  return {
    id,
    name,
    color: 0,
    colors: { primary_color: 0, secondary_color: null, tertiary_color: null },
    hoist: false,
    icon: null,
    unicode_emoji: null,
    position,
    permissions: String(permissions),
    managed: false,
    mentionable: false,
    flags: NO_FLAGS,
  }
}
