// Channels and threads: what is known of them, the addresses of conversations, and where our messages go.

import {
  type APIChannel,
  type APIMessage,
  type APIThreadChannel,
  ChannelType,
  type RawFile,
  type RESTPostAPIChannelMessageJSONBody,
} from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { Place } from '../types.js'
import {
  codeOf,
  type DiscordApi,
  MISSING_ACCESS,
  MISSING_PERMISSIONS,
  referenceTo,
  THREAD_ARCHIVED,
  THREAD_EXISTS,
  UNKNOWN_CHANNEL,
} from './api.js'

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

type Post = { message: RESTPostAPIChannelMessageJSONBody; files?: RawFile[]; signal?: AbortSignal | undefined }

/** Where our messages of a conversation go: to its thread, or to the channel if there can be no thread. */
export class Destinations {
  readonly #opening = new Map<string, Promise<'opened' | 'refused' | 'failed'>>()
  readonly #unusable = new Set<string>()

  constructor(
    private readonly api: Pick<DiscordApi, 'post' | 'openThread'>,
    private readonly log: Log,
  ) {}

  /** Opens the thread of an address, if it has one. Contract: never rejects; `failed` may succeed next time. */
  open(address: string, name: string): Promise<'opened' | 'refused' | 'failed'> {
    const { channelId, threadId } = readAddress(address)
    if (threadId === undefined) return Promise.resolve('opened')
    const already = this.#opening.get(address)
    if (already) return already
    const opening = this.#open(channelId, threadId, name).finally(() => this.#opening.delete(address))
    this.#opening.set(address, opening)
    return opening
  }

  /** Contract: waits for a thread that is being opened. */
  async channelId(address: string): Promise<string> {
    await this.#opening.get(address)
    const { channelId, threadId } = readAddress(address)
    return threadId === undefined || this.#unusable.has(threadId) ? channelId : threadId
  }

  async post(address: string, post: Post): Promise<APIMessage> {
    const { channelId, threadId } = readAddress(address)
    if (threadId === undefined || (await this.channelId(address)) === channelId) {
      return this.#postTo(channelId, post, threadId)
    }
    try {
      return await this.#postTo(threadId, post)
    } catch (error) {
      const code = codeOf(error)
      if (code === UNKNOWN_CHANNEL) {
        // A transient failure: the post is retried, and the thread with it.
        if ((await this.open(address, 'Conversation')) === 'failed') throw error
        try {
          return await this.#postTo(threadId, post)
        } catch (again) {
          if (codeOf(again) !== UNKNOWN_CHANNEL) throw again
        }
      } else if (!isClosed(code, post)) throw error
      this.log.warn('discord.thread-unusable', { threadId, code })
      this.#unusable.add(threadId)
      return this.#postTo(channelId, post, threadId)
    }
  }

  /** `about` is the message the thread was to be opened from. */
  #postTo(channelId: string, { message, files = [], signal }: Post, about?: string): Promise<APIMessage> {
    const reference = about === undefined ? {} : referenceTo(about)
    return this.api.post(channelId, { ...message, ...reference }, { files, signal })
  }

  async #open(channelId: string, threadId: string, name: string): Promise<'opened' | 'refused' | 'failed'> {
    try {
      await this.api.openThread(channelId, threadId, name)
      return 'opened'
    } catch (error) {
      const code = codeOf(error)
      if (code === THREAD_EXISTS) return 'opened'
      this.log.warn('discord.thread-not-opened', { channelId, error: messageOf(error) })
      return code === undefined ? 'failed' : 'refused'
    }
  }
}

/** Whether a thread is closed to us. With files, the missing permission may concern only them. */
function isClosed(code: number | undefined, { files = [] }: Post): boolean {
  return code === THREAD_ARCHIVED || code === MISSING_ACCESS || (code === MISSING_PERMISSIONS && files.length === 0)
}
