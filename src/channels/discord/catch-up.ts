// Asks for what was said while we were away. After a resumed session Discord sends it by itself; after a new one nothing
// does, and every place that has something newer than the cursor is read.

import type { APIChannel, APIMessage, GatewayGuildCreateDispatchData } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { ChannelHost } from '../types.js'
import type { DiscordApi } from './api.js'
import type { Cursor } from './cursor.js'
import { readAddress } from './places.js'
import { isAfter, snowflakeAt } from './snowflake.js'
import { untilAnswered } from './until-answered.js'

interface CatchUpOptions {
  api: Pick<DiscordApi, 'messagesAfter' | 'directChannel'>
  host: Pick<ChannelHost, 'addresses'>
  cursor: Cursor
  /** Does the work after what has begun in the same place. Contract: never rejects. */
  inLane(channelId: string, work: () => Promise<void>): Promise<void>
  /** Who may write to us directly. */
  directUserIds: string[]
  onMissed(message: APIMessage, guildId: string | undefined): Promise<void>
  signal: AbortSignal
  log: Log
  now: () => number
}

/** One session's look at what was missed. */
interface Round {
  /** The servers that have not appeared yet, and from where they are read. */
  waitingFor: Map<string, string>
  /** Channels and threads that the servers have named. */
  named: Set<string>
  timer: NodeJS.Timeout
  /** Of the cursor. */
  release: () => void
}

/** What was said longer ago is not answered any more. */
const MISSED_MS = 24 * 3_600_000
/** Of one channel: whoever says more than that in a day does not wait for it. */
const MAX_MISSED = 1_000
const PAGE = 100
/** A thread that nobody writes in is archived after a day; one that somebody writes in is named by its server. */
const KNOWN_CONVERSATIONS_MS = MISSED_MS + 24 * 3_600_000
/** How long the servers may take to appear until the other conversations are looked at. */
const SERVERS_WITHIN_MS = 15_000

export class CatchUp {
  #round: Round | undefined
  /** Those of the round, also when it is over. */
  #late: Round['waitingFor'] = new Map()

  constructor(private readonly options: CatchUpOptions) {}

  /** A new session has begun; its servers appear one by one. */
  begin(guildIds: string[]): void {
    if (this.#round) void this.#finish(this.#round)
    const after = this.#after()
    const round: Round = {
      waitingFor: new Map(guildIds.map((id) => [id, this.#late.get(id) ?? after])),
      named: new Set(),
      timer: setTimeout(() => void this.#finish(round), SERVERS_WITHIN_MS).unref(),
      release: this.options.cursor.hold(),
    }
    this.#late = round.waitingFor
    this.#round = round
    if (guildIds.length === 0) void this.#finish(round)
  }

  /** A server is there: at the beginning of a session, or because it was away itself. */
  server({ id: guildId, channels, threads }: GatewayGuildCreateDispatchData): void {
    const round = this.#round
    const after = this.#late.get(guildId) ?? this.#after()
    for (const channel of [...channels, ...threads]) {
      round?.named.add(channel.id)
      if (hasNews(channel, after)) this.#read(channel.id, after, guildId)
    }
    this.#late.delete(guildId)
    if (round?.waitingFor.size === 0) void this.#finish(round)
  }

  /** Looks at the conversations that no server has named: direct ones, and threads that are archived. */
  async #finish(round: Round): Promise<void> {
    clearTimeout(round.timer)
    if (this.#round === round) this.#round = undefined
    const { api, host, directUserIds, signal, now } = this.options
    const after = this.#after()
    const addresses = await untilAnswered(() => host.addresses(now() - KNOWN_CONVERSATIONS_MS), this.options)
    const known = (addresses ?? []).map(readAddress).map(({ channelId, threadId }) => threadId ?? channelId)
    const direct = await Promise.all(
      directUserIds.map((id) => untilAnswered(() => api.directChannel(id), this.options)),
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

  /** In the lane of the place, so that what is said there from now on comes after it. */
  #read(channelId: string, after: string, guildId?: string): void {
    const { cursor, inLane, signal } = this.options
    const release = cursor.hold()
    void inLane(channelId, () => this.#readAll(channelId, after, guildId)).finally(() => {
      // What was not read to the end is asked for at the next start.
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
