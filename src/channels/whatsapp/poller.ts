// Polls Twilio for messages. Twilio calls a webhook once and does not keep what it could not deliver, so whatever came
// in while nobody was listening is found here, even if there is a webhook.
//
// Invariants:
// - No message waits for another: polling continues while files are being fetched, and even if a message cannot be
//   stored.
// - The cursor does not pass a message that is not stored yet.

import { backoffMs, wait } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { ChannelHost } from '../types.js'
import { type Incoming, readRecord } from './incoming.js'
import type { TwilioApi, TwilioMessage } from './twilio-api.js'

export interface PollerOptions {
  api: Pick<TwilioApi, 'pages' | 'media'>
  host: Pick<ChannelHost, 'recall' | 'remember'>
  ownNumber: string
  intervalMs: number
  /** Contract: when it resolves, the message is stored; it rejects if the message must be delivered again. */
  take(incoming: Incoming): Promise<void>
  /** What else to poll each time. */
  alsoPoll(signal: AbortSignal): Promise<void>
  signal: AbortSignal
  log: Log
  now: () => number
}

/** A message that is not stored yet. */
interface Pending {
  sentAt: number
  isUnderWay: boolean
  failures: number
  /**
   * Failures between which other messages were stored: the fault lies with this message, not with the store or Twilio.
   */
  ownFailures: number
  /** The number of stored messages at the last failure. */
  takenCount: number
  firstFailedAt: number
  lastFailedAt: number
}

const CURSOR = 'cursor'
const FIRST = 'first-start'
/** Twilio lists a message with some delay. */
const OVERLAP_MS = 10 * 60_000
/** Twilio's timestamps have no fractions of a second, and its clock differs from ours. */
const CLOCK_SKEW_MS = 5_000
const SAVE_EVERY_MS = 60_000
const MAX_WAIT_MS = 60_000
/** A message that fails this often and for this long, while others succeed, is given up. */
const MAX_OWN_FAILURES = 10
const GIVE_UP_AFTER_MS = 60 * 60_000

export class Poller {
  readonly #pending = new Map<string, Pending>()
  /** The messages in Twilio's latest list that are stored or given up. */
  #settled = new Set<string>()
  #cursor = 0
  #saved = 0
  #first = 0
  #failures = 0
  #takenCount = 0

  constructor(private readonly options: PollerOptions) {}

  /** Contract: messages from before the very first start do not count as missed. */
  async load(): Promise<void> {
    const { host, now } = this.options
    const known = Number((await host.recall(CURSOR)) ?? Number.NaN)
    this.#cursor = Number.isNaN(known) ? now() : known
    this.#first = Number((await host.recall(FIRST)) ?? this.#cursor)
    if (Number.isNaN(known)) {
      await host.remember(FIRST, String(this.#first))
      await this.#save()
    }
    this.#saved = this.#cursor
  }

  /** Polls until stopped. Contract: never rejects. */
  async run(): Promise<void> {
    const { signal, log } = this.options
    while (!signal.aborted) {
      await wait(this.#waitMs(this.#failures), { signal, ref: false }).catch(() => {})
      if (signal.aborted) break
      try {
        await this.poll()
        if (this.#failures > 0) log.info('whatsapp.reached-again')
        this.#failures = 0
      } catch (error) {
        if (signal.aborted) break
        if (this.#failures === 0) log.error('whatsapp.not-asked', { error: messageOf(error) })
        this.#failures += 1
      }
    }
    if (this.#cursor !== this.#saved) await this.#save().catch((error: unknown) => this.#notSaved(error))
  }

  /** Contract: rejects if Twilio cannot be reached. The messages it listed may still be under way when it resolves. */
  async poll(): Promise<void> {
    const { alsoPoll, signal, now } = this.options
    const startedAt = now()
    const unread = await this.#unread()
    const listed = new Set(unread.map(([{ sid }]) => sid))
    this.#settled = new Set([...this.#settled].filter((sid) => listed.has(sid)))
    // Messages the operator has deleted at Twilio will not be listed again.
    for (const [sid, { isUnderWay }] of this.#pending) if (!isUnderWay && !listed.has(sid)) this.#pending.delete(sid)
    for (const [incoming, sentAt] of unread) if (!this.#settled.has(incoming.sid)) this.#take(incoming, sentAt)
    this.#cursor = Math.min(startedAt, ...[...this.#pending.values()].map(({ sentAt }) => sentAt))
    if (this.#cursor < this.#saved || this.#cursor - this.#saved >= SAVE_EVERY_MS) {
      await this.#save().catch((error: unknown) => this.#notSaved(error))
    }
    await alsoPoll(signal).catch((error: unknown) => {
      // The listing has already shown that the credentials are accepted.
      throw new Error(messageOf(error), { cause: error })
    })
  }

  #take(incoming: Incoming, sentAt: number): void {
    const { take, now } = this.options
    const { sid } = incoming
    const pending = this.#pending.get(sid) ?? {
      sentAt,
      isUnderWay: false,
      failures: 0,
      ownFailures: 0,
      takenCount: 0,
      firstFailedAt: 0,
      lastFailedAt: 0,
    }
    const mustWait = pending.failures > 0 && now() - pending.lastFailedAt < this.#waitMs(pending.failures)
    if (pending.isUnderWay || mustWait) return
    pending.isUnderWay = true
    this.#pending.set(sid, pending)
    void take(incoming).then(
      () => {
        this.#pending.delete(sid)
        this.#settled.add(sid)
        this.#takenCount += 1
      },
      (error: unknown) => this.#onFailed(sid, pending, error),
    )
  }

  #onFailed(sid: string, pending: Pending, error: unknown): void {
    const { signal, log, now } = this.options
    pending.isUnderWay = false
    // The next start fetches it again.
    if (signal.aborted) return
    if (pending.failures === 0) {
      pending.firstFailedAt = now()
      log.error('whatsapp.message-not-taken', { sid, error: messageOf(error) })
    } else if (this.#takenCount > pending.takenCount) pending.ownFailures += 1
    pending.takenCount = this.#takenCount
    pending.failures += 1
    pending.lastFailedAt = now()
    if (pending.ownFailures < MAX_OWN_FAILURES || now() - pending.firstFailedAt < GIVE_UP_AFTER_MS) return
    this.#pending.delete(sid)
    this.#settled.add(sid)
    log.error('whatsapp.message-given-up', { sid, failures: pending.failures, error: messageOf(error) })
  }

  /** Grows with every failure. */
  #waitMs(failures: number): number {
    const { intervalMs } = this.options
    return backoffMs(failures + 1, { firstMs: intervalMs, longestMs: Math.max(MAX_WAIT_MS, intervalMs) })
  }

  /** With their times, oldest first. */
  async #unread(): Promise<[Incoming, number][]> {
    const { api, ownNumber, signal } = this.options
    const since = Math.max(this.#cursor - OVERLAP_MS, this.#first) - CLOCK_SKEW_MS
    const found: TwilioMessage[] = []
    for await (const page of api.pages({ to: ownNumber, sentAfter: since }, signal)) {
      // Do not rely on whether Twilio filters by the second or by the day.
      const recent = page.filter((message) => timeOf(message) >= since - CLOCK_SKEW_MS)
      found.push(...recent.filter(({ isInbound }) => isInbound))
      if (recent.length < page.length) break
    }
    return found
      .toReversed()
      .toSorted((one, other) => timeOf(one) - timeOf(other))
      .flatMap((message): [Incoming, number][] => {
        const incoming = readRecord(message, (sid, signal) => api.media(sid, signal))
        return incoming ? [[incoming, timeOf(message)]] : []
      })
  }

  async #save(): Promise<void> {
    await this.options.host.remember(CURSOR, String(this.#cursor))
    this.#saved = this.#cursor
  }

  #notSaved(error: unknown): void {
    this.options.log.warn('whatsapp.cursor-not-saved', { error: messageOf(error) })
  }
}

function timeOf({ sentAt, createdAt }: TwilioMessage): number {
  return sentAt ?? createdAt
}
