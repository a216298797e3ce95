// Discord's REST API, its error codes and its ids.

import {
  type APIChannel,
  type APIGuildMember,
  type APIInteractionResponse,
  type APIMessage,
  type APIThreadChannel,
  DiscordAPIError,
  type MessageFlags,
  type RawFile,
  REST,
  type RESTPatchAPIChannelMessageJSONBody,
  type RESTPostAPIApplicationCommandsJSONBody,
  type RESTPostAPIChannelMessageJSONBody,
} from 'discord.js'
import { wait } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'

/** See https://discord.com/developers/docs/topics/opcodes-and-status-codes#json */
export const UNKNOWN_CHANNEL = 10003
export const UNKNOWN_MESSAGE = 10008
export const ALREADY_ACKNOWLEDGED = 40060
export const MISSING_ACCESS = 50001
export const MISSING_PERMISSIONS = 50013
export const THREAD_ARCHIVED = 50083
const CANNOT_REPLY = 160002
export const THREAD_EXISTS = 160004

const RETRY_MS = 2_000

/** The calls to Discord's API that the channel needs. Rate limits are waited out, server errors retried. */
export class DiscordApi {
  readonly rest: REST
  /** Has its own queues: discord.js would make an answer wait for an edit, although Discord counts them separately. */
  readonly #edits: REST
  /** For whatever may be late: Discord allows 50 requests a second, and answers come first. */
  readonly #indicators: REST

  constructor(
    apiUrl: string,
    private readonly token: string,
  ) {
    // Together at most the 50 requests a second that Discord allows.
    this.rest = openRest(apiUrl, token, 30)
    this.#edits = openRest(apiUrl, token, 10)
    this.#indicators = openRest(apiUrl, token, 10)
  }

  /** Pings nobody and never contains our own token, whatever an agent writes. */
  #safe<Message extends { content?: string | null | undefined }>(message: Message) {
    const content = message.content?.replaceAll(this.token, '[secret]')
    return { ...message, ...(content !== undefined && { content }), allowed_mentions: { parse: [] } }
  }

  async setCommands(applicationId: string, commands: RESTPostAPIApplicationCommandsJSONBody[]): Promise<void> {
    await this.rest.put(`/applications/${applicationId}/commands`, { body: commands })
  }

  async channel(id: string): Promise<APIChannel> {
    return (await this.rest.get(`/channels/${id}`)) as APIChannel
  }

  async directChannel(userId: string): Promise<APIChannel> {
    return (await this.rest.post('/users/@me/channels', { body: { recipient_id: userId } })) as APIChannel
  }

  async member(guildId: string, userId: string): Promise<APIGuildMember> {
    return (await this.rest.get(`/guilds/${guildId}/members/${userId}`)) as APIGuildMember
  }

  /** The first messages after this id, oldest first. */
  messagesAfter(channelId: string, after: string, limit = 100): Promise<APIMessage[]> {
    return this.#messages(channelId, { after, limit: String(limit) })
  }

  /** The latest messages, oldest first. */
  latestMessages(channelId: string): Promise<APIMessage[]> {
    return this.#messages(channelId, { limit: '100' })
  }

  async #messages(channelId: string, page: Record<string, string>): Promise<APIMessage[]> {
    const query = new URLSearchParams(page)
    const newestFirst = (await this.rest.get(`/channels/${channelId}/messages`, { query })) as APIMessage[]
    return newestFirst.toReversed()
  }

  /** Contract: where we may not reply to a message, it is posted without the reference. */
  async post(
    channelId: string,
    message: RESTPostAPIChannelMessageJSONBody,
    options: { files?: RawFile[]; signal?: AbortSignal | undefined } = {},
  ): Promise<APIMessage> {
    const { message_reference: reference, ...plain } = message
    const request = { ...options, body: this.#safe(message) }
    try {
      return (await this.rest.post(`/channels/${channelId}/messages`, request)) as APIMessage
    } catch (error) {
      if (codeOf(error) === CANNOT_REPLY && reference) return this.post(channelId, plain, options)
      throw error
    }
  }

  async edit(
    channelId: string,
    messageId: string,
    message: RESTPatchAPIChannelMessageJSONBody,
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#edits.patch(`/channels/${channelId}/messages/${messageId}`, { body: this.#safe(message), signal })
  }

  async remove(channelId: string, messageId: string): Promise<void> {
    await this.rest.delete(`/channels/${channelId}/messages/${messageId}`)
  }

  async react(channelId: string, messageId: string, emoji: string): Promise<void> {
    const reaction = encodeURIComponent(emoji)
    await this.#indicators.put(`/channels/${channelId}/messages/${messageId}/reactions/${reaction}/@me`)
  }

  async unreact(channelId: string, messageId: string, emoji: string): Promise<void> {
    const reaction = encodeURIComponent(emoji)
    await this.#indicators.delete(`/channels/${channelId}/messages/${messageId}/reactions/${reaction}/@me`)
  }

  async type(channelId: string): Promise<void> {
    await this.#indicators.post(`/channels/${channelId}/typing`)
  }

  /** Contract: the thread has the id of the message. */
  async openThread(channelId: string, messageId: string, name: string): Promise<APIThreadChannel> {
    const body = { name, auto_archive_duration: 1440 }
    return (await this.rest.post(`/channels/${channelId}/messages/${messageId}/threads`, { body })) as APIThreadChannel
  }

  async respond(interaction: { id: string; token: string }, body: APIInteractionResponse): Promise<void> {
    await this.rest.post(`/interactions/${interaction.id}/${interaction.token}/callback`, { body, auth: false })
  }

  /** The message that answered an interaction. */
  async response({ application_id, token }: { application_id: string; token: string }): Promise<APIMessage> {
    return (await this.rest.get(`/webhooks/${application_id}/${token}/messages/@original`, {
      auth: false,
    })) as APIMessage
  }

  async editResponse(interaction: { application_id: string; token: string }, content: string): Promise<void> {
    const { application_id, token } = interaction
    const body = this.#safe({ content })
    await this.rest.patch(`/webhooks/${application_id}/${token}/messages/@original`, { body, auth: false })
  }

  async followUp(
    interaction: { application_id: string; token: string },
    content: string,
    options: { flags?: MessageFlags },
  ): Promise<void> {
    const body = this.#safe({ content, ...options })
    await this.rest.post(`/webhooks/${interaction.application_id}/${interaction.token}`, { body, auth: false })
  }
}

function openRest(api: string, token: string, globalRequestsPerSecond: number): REST {
  const rest = new REST({ version: '10', api, globalRequestsPerSecond }).setToken(token)
  // discord.js drops the token after a single 401, even if that was an outage of Discord.
  rest.on('response', (_, { status }) => {
    if (status === 401) setImmediate(() => rest.setToken(token))
  })
  return rest
}

/** Makes a message a reply. */
export function referenceTo(messageId: string) {
  return { message_reference: { message_id: messageId, fail_if_not_exists: false } }
}

/** Discord's own error code. */
export function codeOf(error: unknown): number | undefined {
  return error instanceof DiscordAPIError ? Number(error.code) : undefined
}

/**
 * Retries until Discord answers. Contract: undefined if Discord refuses, which is logged, or if the gateway stops;
 * network failures and outages of Discord are waited out.
 */
export async function untilAnswered<T>(
  ask: () => Promise<T>,
  { signal, log }: { signal: AbortSignal; log: Log },
): Promise<T | undefined> {
  while (!signal.aborted) {
    try {
      return await ask()
    } catch (error) {
      // A 401 may be temporary, and says nothing about the request itself.
      if (error instanceof DiscordAPIError && error.status !== 401) {
        log.info('discord.refused', { error: messageOf(error), code: error.code })
        return undefined
      }
      log.warn('discord.not-reached', { error: messageOf(error) })
      await wait(RETRY_MS, { signal }).catch(() => {})
    }
  }
  return undefined
}

/** The epoch of Discord's ids: 2015. */
const EPOCH_MS = 1_420_070_400_000n

/** The smallest id possible at this time. Ids grow with time across all of Discord. */
export function snowflakeAt(timeMs: number): string {
  const sinceEpoch = BigInt(Math.floor(timeMs)) - EPOCH_MS
  return String((sinceEpoch > 0n ? sinceEpoch : 0n) << 22n)
}

export function isAfter(id: string, other: string): boolean {
  return BigInt(id) > BigInt(other)
}

export function isSnowflake(id: string | undefined): id is string {
  return id !== undefined && /^\d+$/.test(id)
}
