// Tracks what happens to messages Twilio has accepted. Twilio reports through its status callback; if that cannot be
// used, or did not come, it is polled.

import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { ChannelHost } from '../types.js'
import type { SentLog } from './sent-log.js'
import { FAILED, type TwilioApi } from './twilio-api.js'
import { describeError, undefinedIfGone } from './twilio-errors.js'

export interface DeliveryOptions {
  api: Pick<TwilioApi, 'message'>
  host: Pick<ChannelHost, 'onUndelivered'>
  /** The delay between sending and the first check. */
  firstCheckMs: number
  log: Log
  now: () => number
}

interface Watched {
  replyId: string
  sentAt: number
  checkAt: number
}

const ARRIVED = new Set(['delivered', 'read'])
const WATCH_MS = 15 * 60_000
const MAX_WATCHED = 1_000
const CHECKS_AT_ONCE = 20
/** A reply is marked as delivered shortly after it was sent; a failure reported before that must be repeated. */
const REPEAT_AFTER_MS = 5_000

export class Deliveries {
  readonly #watched = new Map<string, Watched>()
  /** Replies being sent, each with the problems of its failed parts by SID. */
  readonly #sending = new Map<string, Map<string, string>>()
  /** By the SID of the failed part. */
  readonly #repeatTimers = new Map<string, NodeJS.Timeout>()

  constructor(private readonly options: DeliveryOptions) {}

  beginSending(replyId: string): void {
    this.#sending.set(replyId, new Map())
  }

  endSending(replyId: string): void {
    this.#sending.delete(replyId)
  }

  /** Why a part of a reply being sent has failed. */
  problemOf(replyId: string): string | undefined {
    const [problem] = this.#sending.get(replyId)?.values() ?? []
    return problem
  }

  /** A failed part is sent again: its old status no longer says anything about the reply. */
  forget(sid: string, replyId: string): void {
    this.#watched.delete(sid)
    this.#sending.get(replyId)?.delete(sid)
    clearTimeout(this.#repeatTimers.get(sid))
    this.#repeatTimers.delete(sid)
  }

  onSent(sid: string, replyId: string): void {
    const { firstCheckMs, now } = this.options
    this.#watch(sid, { replyId, sentAt: now(), checkAt: now() + firstCheckMs })
  }

  /** Twilio does not repeat status callbacks that it sent while no gateway was running. */
  async resumeWatching(sentLog: Pick<SentLog, 'sentSince'>): Promise<void> {
    const { now } = this.options
    for (const { sid, replyId, at } of await sentLog.sentSince(now() - WATCH_MS)) {
      this.#watch(sid, { replyId, sentAt: at, checkAt: now() })
    }
  }

  #watch(sid: string, watched: Watched): void {
    this.#watched.set(sid, watched)
    const [oldest] = this.#watched.keys()
    if (this.#watched.size > MAX_WATCHED && oldest !== undefined) this.#watched.delete(oldest)
  }

  async onStatus(sid: string, replyId: string, status: string, errorCode: number | undefined): Promise<void> {
    const { host, log } = this.options
    if (ARRIVED.has(status)) this.#watched.delete(sid)
    if (!FAILED.includes(status)) {
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
    clearTimeout(this.#repeatTimers.get(sid))
    const again = setTimeout(() => {
      this.#repeatTimers.delete(sid)
      host.onUndelivered(replyId, problem).catch((error: unknown) => {
        log.error('whatsapp.undelivered-not-kept', { replyId, error: messageOf(error) })
      })
    }, REPEAT_AFTER_MS)
    this.#repeatTimers.set(sid, again)
    await host.onUndelivered(replyId, problem)
  }

  /** Checks the messages whose status callback has not come. */
  async checkDue(signal: AbortSignal): Promise<void> {
    const { api, now } = this.options
    const due = [...this.#watched].filter(([, { checkAt }]) => checkAt <= now()).slice(0, CHECKS_AT_ONCE)
    for (const [sid, watched] of due) {
      const message = await api.message(sid, signal).catch(undefinedIfGone)
      if (!this.#watched.has(sid)) continue
      if (message) await this.onStatus(sid, watched.replyId, message.status, message.errorCode)
      const ageMs = now() - watched.sentAt
      if (!message || ageMs > WATCH_MS) this.#watched.delete(sid)
      else watched.checkAt = now() + ageMs
    }
  }

  close(): void {
    for (const timer of this.#repeatTimers.values()) clearTimeout(timer)
  }
}
