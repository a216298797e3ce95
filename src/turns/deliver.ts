// Sends replies from the outbox to their channels. A reply may be sent twice if the gateway dies between sending it and
// recording that; both carry the same idempotency key, so the channel shows it once.

import { setMaxListeners } from 'node:events'
import { abortable, backoffMs, startDeadline, wait } from '../core/async.js'
import type { Channel, OutgoingReply } from '../channels/types.js'
import { formatMoney } from '../core/money.js'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { duration } from '../runtime/time-words.js'
import type { Message } from '../store/inbox.js'
import type { Delivery } from '../store/outbox.js'
import type { Store, Tables } from '../store/store.js'
import type { Step } from './types.js'

export interface SenderOptions {
  gatewayId: string
  channels: Channel[]
  /** Serve only this conversation. */
  address?: string
  store: Pick<Store, 'outbox' | 'inbox' | 'runs' | 'events'>
  onSent(delivery: Delivery): void
  /** Given up: the operator should be notified. */
  onUndelivered(delivery: Delivery): void
  onStep?(step: Step): void
  /** Hides known secrets, which a channel's errors may contain. */
  scrub(text: string): string
  log: Log
  now: () => number
  /** Limit for sending one reply. */
  sendTimeoutMs?: number
  /** Polling interval, for changes it was not notified of. */
  pollMs?: number
}

const POLL_MS = 1_000
const SEND_TIMEOUT_MS = 30_000
/** Longer than any send, so two gateways never send the same reply at once. */
const LEASE_MS = SEND_TIMEOUT_MS + 15_000
const BACKOFF = { firstMs: 1_000, longestMs: 60_000 }
/** Per channel. */
const MAX_CONCURRENT_SENDS = 10
const EXPIRE_EVERY_MS = 10_000

export class Sender {
  readonly #poll: NodeJS.Timeout
  readonly #sending = new Map<Delivery, Promise<void>>()
  readonly #deadline = new AbortController()
  #expiredAt = 0
  /** How many claims found nothing. Waiting replies may have been blocked by one in flight. */
  #misses = 0
  /** The value of `#misses` when a delivery was claimed. */
  readonly #missesBefore = new WeakMap<Delivery, number>()
  #isClaiming = false
  #mayBeMore = false
  #isStopped = false
  #hasFailed = false

  constructor(private readonly options: SenderOptions) {
    // One listener per reply in flight.
    setMaxListeners(0, this.#deadline.signal)
    this.#poll = setInterval(() => this.wake(), options.pollMs ?? POLL_MS)
  }

  wake(): void {
    this.#mayBeMore = true
    if (!this.#isClaiming) void this.#claimAll()
  }

  /**
   * Claims a reply inside the caller's transaction. Contract: the caller calls `send` after the commit, and only then.
   */
  async claim({ outbox }: Pick<Tables, 'outbox'>): Promise<Delivery | undefined> {
    const { gatewayId, channels, address, now } = this.options
    const sending = [...this.#sending.keys()]
    // A channel that hangs must not block the others.
    const names = channels
      .map(({ name }) => name)
      .filter((name) => sending.filter(({ channel }) => channel === name).length < MAX_CONCURRENT_SENDS)
    const except = sending.map(({ conversationId }) => conversationId)
    const limits = { except, ...(address !== undefined && { address }) }
    const misses = this.#misses
    const delivery = await outbox.claim(gatewayId, names, now(), LEASE_MS, limits)
    if (delivery) this.#missesBefore.set(delivery, misses)
    else this.#misses += 1
    return delivery
  }

  /** `answered` is the message it replies to, if the caller has it. */
  send(delivery: Delivery, answered?: Message): void {
    const { log } = this.options
    const sending = this.#send(delivery, answered)
      // Not recorded: when the lease expires the reply is sent again under the same key.
      .catch((error: unknown) => log.error('outbox.not-written', { id: delivery.id, error: messageOf(error) }))
      .finally(() => {
        this.#sending.delete(delivery)
        // A claim in progress may have looked too early.
        if (this.#isClaiming || this.#misses !== this.#missesBefore.get(delivery)) this.wake()
      })
    this.#sending.set(delivery, sending)
  }

  /** Sends what it can until the deadline; settles when nothing is in flight. */
  async stop(deadlineMs: number): Promise<void> {
    clearInterval(this.#poll)
    const deadline = setTimeout(() => {
      this.#isStopped = true
      this.#deadline.abort(new Error('The gateway is stopping'))
    }, deadlineMs)
    this.wake()
    while (this.#isClaiming || this.#sending.size > 0) {
      await Promise.all(this.#sending.values())
      await wait(1)
    }
    clearTimeout(deadline)
    this.#isStopped = true
  }

  async #claimAll(): Promise<void> {
    const { store, log, now } = this.options
    if (this.#isStopped) return
    this.#isClaiming = true
    try {
      if (now() - this.#expiredAt >= EXPIRE_EVERY_MS) await this.#expire()
      while (this.#mayBeMore && !this.#isStopped) {
        this.#mayBeMore = false
        const delivery = await this.claim(store)
        this.#hasFailed = false
        if (!delivery) continue
        this.#mayBeMore = true
        this.send(delivery)
      }
    } catch (error) {
      if (!this.#hasFailed) log.error('outbox.claim-failed', { error: messageOf(error) })
      this.#hasFailed = true
    } finally {
      this.#isClaiming = false
    }
  }

  async #expire(): Promise<void> {
    const { store, now, onUndelivered } = this.options
    for (const delivery of await store.outbox.expire(now())) onUndelivered(delivery)
    this.#expiredAt = now()
  }

  async #send(delivery: Delivery, answered: Message | undefined): Promise<void> {
    const { channels, store, now, scrub, log, onSent, onUndelivered, onStep } = this.options
    const { id, address, messageId, reply, attempts, createdAt, expiresAt } = delivery
    try {
      const channel = channels.find(({ name }) => name === delivery.channel)
      if (!channel) throw new Error(`There is no channel ${delivery.channel}`)
      const message = answered ?? (messageId === undefined ? undefined : await store.inbox.get(messageId))
      const outgoing = {
        ...reply,
        idempotencyKey: id,
        address,
        ...(messageId !== undefined && { messageId }),
        ...(message && { platformId: message.platformId, author: reply.author ?? message.author }),
        ...(channel.showsOutcomes && (await outcomeOf(delivery, message, store))),
        createdAt,
        attempt: attempts,
      }
      await this.#inTime((signal) => channel.send(outgoing, signal))
    } catch (error) {
      const problem = scrub(messageOf(error))
      const dueAt = now() + backoffMs(attempts, BACKOFF)
      log.warn('reply.not-sent', { id, channel: delivery.channel, attempts, problem })
      const isFinal = error instanceof GatewayError && error.code === 'undeliverable'
      if (dueAt < expiresAt && !isFinal) await store.outbox.retry(delivery, problem, dueAt)
      else if (await store.outbox.settle(delivery, 'undelivered', problem, now())) {
        onUndelivered({ ...delivery, problem })
      }
      return
    }
    onStep?.('sent')
    if (await store.outbox.settle(delivery, 'delivered', null, now())) onSent(delivery)
  }

  async #inTime(send: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { sendTimeoutMs = SEND_TIMEOUT_MS } = this.options
    const tooLate = new Error(`The channel did not accept it within ${sendTimeoutMs / 1000} s`)
    const deadline = startDeadline(sendTimeoutMs, this.#deadline.signal, tooLate)
    try {
      await abortable(deadline.signal, send)
    } finally {
      deadline.clear()
    }
  }
}

/** What a channel shows beside an answer: nothing for a reply that does not end its message, such as a question. */
async function outcomeOf(
  { messageId, runId, reply }: Delivery,
  answered: Pick<Message, 'retriedAfter'> | undefined,
  store: Pick<Store, 'inbox' | 'runs' | 'events'>,
): Promise<Pick<OutgoingReply, 'alsoAnswers' | 'wasRetried' | 'footer'>> {
  if (messageId === undefined || reply.question || reply.waitsUntil !== undefined) return {}
  const alsoAnswers = await store.inbox.mergedInto(messageId)
  const footer = runId === undefined || reply.isError ? undefined : await footerOf(runId, store)
  return {
    ...(alsoAnswers.length > 0 && { alsoAnswers }),
    ...(answered?.retriedAfter !== undefined && { wasRetried: true }),
    ...(footer !== undefined && { footer }),
  }
}

/** Such as `claude-opus-4-8 · 12 s · $0.03`; undefined unless an agent answered. */
async function footerOf(runId: string, { runs, events }: Pick<Store, 'runs' | 'events'>): Promise<string | undefined> {
  const run = await runs.get(runId)
  if (!run?.result) return undefined
  const { durationMs, costUsd, usage } = run.result
  const model = (await events.modelOf(runId)) ?? run.model
  // A fixed text, or a command without an agent.
  if (model === undefined && usage === undefined) return undefined
  return [model ?? run.backend, duration(durationMs), ...(costUsd ? [formatMoney(costUsd)] : [])].join(' · ')
}
