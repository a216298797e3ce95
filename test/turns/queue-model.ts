// A simple model of the queue: lines of messages, the first of which a gateway may hold. No fences, no tables. After
// every step, what the real queue did with two gateways is compared with it.

import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { QueueMode } from '../../src/channels/types.js'
import { Queue } from '../../src/turns/queue.js'
import type { Settlement, Work } from '../../src/turns/types.js'
import type { MessageState } from '../../src/store/schema.js'
import type { Store } from '../../src/store/store.js'
import { queueOn } from '../kit/queue.js'

export const ADDRESSES = ['a', 'b', 'c']
export const LEASE_MS = 1_000
export const MAX_QUEUE_DEPTH = 4
const FAR_FUTURE_MS = 1_000_000

interface ModelMessage {
  id: string
  platformId: string
  address: string
  text: string
  state: MessageState
  /** Its holder, even if the lease has expired, until another gateway claims it. */
  holder: Hold | undefined
  /** When it may be claimed. Only matters for the first in a line. */
  dueAt: number
  failures: number
  interruptions: number
  isCancelled: boolean
  lastRun: 'none' | 'running' | 'ended' | 'interrupted'
  wasRetried: boolean
  /** The message it is answered together with. */
  carrier: ModelMessage | undefined
}

/** What a worker believes it holds. */
interface Hold {
  message: ModelMessage
  worker: number
  work: Work
  runId: string
}

export type SettlementKind = Settlement['kind']

export class QueueModel {
  #now = 1_000
  readonly #messages: ModelMessage[] = []
  /** Open messages, in the order in which they must be answered. */
  readonly #lines = new Map<string, ModelMessage[]>(ADDRESSES.map((address) => [address, []]))
  readonly #replies = new Map<string, string[]>(ADDRESSES.map((address) => [address, []]))
  readonly #sessions = new Map<string, string>()
  readonly #conversations = new Map<string, string>()
  readonly #modes = new Map<string, QueueMode>()
  readonly #queues: Queue[]
  readonly #holds: Hold[][] = [[], []]
  #edits = 0

  /** `channel` belongs only to this model, so that others may share the database. */
  constructor(
    private readonly store: Store,
    private readonly channel: string,
  ) {
    this.#queues = [0, 1].map((worker) => {
      const limits = { maxQueueDepth: MAX_QUEUE_DEPTH, leaseMs: LEASE_MS, replyExpiryMs: FAR_FUTURE_MS }
      return queueOn(store, { ...limits, gatewayId: this.#gatewayId(worker), now: () => this.#now })
    })
  }

  /** Time never stands still between two steps. */
  pass(ms: number): void {
    this.#now += ms
  }

  async enqueue(address: string): Promise<void> {
    const platformId = this.#platformId(this.#messages.length)
    const line = this.#line(address)
    const ahead = line.length
    const acceptance = await this.#accept(address, platformId)
    const { messageId: id, conversationId } = acceptance
    this.#conversations.set(address, conversationId)
    const waiting = line[0]?.holder ? ahead - 1 : ahead
    const isFull = waiting >= MAX_QUEUE_DEPTH
    const running = this.#modes.get(address) === 'interrupt' && line[0]?.holder ? line[0] : undefined
    const expected = isFull
      ? {
          status: 'refused',
          messageId: id,
          conversationId,
          reason: expect.stringContaining(`${waiting} messages are already waiting`),
        }
      : {
          ...{ status: 'accepted', messageId: id, conversationId, position: ahead, notes: [] },
          ...(running && { notes: [expect.stringContaining('stopped')], interrupts: running.id }),
        }
    if (running && !isFull) running.isCancelled = true
    mustBe(acceptance, expected)
    const message: ModelMessage = {
      id,
      platformId,
      address,
      text: textOf(platformId),
      state: isFull ? 'refused' : 'open',
      holder: undefined,
      dueAt: this.#now,
      failures: 0,
      interruptions: 0,
      isCancelled: false,
      lastRun: 'none',
      wasRetried: false,
      carrier: undefined,
    }
    this.#messages.push(message)
    if (isFull) this.#reply(message, String(waiting))
    else line.push(message)
  }

  async choose(address: string, mode: QueueMode): Promise<void> {
    const conversationId = this.#conversations.get(address)
    if (conversationId === undefined) return
    await this.store.conversations.configure(conversationId, { queueMode: mode })
    this.#modes.set(address, mode)
  }

  async redeliver(pick: number, address: string): Promise<void> {
    const message = at(this.#messages, pick)
    if (!message) return
    const conversationId = this.#conversations.get(message.address)
    const duplicate = { status: 'duplicate', messageId: message.id, conversationId }
    mustBe(await this.#accept(address, message.platformId), duplicate)
    this.#conversations.set(address, await this.#conversationId(address))
  }

  /** Returns whether there was one. */
  async claim(worker: number, beginsRun: boolean): Promise<boolean> {
    const due = [...this.#lines.values()].flatMap(([first]) => (first && first.dueAt <= this.#now ? [first] : []))
    const longest = due.filter(({ dueAt }) => dueAt === Math.min(...due.map((message) => message.dueAt)))
    const runId = randomUUID()
    let hasBegun = false
    const work = await this.#queue(worker).claim([this.channel], {}, () => {
      hasBegun = beginsRun
      return beginsRun ? { id: runId, backend: 'pi' } : undefined
    })
    if (due.length === 0) {
      mustBe(work, undefined)
      return false
    }
    // The first of its conversation, without a valid lease, and due longest.
    const message = longest.find(({ id }) => id === work?.message.id)
    if (!message || !work) {
      throw new Error(`Claimed was ${work?.message.id}, not one of ${longest.map(({ id }) => id).join(', ')}`)
    }
    if (message.holder) message.interruptions++
    if (message.lastRun === 'running') message.lastRun = 'interrupted'
    const hold = { message, worker, work, runId }
    message.holder = hold
    message.dueAt = this.#now + LEASE_MS
    this.#holds[worker]?.push(hold)
    if (!message.isCancelled && ['collect', 'interrupt'].includes(this.#modes.get(message.address) ?? '')) {
      for (let next = this.#nextToJoin(message); next; next = this.#nextToJoin(message)) this.#merge(next, message)
    }
    const { failures, interruptions } = work.claim
    mustBe(
      {
        text: work.message.text,
        merged: work.merged.map(({ text }) => text),
        ...{ failures, interruptions, wasInterrupted: work.wasInterrupted },
      },
      {
        text: message.text,
        merged: this.#mergedInto(message).map(({ text }) => text),
        failures: message.failures,
        interruptions: message.interruptions,
        wasInterrupted: message.lastRun === 'interrupted',
      },
    )
    mustBe(hasBegun, beginsRun && !message.isCancelled)
    if (hasBegun) message.lastRun = 'running'
    return true
  }

  async renew(worker: number, pick: number): Promise<void> {
    const hold = at(this.#holds[worker], pick)
    if (!hold) return
    mustBe(await this.#queue(worker).renew(hold.work), this.#renewed(hold))
  }

  /** A worker steers its agent with a waiting message: the agent accepts it or not, or the outcome stays unknown. */
  async steer(worker: number, pick: number, isTaken: boolean | undefined): Promise<void> {
    const hold = at(this.#holds[worker], pick)
    if (!hold) return
    const { message, work } = hold
    const isSteering = this.#modes.get(message.address) === 'steer'
    const isOurs = isSteering && this.#renewed(hold) === 'held'
    const next = isOurs ? this.#nextToJoin(message) : undefined
    const joined = await this.#queue(worker).mergeIntoRunning(work)
    mustBe(joined?.id, next?.id)
    if (!next || !joined) return
    this.#merge(next, message)
    if (isTaken === true) work.merged.push(joined)
    if (isTaken !== false) return
    await this.#queue(worker).unmerge(work, joined)
    this.#unmerge(message, [next])
  }

  async settle(worker: number, pick: number, kind: SettlementKind, delayMs = 0): Promise<void> {
    const hold = at(this.#holds[worker], pick)
    if (!hold) return
    const { message, work } = hold
    const isOurs = message.holder === hold
    const sessionId = randomUUID()
    const outcome = await this.#queue(worker).settle(work, this.#settlement(hold, kind, delayMs, sessionId))
    mustBe(outcome, isOurs ? 'settled' : 'lost')
    if (!isOurs) return
    message.holder = undefined
    const untold = this.#mergedInto(message).filter((merged) => !work.merged.some(({ id }) => id === merged.id))
    this.#unmerge(message, untold)
    if (message.lastRun === 'running') message.lastRun = kind === 'handed-back' ? 'interrupted' : 'ended'
    if (kind === 'handed-back') {
      message.dueAt = this.#now
      return
    }
    this.#sessions.set(message.address, sessionId)
    if (kind === 'retry') {
      message.dueAt = this.#now + (message.isCancelled ? 0 : delayMs)
      message.failures++
      this.#reply(message, kind)
      return
    }
    for (const ended of [message, ...this.#mergedInto(message)]) this.#leave(ended, kind)
    if (kind !== 'cancelled') this.#reply(message, kind)
  }

  /** Its gateway is gone; `isNoticed` if another one knows. */
  async crash(worker: number, isNoticed: boolean): Promise<void> {
    this.#holds[worker] = []
    if (!isNoticed) return
    await this.store.jobs.expireLeases(this.#gatewayId(worker), this.#now)
    for (const [first] of this.#lines.values()) if (first?.holder?.worker === worker) first.dueAt = this.#now
  }

  /** Edits a message, or one that has not arrived yet. An empty text is ignored. */
  async edit(worker: number, pick: number, isEmpty: boolean): Promise<void> {
    const message = at([...this.#messages, undefined], pick)
    const platformId = message?.platformId ?? this.#platformId(this.#messages.length)
    const text = isEmpty ? ' ' : `Edit ${(this.#edits += 1)}`
    const isWaiting = message?.state === 'open' && !(message.carrier ?? message).holder
    const outcome = await this.#queue(worker).edit(this.channel, platformId, text)
    mustBe(outcome, message ? (isWaiting ? 'changed' : 'late') : 'unknown')
    if (isWaiting && !isEmpty) message.text = text
  }

  async drop(pick: number): Promise<void> {
    const message = at(this.#messages, pick)
    if (!message) return
    const outcome = await this.#queue(0).drop(message.id)
    if (message.state === 'open' && (message.carrier ?? message).holder) {
      mustBe(outcome, 'active')
    } else if (message.state === 'open') {
      mustBe(outcome, 'dropped')
      this.#unmerge(message, this.#mergedInto(message))
      message.carrier = undefined
      this.#leave(message, 'dropped')
    } else if (message.state === 'failed') {
      mustBe(outcome, 'dropped')
      for (const other of [message, ...this.#mergedInto(message, 'failed')]) this.#leave(other, 'dropped')
    } else {
      mustBe(outcome, 'finished')
    }
  }

  async retryDeadLetter(pick: number): Promise<void> {
    const asked = at(
      this.#messages.filter(({ state, carrier }) => state === 'failed' && (!carrier || carrier.state === 'failed')),
      pick,
    )
    if (!asked) return
    const message = asked.carrier ?? asked
    mustBe(await this.#queue(1).retry(asked.id), 'message')
    const fresh = { dueAt: this.#now, failures: 0, interruptions: 0, isCancelled: false, holder: undefined }
    for (const merged of this.#mergedInto(message, 'failed')) merged.state = 'open'
    Object.assign(message, { state: 'open', wasRetried: true, ...fresh })
    this.#line(message.address).push(message)
  }

  async requestCancel(address: string): Promise<void> {
    const [first] = this.#line(address)
    if (!first) return
    await this.store.jobs.requestCancel(first.id)
    first.isCancelled = true
  }

  /** Both workers die, and one comes back and answers everything. */
  async drain(): Promise<void> {
    await this.crash(0, false)
    await this.crash(1, false)
    this.pass(FAR_FUTURE_MS)
    while (await this.claim(0, true)) {
      await this.settle(0, (this.#holds[0]?.length ?? 0) - 1, 'answered')
      this.pass(1)
    }
    await this.compare()
    mustBe(
      this.#messages.filter(({ state }) => state === 'open'),
      [],
    )
  }

  /** Checks that nothing is lost, duplicated or out of order. */
  async compare(): Promise<void> {
    const open = (await this.store.inbox.listOpen(1_000)).filter(({ channel }) => channel === this.channel)
    for (const address of ADDRESSES) {
      const conversationId = this.#conversations.get(address) ?? ''
      const line = open.filter((message) => message.address === address).toSorted((a, b) => a.position - b.position)
      const messages = await this.store.inbox.history(conversationId, 1_000)
      const replies = await this.store.outbox.history(conversationId, 1_000)
      const real = {
        line: line.map(({ id, state, failures, dueAt }, place) => ({
          ...{ id, state, failures, place },
          ...(place === 0 && { dueAt }),
        })),
        messages: Object.fromEntries(
          messages.map(({ id, state, text, mergedInto }) => [id, [state, text, mergedInto]]),
        ),
        replies: replies.map(({ messageId, reply }) => `${messageId} ${reply.text.split(' ', 1)[0]}`),
        session: (await this.store.sessions.get(conversationId))?.sessionId,
      }
      mustBe(real, {
        line: this.#line(address).map(({ id, holder, failures, dueAt }, place) => ({
          ...{ id, state: place > 0 ? 'queued' : holder ? 'active' : 'ready', failures, place },
          ...(place === 0 && { dueAt }),
        })),
        messages: Object.fromEntries(
          this.#messages
            .filter((message) => message.address === address)
            .map(({ id, state, text, carrier }) => [id, [state, text, carrier?.id]]),
        ),
        replies: this.#replies.get(address),
        session: this.#sessions.get(address),
      })
    }
  }

  #accept(address: string, platformId: string) {
    const text = textOf(platformId)
    return this.#queue(0).accept({ channel: this.channel, address, platformId, author: 'ann', text })
  }

  #renewed(hold: Hold): 'held' | 'cancelled' | 'lost' {
    const { message } = hold
    if (message.holder !== hold) return 'lost'
    message.dueAt = this.#now + LEASE_MS
    return message.isCancelled ? 'cancelled' : 'held'
  }

  #settlement({ message, runId }: Hold, kind: SettlementKind, delayMs: number, sessionId: string): Settlement {
    const run = { id: runId, result: { isError: false, durationMs: 0 } }
    const reply = { text: kind, notes: [], isError: false }
    const conversationId = this.#conversations.get(message.address) ?? ''
    const session = { conversationId, backend: 'pi', sessionId, directory: '/srv' }
    const settlements: Record<SettlementKind, Settlement> = {
      answered: { kind: 'answered', run, reply, session },
      failed: { kind: 'failed', problem: 'It broke', run, reply, session },
      cancelled: { kind: 'cancelled', run, session },
      retry: { kind: 'retry', at: this.#now + delayMs, isAttempt: true, run, note: reply, session },
      'handed-back': { kind: 'handed-back', runId },
    }
    return settlements[kind]
  }

  /** The messages that could be answered with the first of their conversation. */
  #nextToJoin({ address }: ModelMessage): ModelMessage | undefined {
    const [, next] = this.#line(address)
    return next?.wasRetried ? undefined : next
  }

  #merge(message: ModelMessage, carrier: ModelMessage): void {
    const line = this.#line(message.address)
    line.splice(line.indexOf(message), 1)
    message.carrier = carrier
  }

  /** Puts them back behind the message they were merged into. */
  #unmerge(carrier: ModelMessage, messages: ModelMessage[]): void {
    const line = this.#line(carrier.address)
    line.splice(line.indexOf(carrier) + 1, 0, ...messages)
    for (const message of messages) message.carrier = undefined
  }

  #mergedInto(carrier: ModelMessage, state: MessageState = 'open'): ModelMessage[] {
    return this.#messages.filter((message) => message.carrier === carrier && message.state === state)
  }

  #leave(message: ModelMessage, state: MessageState): void {
    const line = this.#line(message.address)
    const place = line.indexOf(message)
    message.state = state
    if (place < 0) return
    line.splice(place, 1)
    const [first] = line
    if (place === 0 && first) first.dueAt = this.#now
  }

  #reply({ id, address }: ModelMessage, what: string): void {
    // A refusal begins with the number of waiting messages.
    this.#replies.get(address)?.push(`${id} ${what}`)
  }

  #line(address: string): ModelMessage[] {
    const line = this.#lines.get(address)
    if (!line) throw new Error(`There is no conversation ${address}`)
    return line
  }

  #queue(worker: number): Queue {
    const queue = this.#queues[worker]
    if (!queue) throw new Error(`There is no worker ${worker}`)
    return queue
  }

  #platformId(number: number): string {
    return `${this.channel} ${number}`
  }

  #gatewayId(worker: number): string {
    return `${this.channel} ${worker}`
  }

  async #conversationId(address: string): Promise<string> {
    return (await this.store.conversations.find(this.channel, address))?.id ?? ''
  }
}

/** Its text, the same on every delivery. */
function textOf(platformId: string): string {
  return `Hello ${platformId}`
}

function at<T>(items: T[] | undefined, pick: number): T | undefined {
  return items && items[pick % Math.max(items.length, 1)]
}

function mustBe(actual: unknown, expected: unknown): void {
  expect(actual).toEqual(expected)
}
