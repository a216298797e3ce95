// The rules of the queue: inbox → run → outbox. docs/queue-states.md draws the states.
//
// Every step is one transaction, and no transaction is open while an agent works. A step whose claim has been lost
// changes nothing.

import type { Acceptance, Place, QueueMode, Reply } from '../channels/types.js'
import { GatewayError } from '../errors.js'
import type { Note } from '../store/audit.js'
import type { ClaimLimits } from '../store/table.js'
import type { Conversation } from '../store/conversations.js'
import type { RecordedEvent } from '../store/events.js'
import type { Message, NewMessage } from '../store/inbox.js'
import type { Claim } from '../store/jobs.js'
import type { Delivery, NewDelivery } from '../store/outbox.js'
import type { ProjectRecord } from '../store/projects.js'
import type { CutOffRun } from '../store/runs.js'
import type { Session } from '../store/sessions.js'
import type { Store, Tables } from '../store/store.js'
import { problemOf, problemOfDepth, REFUSED_TEXT_CHARACTERS, remainingRoom, requireNames } from './limits.js'
import { canShareTurn, mergeableWith } from './merging.js'
import { ClaimLost, withdrawApprovals, writeSettlement } from './settle.js'
import type { EarlierAttempts, IncomingMessage, PlannedRun, Settlement, Work } from './types.js'

export interface QueueOptions {
  gatewayId: string
  maxQueueDepth: number
  leaseMs: number
  replyExpiryMs: number
  /** The mode of conversations without one of their own; `followup` if omitted. */
  config?: { queueMode: QueueMode }
  now: () => number
  newId: () => string
  /** A message that would have been answered was dropped. */
  onDropped?(message: Message): void
}

const INTERRUPTS_NOTE = 'The running turn is being stopped, and this message is next.'

/**
 * An extra check or write when a new message is accepted, or refused because of a problem.
 *
 * Contract: uses only the given tables, which belong to the same transaction; if it throws, nothing is stored.
 */
export type Admit = (tables: Tables, message: NewMessage, problem: string | undefined) => Promise<void>

export interface AcceptOptions {
  /** Reason to refuse it, already known to the caller. */
  objection?: string | undefined
  admit?: Admit | undefined
}

/**
 * Plans the run of a message just claimed, or returns undefined for none. Contract: starts nothing, since the claiming
 * transaction is still open.
 */
export type PlanRun = (work: Work) => PlannedRun | undefined

export interface Taken {
  acceptance: Acceptance
  /** Present if the message was claimed at once. */
  work?: Work
}

export class Queue {
  constructor(
    private readonly store: Store,
    private readonly options: QueueOptions,
  ) {}

  /**
   * Contract: when this settles, the message is on disk, or a reply is queued that says why it was refused:
   * `objection`, or a problem found here.
   */
  async accept(incoming: IncomingMessage, options: AcceptOptions = {}): Promise<Acceptance> {
    return (await this.take(incoming, options)).acceptance
  }

  /**
   * Like `accept`. With `planRun`, a message with nothing ahead of it is claimed in the same transaction; `onTaken` is
   * that transaction's commit callback.
   */
  async take(
    incoming: IncomingMessage,
    { objection, admit }: AcceptOptions,
    planRun?: PlanRun,
    onTaken?: (taken: Taken) => void,
  ): Promise<Taken> {
    const { gatewayId, leaseMs, newId, now, maxQueueDepth } = this.options
    const { channel, address, platformId, author } = incoming
    requireNames(incoming)
    const text = storableText(incoming.text)
    const invalid = objection ?? problemOf(text)
    return this.store.transaction<Taken>(async (tables) => {
      const at = now()
      const isWritten = (incoming.kind ?? 'message') === 'message'
      const { seq, ...entered } = await tables.conversations.enter(incoming, newId(), at, isWritten)
      const conversationId = entered.id
      const ahead = await tables.jobs.countOpen(conversationId)
      const first = ahead > 0 ? await tables.jobs.first(conversationId) : undefined
      const runningId = first?.state === 'active' ? first.messageId : undefined
      const waiting = runningId === undefined ? ahead : ahead - 1
      const problem = invalid ?? problemOfDepth(waiting, maxQueueDepth)
      const message = {
        id: newId(),
        conversationId,
        channel,
        platformId,
        seq,
        kind: incoming.kind ?? 'message',
        author,
        text: problem === undefined ? text : text.slice(0, REFUSED_TEXT_CHARACTERS),
        ...(incoming.options && { options: incoming.options }),
      }
      const isNew = await tables.inbox.add(message, problem === undefined ? 'open' : 'refused', problem ?? null, at)
      if (!isNew) return { acceptance: await duplicate(tables, channel, platformId) }
      await admit?.(tables, message, problem)
      const messageId = message.id
      if (problem === undefined) {
        const taken = { status: 'accepted' as const, messageId, conversationId, position: ahead, notes: [] }
        if (planRun && ahead === 0) {
          const claim = await tables.jobs.enqueueClaimed(message, gatewayId, at, leaseMs)
          const open: Message = { ...message, state: 'open', receivedAt: at }
          // `admit` may have changed the conversation's choices.
          const conversation = (admit && (await tables.conversations.get(conversationId))) ?? entered
          return { acceptance: taken, work: await this.#takeUp(tables, claim, open, conversation, at, planRun) }
        }
        await tables.jobs.enqueue(message, ahead, at)
        if (runningId === undefined || !(await this.#interrupts(tables, message, runningId)))
          return { acceptance: taken }
        await tables.jobs.requestCancel(runningId)
        return { acceptance: { ...taken, notes: [INTERRUPTS_NOTE], interrupts: runningId } }
      }
      const reply = { text: problem, notes: [], isError: true }
      const replySeq = await tables.conversations.nextSeq(conversationId, at)
      await this.#reply(tables, { conversationId, channel, address, messageId, seq: replySeq }, reply, at)
      return { acceptance: { status: 'refused', messageId, conversationId, reason: problem } }
    }, onTaken)
  }

  async #interrupts({ conversations, inbox }: Tables, message: NewMessage, runningId: string): Promise<boolean> {
    const conversation = await conversations.get(message.conversationId)
    const running = await inbox.get(runningId)
    return this.#modeOf(conversation) === 'interrupt' && running !== undefined && canShareTurn(running, message)
  }

  #modeOf(conversation: Conversation | undefined): QueueMode {
    return conversation?.queueMode ?? this.options.config?.queueMode ?? 'followup'
  }

  /**
   * Queues a reply that answers no message. Returns its id, or undefined if the channel had already claimed the key.
   */
  async say(
    place: Place & { channel: string },
    text: string,
    author?: string,
    key?: string,
  ): Promise<string | undefined> {
    const { newId, now } = this.options
    return this.store.transaction(async (tables) => {
      const at = now()
      if (key !== undefined && !(await tables.channelValues.claim(place.channel, key, at))) return undefined
      const { id: conversationId, seq } = await tables.conversations.enter(place, newId(), at)
      const { channel, address } = place
      const reply = { text, notes: [], isError: false, ...(author !== undefined && { author }) }
      return this.#reply(tables, { conversationId, channel, address, seq }, reply, at)
    })
  }

  /**
   * The platform failed to deliver a reply it had accepted. Returns undefined if the reply was not marked delivered.
   */
  async failDelivery(id: string, problem: string): Promise<Delivery | undefined> {
    return this.store.outbox.fail(id, problem, this.options.now())
  }

  /**
   * Claims the message that has waited longest among those that may run, and records its run if one is planned.
   *
   * Contract: `planRun` is not called for a message that is to be cancelled.
   */
  async claim(
    channels: string[],
    limits: ClaimLimits = {},
    planRun: PlanRun = () => undefined,
  ): Promise<Work | undefined> {
    const { gatewayId, leaseMs, now } = this.options
    return this.store.transaction(async (tables) => {
      const at = now()
      const claim = await tables.jobs.claim(gatewayId, channels, at, leaseMs, limits)
      if (!claim) return undefined
      const isFirst = claim.fence === 1
      const cutOff = isFirst ? [] : await tables.runs.interrupt(claim.messageId, at)
      if (!isFirst) await withdrawApprovals(tables, claim.messageId, at)
      const message = await tables.inbox.get(claim.messageId)
      const conversation = message && (await tables.conversations.get(claim.conversationId))
      if (!conversation) throw new Error(`The job ${claim.messageId} has no message, or the message no conversation`)
      return this.#takeUp(tables, claim, message, conversation, at, planRun, cutOff)
    })
  }

  async #takeUp(
    tables: Tables,
    claim: Claim,
    message: Message,
    found: Conversation,
    at: number,
    planRun: PlanRun,
    cutOff: CutOffRun[] = [],
  ): Promise<Work> {
    const { gatewayId } = this.options
    const isFirst = claim.fence === 1
    const { projectId, beginsSession, metadata } = message.options ?? {}
    // Only on the first attempt: a retry continues in the session that attempt began.
    if (beginsSession && isFirst) await tables.sessions.reset(claim.conversationId, at)
    const merged = await this.#collect(tables, claim, message, this.#modeOf(found))
    const conversation = projectId === undefined ? found : { ...found, projectId }
    const project = await projectOf(tables, conversation, message)
    const earlier = isFirst ? undefined : await earlierAttempts(tables, message)
    const wasInterrupted = !isFirst && (await tables.runs.wasInterrupted(claim.messageId))
    const work = {
      claim,
      claimedAt: at,
      message,
      merged,
      mayHaveMerged: merged.length > 0,
      conversation,
      ...(project && { project }),
      wasInterrupted,
      cutOff,
      ...(earlier && { earlier }),
    }
    const run = claim.isCancelled ? undefined : planRun(work)
    const about = { messageId: message.id, conversationId: conversation.id, gatewayId, ...(metadata && { metadata }) }
    if (run) await tables.runs.begin({ ...run, ...about }, at, isFirst)
    return work
  }

  /**
   * The messages answered together with one just claimed: those merged earlier, plus those that came since if the mode
   * merges them. Does not lock the conversation row: others lock it before they read the job, which we hold.
   */
  async #collect({ inbox, jobs }: Tables, claim: Claim, message: Message, mode: QueueMode): Promise<Message[]> {
    const before = claim.fence > 1 ? await jobs.mergedInto(message.id) : []
    // A cancelled message ends without a turn and must not take later ones with it.
    if ((mode !== 'collect' && mode !== 'interrupt') || claim.isCancelled) return before
    const waiting = await inbox.behindFirst(message.conversationId, this.options.maxQueueDepth)
    const mergeable = mergeableWith(message, waiting, remainingRoom([message, ...before]))
    await jobs.merge(
      mergeable.map(({ id }) => id),
      message.id,
    )
    // Read again: the author may have edited or deleted one meanwhile.
    return mergeable.length === 0 ? before : jobs.mergedInto(message.id)
  }

  /**
   * Merges the next waiting message into the running turn, for its agent to be steered with, if the mode says so.
   *
   * Contract: the caller offers it to the agent and then adds it to `work.merged` or calls `unmerge`. If it does
   * neither, the next attempt at the turn includes it.
   */
  async mergeIntoRunning(work: Work): Promise<Message | undefined> {
    const { leaseMs, now } = this.options
    const { claim, message, merged } = work
    const { conversationId } = claim
    // Called every second for each steerable turn: no lock in other modes.
    if (this.#modeOf(await this.store.conversations.get(conversationId)) !== 'steer') return undefined
    work.mayHaveMerged = true
    return this.store.transaction(async (tables) => {
      await tables.conversations.nextSeq(conversationId, now())
      if ((await tables.jobs.renew(claim, now(), leaseMs)) !== 'held') return undefined
      const waiting = await tables.inbox.behindFirst(conversationId, 1)
      const [next] = mergeableWith(message, waiting, remainingRoom([message, ...merged]))
      if (next) await tables.jobs.merge([next.id], message.id)
      return next
    })
  }

  /** Puts a message that the agent did not take back into the queue. Does nothing without the claim. */
  async unmerge({ claim }: Work, message: Message): Promise<void> {
    const { leaseMs, now } = this.options
    await this.store.transaction(async (tables) => {
      await tables.conversations.nextSeq(claim.conversationId, now())
      if ((await tables.jobs.renew(claim, now(), leaseMs)) === 'lost') return
      await tables.jobs.unmerge(message, now())
    })
  }

  /** Stores the session of a running turn in case it is cut off. Does nothing without the claim. */
  async keepSession({ claim, claimedAt }: Work, session: Session): Promise<void> {
    const { leaseMs, now } = this.options
    await this.store.transaction(async (tables) => {
      const state = await tables.jobs.renew(claim, now(), leaseMs)
      if (state !== 'lost') await tables.sessions.set(session, now(), claimedAt)
    })
  }

  async renew({ claim }: Work): Promise<'held' | 'cancelled' | 'lost'> {
    return this.store.jobs.renew(claim, this.options.now(), this.options.leaseMs)
  }

  /**
   * Also writes the run's last events and whatever `claimReply` does. Contract: writes everything or, if the claim is
   * `lost`, nothing.
   */
  async settle(
    work: Work,
    settlement: Settlement,
    events: RecordedEvent[] = [],
    claimReply: (tables: Tables, replyId: string) => Promise<void> = async () => {},
  ): Promise<'settled' | 'lost'> {
    const at = this.options.now()
    try {
      await this.store.transaction((tables) =>
        writeSettlement(tables, work, settlement, events, at, async (target, reply) =>
          claimReply(tables, await this.#reply(tables, target, reply, at)),
        ),
      )
      return 'settled'
    } catch (error) {
      if (error instanceof ClaimLost) return 'lost'
      throw error
    }
  }

  /**
   * Changes the text of a waiting message. Contract: if the new text would be refused as a message, the old one stays.
   */
  async edit(channel: string, platformId: string, newText: string): Promise<'changed' | 'late' | 'unknown'> {
    const text = storableText(newText)
    return this.store.transaction(async (tables) => {
      const found = await tables.inbox.findByPlatformId(channel, platformId)
      if (!found) return 'unknown'
      const { message } = await this.#lockMessage(tables, found.id, this.options.now())
      const job = await tables.jobs.get(message.mergedInto ?? message.id)
      if (!job || job.state === 'active') return 'late'
      if (problemOf(text) === undefined) await tables.inbox.changeText(found.id, text)
      return 'changed'
    })
  }

  /**
   * Drops a message that is not running, or discards an undelivered reply; `active` if the message is running.
   */
  async drop(messageId: string, audit?: Note): Promise<'dropped' | 'active' | 'finished'> {
    const [outcome, message] = await this.store.transaction(async (tables) => {
      const dropped = await this.#drop(tables, messageId)
      if (dropped[0] === 'dropped') await audit?.(tables, { action: 'queue.drop', subject: messageId })
      return dropped
    })
    if (message) this.options.onDropped?.(message)
    return outcome
  }

  /** Also returns the message that will now never be answered, if any. */
  async #drop(tables: Tables, messageId: string): Promise<['dropped' | 'active' | 'finished', Message?]> {
    const at = this.options.now()
    const delivery = await tables.outbox.get(messageId)
    if (delivery) {
      await tables.outbox.discard(messageId)
      return [delivery.state === 'undelivered' ? 'dropped' : 'finished']
    }
    const { message } = await this.#lockMessage(tables, messageId, at)
    if (message.state === 'failed') {
      await tables.jobs.discard(messageId, at)
      return ['dropped']
    }
    const { mergedInto } = message
    const job = message.state === 'open' ? await tables.jobs.get(mergedInto ?? messageId) : undefined
    if (!job) return ['finished']
    if (job.state === 'active') return ['active']
    if (mergedInto !== undefined) {
      await tables.jobs.dropMerged(messageId, at)
      return ['dropped', message]
    }
    for (const merged of await tables.jobs.mergedInto(messageId)) await tables.jobs.unmerge(merged, at)
    const claim = { messageId, conversationId: message.conversationId, fence: job.fence }
    if (!(await tables.jobs.finish(claim, 'dropped', null, at, false))) return ['active']
    return ['dropped', message]
  }

  /**
   * Retries a dead letter together with the messages merged into it, or resends an undelivered reply.
   *
   * Contract: throws `conflict` for a command that may have partly run, and for a message whose project was removed.
   */
  async retry(id: string, audit?: Note): Promise<'message' | 'reply'> {
    const { now, replyExpiryMs } = this.options
    return this.store.transaction(async (tables) => {
      const at = now()
      await audit?.(tables, { action: 'queue.retry', subject: id })
      const delivery = await tables.outbox.get(id)
      if (delivery) {
        if (delivery.state !== 'undelivered') throw notRetryable(id, `its reply is ${delivery.state}`)
        await tables.outbox.reopen(id, at, at + replyExpiryMs)
        return 'reply'
      }
      const leadId = (await tables.inbox.get(id))?.mergedInto ?? id
      const { message, seq } = await this.#lockMessage(tables, leadId, at)
      if (message.state !== 'failed') throw notRetryable(id, `it is ${message.state}`)
      await requireRepeatable(tables, message)
      const end = 1 + (await tables.runs.lastNumber(leadId))
      await tables.jobs.reopen(message, seq, end, at)
      for (const merged of await tables.jobs.mergedInto(leadId, 'failed')) {
        await tables.jobs.reopenMerged(merged.id, await tables.conversations.nextSeq(message.conversationId, at))
      }
      return 'message'
    })
  }

  /** Reads a message while holding the lock on its conversation. */
  async #lockMessage(tables: Tables, id: string, at: number): Promise<{ message: Message; seq: number }> {
    const found = await tables.inbox.get(id)
    const seq = found && (await tables.conversations.nextSeq(found.conversationId, at))
    const message = await tables.inbox.get(id)
    if (message && seq !== undefined) return { message, seq }
    throw new GatewayError('not_found', `There is no message ${id}. GET /queue, or "aetheel queue list", lists them.`)
  }

  async #reply(
    tables: Tables,
    target: Omit<NewDelivery, 'id' | 'reply' | 'expiresAt'>,
    reply: Reply,
    at: number,
  ): Promise<string> {
    const { newId, replyExpiryMs } = this.options
    const id = newId()
    await tables.outbox.add({ ...target, id, reply, expiresAt: at + replyExpiryMs }, at)
    return id
  }
}

async function duplicate(tables: Tables, channel: string, platformId: string): Promise<Acceptance> {
  const message = await tables.inbox.findByPlatformId(channel, platformId)
  if (!message) throw new Error(`The message ${platformId} of ${channel} is neither new nor there`)
  return { status: 'duplicate', messageId: message.id, conversationId: message.conversationId }
}

async function projectOf(
  { projects }: Tables,
  { projectId }: Conversation,
  { options: { projectInstance } = {} }: Message,
): Promise<ProjectRecord | undefined> {
  const project = projectId === undefined ? undefined : await projects.get(projectId)
  return projectInstance === undefined || project?.instance === projectInstance ? project : undefined
}

async function earlierAttempts(
  { runs }: Tables,
  { id, retriedAfter = 0 }: Message,
): Promise<EarlierAttempts | undefined> {
  const attempts = (await runs.ofMessage(id)).filter(({ firstSeq }) => firstSeq >= retriedAfter)
  const [first] = attempts
  if (!first) return undefined
  const { backend, model } = first
  const results = attempts.flatMap(({ result }) => result ?? [])
  const workedMs = results.reduce((sum, { durationMs }) => sum + durationMs, 0)
  const timeouts = results.filter(({ failure }) => failure?.reason === 'timeout').length
  return { backend, ...(model !== undefined && { model }), count: results.length, timeouts, workedMs }
}

async function requireRepeatable(tables: Tables, message: Message): Promise<void> {
  const { id, conversationId, options = {} } = message
  if (options.command && (await tables.runs.wasInterrupted(id))) {
    const advice = 'Check what it already did, then send it as a new command.'
    throw new GatewayError('conflict', `${id} was cut off while it ran and is not run twice. ${advice}`)
  }
  const conversation = await tables.conversations.get(conversationId)
  if (options.projectInstance === undefined || conversation?.projectId === undefined) return
  await tables.projects.hold(conversation.projectId, 'use')
  if (await projectOf(tables, conversation, message)) return
  throw new GatewayError('conflict', `The project of ${id} was removed. Drop it, or send it to another project.`)
}

function notRetryable(id: string, state: string): GatewayError {
  return new GatewayError(
    'conflict',
    `${id} cannot be retried: ${state}, not failed. Wait until it ends, or send it again as a new one.`,
  )
}

/** The text as the store can hold it: without NUL and without lone surrogates. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '').replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}
