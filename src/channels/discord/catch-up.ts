// Fetches what was said while we were away. After a resumed session Discord replays it; after a new one it does not, so
// every channel with something newer than the cursor is read.

import type { APIChannel, APIMessage, GatewayGuildCreateDispatchData } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { ChannelHost } from '../types.js'
import { type DiscordApi, isAfter, snowflakeAt, untilAnswered } from './api.js'
import type { Cursor } from './cursor.js'
import { readAddress } from './destinations.js'

interface CatchUpOptions {
  api: Pick<DiscordApi, 'messagesAfter' | 'directChannel'>
  host: Pick<ChannelHost, 'addresses'>
  cursor: Cursor
  /** Queues the work behind what has begun in the same channel. Contract: never rejects. */
  inLane(channelId: string, work: () => Promise<void>): Promise<void>
  /** The users whose direct messages are checked. */
  directUserIds(): Promise<string[]>
  onMissed(message: APIMessage, guildId: string | undefined): Promise<void>
  signal: AbortSignal
  log: Log
  now: () => number
}

/** One session's search for missed messages. */
interface Round {
  /** The servers that have not appeared yet, each with the id to read from. */
  waitingFor: Map<string, string>
  /** The channels and threads the servers have listed. */
  named: Set<string>
  timer: NodeJS.Timeout
  /** Releases the cursor. */
  release: () => void
}

/** Older messages are no longer answered. */
const MISSED_MS = 24 * 3_600_000
/** Per channel; anyone who says more than that in a day is not waiting for an answer. */
const MAX_MISSED = 1_000
const PAGE = 100
/** An inactive thread is archived after a day; an active one is listed by its server. */
const KNOWN_CONVERSATIONS_MS = MISSED_MS + 24 * 3_600_000
/** How long to wait for the servers to appear before reading the other conversations. */
const SERVERS_WITHIN_MS = 15_000

export class CatchUp {
  #round: Round | undefined
  /** The `waitingFor` of the latest round, even if it is over. */
  #unseenServers: Round['waitingFor'] = new Map()

  constructor(private readonly options: CatchUpOptions) {}

  /** Starts a round for a new session; its servers appear one by one. */
  begin(guildIds: string[]): void {
    if (this.#round) void this.#finish(this.#round)
    const after = this.#after()
    const round: Round = {
      waitingFor: new Map(guildIds.map((id) => [id, this.#unseenServers.get(id) ?? after])),
      named: new Set(),
      timer: setTimeout(() => void this.#finish(round), SERVERS_WITHIN_MS).unref(),
      release: this.options.cursor.hold(),
    }
    this.#unseenServers = round.waitingFor
    this.#round = round
    if (guildIds.length === 0) void this.#finish(round)
  }

  /** Called when a server appears: at the start of a session, or after an outage of its own. */
  server({ id: guildId, channels, threads }: GatewayGuildCreateDispatchData): void {
    const round = this.#round
    const after = this.#unseenServers.get(guildId) ?? this.#after()
    for (const channel of [...channels, ...threads]) {
      round?.named.add(channel.id)
      if (hasNews(channel, after)) this.#read(channel.id, after, guildId)
    }
    this.#unseenServers.delete(guildId)
    if (round?.waitingFor.size === 0) void this.#finish(round)
  }

  /** Reads the conversations that no server listed: direct messages and archived threads. */
  async #finish(round: Round): Promise<void> {
    clearTimeout(round.timer)
    if (this.#round === round) this.#round = undefined
    const { api, host, directUserIds, signal, now } = this.options
    const after = this.#after()
    const addresses = await untilAnswered(() => host.addresses(now() - KNOWN_CONVERSATIONS_MS), this.options)
    const known = (addresses ?? []).map(readAddress).map(({ channelId, threadId }) => threadId ?? channelId)
    const userIds = await untilAnswered(directUserIds, this.options)
    const direct = await Promise.all(
      (userIds ?? []).map((id) => untilAnswered(() => api.directChannel(id), this.options)),
    )
    const withNews = direct.flatMap((channel) => (channel && hasNews(channel, after) ? [channel.id] : []))
    for (const id of new Set([...known, ...withNews])) if (!round.named.has(id)) this.#read(id, after)
    if (!signal.aborted) round.release()
  }

  #after(): string {
    const oldest = snowflakeAt(this.options.now() - MISSED_MS)
    const { after } = this.options.cursor
    return isAfter(after, oldest) ? after : oldest
  }

  /** Runs in the channel's lane, so new messages there come after the missed ones. */
  #read(channelId: string, after: string, guildId?: string): void {
    const { cursor, inLane, signal } = this.options
    const release = cursor.hold()
    void inLane(channelId, () => this.#readAll(channelId, after, guildId)).finally(() => {
      // Whatever was not read to the end is fetched at the next start.
      if (!signal.aborted) release()
    })
  }

  async #readAll(channelId: string, after: string, guildId: string | undefined): Promise<void> {
    const { api, onMissed, signal, log } = this.options
    let last = after
    for (let count = 0; count < MAX_MISSED && !signal.aborted; count += PAGE) {
      const after = last
      const page = (await untilAnswered(() => api.messagesAfter(channelId, after, PAGE), this.options)) ?? []
      for (const message of page) {
        await onMissed(message, guildId).catch((error: unknown) => {
          if (!signal.aborted) log.error('discord.message-failed', { channelId, error: messageOf(error) })
        })
      }
      last = page.at(-1)?.id ?? last
      if (page.length > 0) log.info('discord.caught-up', { channelId, messagesRead: page.length })
      if (page.length < PAGE) return
    }
  }
}

function hasNews(channel: APIChannel, after: string): boolean {
  const last = 'last_message_id' in channel ? channel.last_message_id : undefined
  return last ? isAfter(last, after) : false
}
