import type { APIMessage, RawFile, RESTPostAPIChannelMessageJSONBody } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
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
import { readAddress } from './channel-cache.js'

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
