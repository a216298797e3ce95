import { type APIChannel, ChannelType } from 'discord.js'
import type { Place } from '../types.js'
import type { DiscordApi } from './api.js'

/** What never changes about a channel or a thread. */
export interface PlaceFacts {
  id: string
  type: ChannelType
  guildId?: string
  /** Of a thread. */
  parentId?: string
  /** Who opened a thread. */
  ownerId?: string
}

/** Those known from the gateway, and others as the API tells. */
export class Places {
  readonly #known = new Map<string, PlaceFacts>()

  constructor(private readonly api: Pick<DiscordApi, 'channel'>) {}

  learn(channel: APIChannel, guildId?: string): PlaceFacts {
    const guild = ('guild_id' in channel ? channel.guild_id : undefined) ?? guildId
    const facts: PlaceFacts = {
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

  async get(id: string, guildId?: string): Promise<PlaceFacts> {
    return this.#known.get(id) ?? this.learn(await this.api.channel(id), guildId)
  }
}

export function isThread(type: ChannelType): boolean {
  return [ChannelType.PublicThread, ChannelType.PrivateThread, ChannelType.AnnouncementThread].includes(type)
}

/** Where threads can be opened from a message. */
export function hasThreads(type: ChannelType): boolean {
  return [ChannelType.GuildText, ChannelType.GuildAnnouncement].includes(type)
}

/** The address of a thread names its channel, too: the thread of a message may have to be opened, or be gone. */
export function threadAddress(channelId: string, threadId: string): string {
  return `${channelId}/${threadId}`
}

/** `thread` is absent for what is no thread. */
export function readAddress(address: string): { channelId: string; threadId?: string } {
  const [channelId = '', threadId] = address.split('/')
  return { channelId, ...(threadId !== undefined && { threadId }) }
}

/** Where something that is said in a channel or thread belongs. */
export function placeOf(
  { id, parentId, guildId }: PlaceFacts,
  projectOf: (channelId: string) => string | undefined,
): Place {
  const projectId = projectOf(parentId ?? id)
  return {
    ...(parentId === undefined ? { address: id } : { address: threadAddress(parentId, id), parent: parentId }),
    ...(projectId !== undefined && { projectId }),
    ...(guildId === undefined && { isPrivate: true }),
  }
}
