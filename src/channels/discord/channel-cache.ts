import { type APIChannel, type APIThreadChannel, ChannelType } from 'discord.js'
import type { Place } from '../types.js'
import type { DiscordApi } from './api.js'

/** The immutable facts about a channel or a thread. */
export interface ChannelFacts {
  id: string
  type: ChannelType
  guildId?: string | undefined
  /** Only for a thread. */
  parentId?: string | undefined
  /** The user who opened the thread. */
  ownerId?: string | undefined
}

/** Channels announced by the gateway; others are fetched from the API. */
export class ChannelCache {
  readonly #known = new Map<string, ChannelFacts>()

  constructor(private readonly api: Pick<DiscordApi, 'channel'>) {}

  learn(channel: APIChannel, guildId?: string): ChannelFacts {
    const { id, type, guild_id, parent_id, owner_id: ownerId } = channel as APIChannel & Partial<APIThreadChannel>
    const parentId = isThread(type) ? (parent_id ?? undefined) : undefined
    const facts: ChannelFacts = { id, type, guildId: guild_id ?? guildId, parentId, ownerId }
    this.#known.set(id, facts)
    return facts
  }

  forget(id: string): void {
    this.#known.delete(id)
  }

  async get(id: string, guildId?: string): Promise<ChannelFacts> {
    return this.#known.get(id) ?? this.learn(await this.api.channel(id), guildId)
  }
}

export function isThread(type: ChannelType): boolean {
  return [ChannelType.PublicThread, ChannelType.PrivateThread, ChannelType.AnnouncementThread].includes(type)
}

/** Whether a thread can be opened from a message here. */
export function hasThreads(type: ChannelType): boolean {
  return [ChannelType.GuildText, ChannelType.GuildAnnouncement].includes(type)
}

/** A thread's address includes its channel, since the thread may still have to be opened, or be gone. */
export function threadAddress(channelId: string, threadId: string): string {
  return `${channelId}/${threadId}`
}

/** `threadId` is undefined unless it is a thread. */
export function readAddress(address: string): { channelId: string; threadId: string | undefined } {
  const [channelId = '', threadId] = address.split('/')
  return { channelId, threadId }
}

/** The conversation that a message in a channel or thread belongs to. */
export function placeOf(
  { id, parentId, guildId }: ChannelFacts,
  projectOf: (channelId: string) => string | undefined,
): Place {
  const projectId = projectOf(parentId ?? id)
  return {
    ...(parentId === undefined ? { address: id } : { address: threadAddress(parentId, id), parent: parentId }),
    ...(projectId !== undefined && { projectId }),
    ...(guildId === undefined && { isPrivate: true }),
  }
}
