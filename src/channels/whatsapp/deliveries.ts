// What becomes of what Twilio has taken. It tells by its status callback; where that cannot come, or did not, it is asked.

import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { ChannelHost } from '../types.js'
import type { SentLog } from './sent-log.js'
import type { TwilioApi } from './twilio-api.js'
import { describeError, unlessGone } from './twilio-errors.js'

export interface DeliveryOptions {
  api: Pick<TwilioApi, 'message'>
  host: Pick<ChannelHost, 'onUndelivered'>
  /** When it is asked for the first time, after it was sent. */
  firstLookMs: number
  log: Log
  now: () => number
}

interface Watched {
  replyId: string
  sentAt: number
  lookAt: number
}

const FAILED = new Set(['failed', 'undelivered', 'canceled'])
const ARRIVED = new Set(['delivered', 'read'])
const WATCH_MS = 15 * 60_000
const MOST_WATCHED = 1_000
const LOOKS_AT_ONCE = 20
/** A reply counts as delivered a moment after it was sent; what is said before that must be said again. */
const SAY_AGAIN_MS = 5_000

export class Deliveries {
  readonly #watched = new Map<string, Watched>()
  /** Replies that are being sent, and why which of their parts failed. */
  readonly #sending = new Map<string, Map<string, string>>()
  /** By the part that failed. */
  readonly #sayingAgain = new Map<string, NodeJS.Timeout>()

  constructor(private readonly options: DeliveryOptions) {}

  beginSending(replyId: string): void {
    this.#sending.set(replyId, new Map())
  }

  endSending(replyId: string): void {
    this.#sending.delete(replyId)
  }

  /** Of a reply that is being sent, why a part of it failed. */
  problemOf(replyId: string): string | undefined {
    const [problem] = this.#sending.get(replyId)?.values() ?? []
    return problem
  }

  /** A part that failed is sent again: what became of it before says nothing about its reply any more. */
  forget(sid: string, replyId: string): void {
    this.#watched.delete(sid)
    this.#sending.get(replyId)?.delete(sid)
    clearTimeout(this.#sayingAgain.get(sid))
    this.#sayingAgain.delete(sid)
  }

  onSent(sid: string, replyId: string): void {
    const { firstLookMs, now } = this.options
    this.#watch(sid, { replyId, sentAt: now(), lookAt: now() + firstLookMs })
  }

  /** Twilio does not tell again what it told while no gateway ran. */
  async watchAgain(sentLog: Pick<SentLog, 'sentSince'>): Promise<void> {
    const { now } = this.options
    for (const { sid, replyId, at } of await sentLog.sentSince(now() - WATCH_MS)) {
      this.#watch(sid, { replyId, sentAt: at, lookAt: now() })
    }
  }

  #watch(sid: string, watched: Watched): void {
    this.#watched.set(sid, watched)
    const [oldest] = this.#watched.keys()
    if (this.#watched.size > MOST_WATCHED && oldest !== undefined) this.#watched.delete(oldest)
  }

  async onStatus(sid: string, replyId: string, status: string, errorCode: number | undefined): Promise<void> {
    const { host, log } = this.options
    if (ARRIVED.has(status)) this.#watched.delete(sid)
    if (!FAILED.has(status)) {
      log.debug('whatsapp.status', { sid, replyId, status })
      return
    }
    this.#watched.delete(sid)
    const problem = describeError(errorCode, `Twilio says it was not delivered: ${status}`)
    log.warn('whatsapp.undelivered', { sid, replyId, status, errorCode })
    const problems = this.#sending.get(replyId)
    if (problems) {
      problems.set(sid, problem)
      return
    }
    clearTimeout(this.#sayingAgain.get(sid))
    const again = setTimeout(() => {
      this.#sayingAgain.delete(sid)
      host.onUndelivered(replyId, problem).catch((error: unknown) => {
        log.error('whatsapp.undelivered-not-kept', { replyId, error: messageOf(error) })
      })
    }, SAY_AGAIN_MS)
    this.#sayingAgain.set(sid, again)
    await host.onUndelivered(replyId, problem)
  }

  /** Asks for those of which nothing was heard. */
  async look(signal: AbortSignal): Promise<void> {
    const { api, now } = this.options
    const due = [...this.#watched].filter(([, { lookAt }]) => lookAt <= now()).slice(0, LOOKS_AT_ONCE)
    for (const [sid, watched] of due) {
      const message = await api.message(sid, signal).catch(unlessGone)
      if (!this.#watched.has(sid)) continue
      if (message) await this.onStatus(sid, watched.replyId, message.status, message.errorCode)
      const ageMs = now() - watched.sentAt
      if (!message || ageMs > WATCH_MS) this.#watched.delete(sid)
      else watched.lookAt = now() + ageMs
    }
  }

  close(): void {
    for (const timer of this.#sayingAgain.values()) clearTimeout(timer)
  }
}
