// Asks Twilio for what people wrote. Twilio calls a webhook once, and does not keep what it could not deliver: so what
// came while nobody listened is found here, also where there is a webhook.
//
// What must stay true:
// - No message waits for another: Twilio is asked on while the files of some are fetched, and also when one cannot be taken.
// - The cursor does not pass what is not safe yet.

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
  everyMs: number
  /** Contract: when it resolves the message is safe; it rejects when it must come again. */
  take(incoming: Incoming): Promise<void>
  /** What else is to be asked from time to time. */
  alsoAsk(signal: AbortSignal): Promise<void>
  signal: AbortSignal
  log: Log
  now: () => number
}

/** A message that is not safe yet. */
interface Pending {
  sentAt: number
  isUnderWay: boolean
  failures: number
  /** Failures between which others were taken: then it is the message, and not the store or Twilio. */
  ownFailures: number
  /** How many had been taken when it last failed. */
  takenCount: number
  firstFailedAt: number
  lastFailedAt: number
}

const CURSOR = 'cursor'
const FIRST = 'first-start'
/** Twilio lists a message some time after it came. */
const OVERLAP_MS = 10 * 60_000
/** Twilio's times have no fractions of a second, and its clock is not ours. */
const CLOCK_SKEW_MS = 5_000
const SAVE_EVERY_MS = 60_000
const LONGEST_WAIT_MS = 60_000
/** A message that fails so often, and for so long, while others do not, is given up. */
const MOST_OWN_FAILURES = 10
const GIVE_UP_AFTER_MS = 60 * 60_000

export class Poller {
  readonly #pending = new Map<string, Pending>()
  /** Of what Twilio listed last, what is safe or given up. */
  #settled = new Set<string>()
  #cursor = 0
  #saved = 0
  #first = 0
  #failures = 0
  #takenCount = 0

  constructor(private readonly options: PollerOptions) {}

  /** Contract: what was written before the first start of all has not been missed. */
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

  /** Goes on until it is stopped. Contract: never rejects. */
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

  /** Contract: rejects when Twilio cannot be asked. What it told of may still be under way when it resolves. */
  async poll(): Promise<void> {
    const { alsoAsk, signal, now } = this.options
    const startedAt = now()
    const unread = await this.#unread()
    const listed = new Set(unread.map(([{ sid }]) => sid))
    this.#settled = new Set([...this.#settled].filter((sid) => listed.has(sid)))
    // What the operator has removed at Twilio cannot come again.
    for (const [sid, { isUnderWay }] of this.#pending) if (!isUnderWay && !listed.has(sid)) this.#pending.delete(sid)
    for (const [incoming, sentAt] of unread) if (!this.#settled.has(incoming.sid)) this.#take(incoming, sentAt)
    this.#cursor = Math.min(startedAt, ...[...this.#pending.values()].map(({ sentAt }) => sentAt))
    if (this.#cursor < this.#saved || this.#cursor - this.#saved >= SAVE_EVERY_MS) {
      await this.#save().catch((error: unknown) => this.#notSaved(error))
    }
    await alsoAsk(signal).catch((error: unknown) => {
      // Whether the credentials are accepted, the list has told.
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
    // The next start finds it again.
    if (signal.aborted) return
    if (pending.failures === 0) {
      pending.firstFailedAt = now()
      log.error('whatsapp.message-not-taken', { sid, error: messageOf(error) })
    } else if (this.#takenCount > pending.takenCount) pending.ownFailures += 1
    pending.takenCount = this.#takenCount
    pending.failures += 1
    pending.lastFailedAt = now()
    if (pending.ownFailures < MOST_OWN_FAILURES || now() - pending.firstFailedAt < GIVE_UP_AFTER_MS) return
    this.#pending.delete(sid)
    this.#settled.add(sid)
    log.error('whatsapp.message-given-up', { sid, failures: pending.failures, error: messageOf(error) })
  }

  /** Longer with every failure. */
  #waitMs(failures: number): number {
    const { everyMs } = this.options
    return backoffMs(failures + 1, { firstMs: everyMs, longestMs: Math.max(LONGEST_WAIT_MS, everyMs) })
  }

  /** With when they came; the oldest first. */
  async #unread(): Promise<[Incoming, number][]> {
    const { api, ownNumber, signal } = this.options
    const since = Math.max(this.#cursor - OVERLAP_MS, this.#first) - CLOCK_SKEW_MS
    const found: TwilioMessage[] = []
    for await (const page of api.pages({ to: ownNumber, sentAfter: since }, signal)) {
      // Whether Twilio goes by the second or by the day is not for us to rely on.
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
