import { type APIChannel, ChannelType } from 'discord.js'
import type { Place } from '../types.js'
import type { DiscordApi } from './api.js'

/** The immutable facts about a channel or a thread. */
export interface ChannelFacts {
  id: string
  type: ChannelType
  guildId?: string
  /** Only for a thread. */
  parentId?: string
  /** The user who opened the thread. */
  ownerId?: string
}

/** Channels announced by the gateway; others are fetched from the API. */
export class ChannelCache {
  readonly #known = new Map<string, ChannelFacts>()

  constructor(private readonly api: Pick<DiscordApi, 'channel'>) {}

  learn(channel: APIChannel, guildId?: string): ChannelFacts {
    const guild = ('guild_id' in channel ? channel.guild_id : undefined) ?? guildId
    const facts: ChannelFacts = {
      id: channel.id,
      type: channel.type,
      ...(guild !== undefined && { guildId: guild }),
      ...(isThread(channel.type) && 'parent_id' in channel && channel.parent_id && { parentId: channel.parent_id }),
      ...('owner_id' in channel && channel.owner_id && { ownerId: channel.owner_id }),
    }
    this.#known.set(channel.id, facts)
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

/** `threadId` is absent unless it is a thread. */
export function readAddress(address: string): { channelId: string; threadId?: string } {
  const [channelId = '', threadId] = address.split('/')
  return { channelId, ...(threadId !== undefined && { threadId }) }
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
