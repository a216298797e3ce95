// The reaction on a person's message: accepted, answered, failed or stopped. Best effort: nothing waits for it, and an
// old one may remain after a crash.

import { Lanes, wait } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { codeOf, type DiscordApi, isSnowflake, UNKNOWN_CHANNEL, UNKNOWN_MESSAGE } from './api.js'
import { readAddress } from './destinations.js'

export const TAKEN = '👀'

/** How a message ended. */
const OUTCOMES = { answered: '✅', failed: '❌', stopped: '⏹️' }

export type Outcome = keyof typeof OUTCOMES

/** Discord accepts one reaction change per channel every quarter of a second. */
const PAUSE_MS = 300

export class Marks {
  /** One request at a time in each channel. */
  readonly #lanes = new Lanes()
  /** When the last request was made, by channel. */
  readonly #askedAt = new Map<string, number>()

  constructor(
    private readonly api: Pick<DiscordApi, 'react' | 'unreact'>,
    private readonly log: Log,
    private readonly now: () => number,
  ) {}

  /** Contract: returns at once and never throws. */
  taken(channelId: string, messageId: string): void {
    this.#inBackground(messageId, () => this.#ask(channelId, () => this.api.react(channelId, messageId, TAKEN)))
  }

  /** `wasRetried`: it may have failed before. Contract: returns at once and never throws. */
  ended(address: string, messageIds: (string | undefined)[], outcome: Outcome, wasRetried = false): void {
    const earlier = wasRetried && outcome !== 'failed' ? [TAKEN, OUTCOMES.failed] : [TAKEN]
    for (const id of messageIds.filter(isSnowflake)) {
      this.#inBackground(id, () => this.#replace(placesOf(address, id), id, OUTCOMES[outcome], earlier))
    }
  }

  async idle(): Promise<void> {
    await this.#lanes.idle()
  }

  async #replace(
    [channelId = '', ...others]: string[],
    messageId: string,
    emoji: string,
    earlier: string[],
  ): Promise<void> {
    try {
      await this.#ask(channelId, () => this.api.react(channelId, messageId, emoji))
    } catch (error) {
      const isElsewhere = [UNKNOWN_CHANNEL, UNKNOWN_MESSAGE].includes(codeOf(error) ?? 0) && others.length > 0
      if (isElsewhere) return this.#replace(others, messageId, emoji, earlier)
      throw error
    }
    for (const other of earlier) await this.#ask(channelId, () => this.api.unreact(channelId, messageId, other))
  }

  /** Spaces requests that share a rate limit at Discord, which discord.js does not know. */
  #ask(channelId: string, request: () => Promise<void>): Promise<void> {
    return this.#lanes.run(`channel:${channelId}`, async () => {
      const dueAt = (this.#askedAt.get(channelId) ?? 0) + PAUSE_MS
      await wait(Math.max(0, Math.min(dueAt - this.now(), PAUSE_MS)), { ref: false })
      this.#askedAt.delete(channelId)
      for (const [id, at] of this.#askedAt) if (at < this.now() - PAUSE_MS) this.#askedAt.delete(id)
      try {
        await request()
      } finally {
        this.#askedAt.set(channelId, this.now())
      }
    })
  }

  /** One change at a time for each message. */
  #inBackground(messageId: string, change: () => Promise<void>): void {
    this.#lanes.run(`message:${messageId}`, change).catch((error: unknown) => {
      this.log.debug('discord.not-marked', { messageId, error: messageOf(error) })
    })
  }
}

/**
 * The channels the message may be in. One that opened a thread has the id of that thread, and is in its channel, as are
 * replies where no thread could be used.
 */
function placesOf(address: string, messageId: string): string[] {
  const { channelId, threadId } = readAddress(address)
  return threadId === undefined || threadId === messageId ? [channelId] : [threadId, channelId]
}
