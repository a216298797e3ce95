// The rules of the queue: inbox → run → outbox. docs/queue-states.md draws the states.
//
// Every step is one transaction, and no transaction is open while an agent works. A step that cannot be made, because
// the claim has gone to somebody else, changes nothing.

import type { Acceptance, Place, QueueMode, Reply } from '../channels/types.js'
import { GatewayError } from '../errors.js'
import type { Note } from '../store/audit.js'
import type { ClaimLimits } from '../store/claims.js'
import type { Conversation } from '../store/conversations.js'
import type { RecordedEvent } from '../store/events.js'
import type { Message, NewMessage } from '../store/inbox.js'
import type { Claim } from '../store/jobs.js'
import type { Delivery, NewDelivery } from '../store/outbox.js'
import type { ProjectRecord } from '../store/projects.js'
import type { CutOffRun } from '../store/runs.js'
import type { Session } from '../store/sessions.js'
import type { Store, Tables } from '../store/store.js'
import { areOfOneKind, joinable } from './joining.js'
import { ClaimLost, withdrawApprovals, writeSettlement } from './settle.js'
import type { IncomingMessage, PlannedRun, Settlement, Work } from './types.js'

interface IncomingPlace extends Place {
  channel: string
}

export interface QueueOptions {
  gatewayId: string
  maxQueueDepth: number
  leaseMs: number
  replyExpiryMs: number
  /** Of conversations where none was chosen; left out, `followup`. */
  defaultMode?(): QueueMode
  now: () => number
  newId: () => string
  /** A message was taken out that would have been answered. */
  onDropped?(message: Message): void
}

/** No agent takes more in one message, and a chat has no longer ones. */
export const MAX_MESSAGE_CHARACTERS = 1_000_000
/** An index of PostgreSQL takes no longer ones. */
const MAX_NAME_CHARACTERS = 500
/** Of a refused message, enough to recognise it. */
const KEPT_OF_REFUSED = 1_000
const INTERRUPTS_NOTE = 'What the agent was doing is stopped, and this comes next.'

/**
 * What else must hold, or happens, when a new message is taken, or refused for a problem.
 *
 * Contract: uses the tables it is given, those of the same transaction; when it throws, nothing of it is kept.
 */
export type Admit = (tables: Tables, message: NewMessage, problem: string | undefined) => Promise<void>

export interface AcceptOptions {
  /** Why it is not taken, known before. */
  objection?: string | undefined
  admit?: Admit | undefined
}

/** Plans the run of a message that was just claimed, if there is to be one. Contract: only chooses, and starts nothing: the
 *  transaction of the claim is open. */
export type PlanRun = (work: Work) => PlannedRun | undefined

export interface Taken {
  acceptance: Acceptance
  /** When it was claimed. */
  work?: Work
}

export class Queue {
  constructor(
    private readonly store: Store,
    private readonly options: QueueOptions,
  ) {}

  /**
   * Contract: when this settles, the message is on disk, or the person is going to be told why not: `objection`, or what
   * is wrong with it.
   */
  async accept(incoming: IncomingMessage, options: AcceptOptions = {}): Promise<Acceptance> {
    return (await this.take(incoming, options)).acceptance
  }

  /** As `accept`. With `planRun`, a message that nothing comes before is claimed in the same step; `onTaken` hears of it as
   *  that of a transaction. */
  async take(
    incoming: IncomingMessage,
    { objection, admit }: AcceptOptions,
    planRun?: PlanRun,
    onTaken?: (taken: Taken) => void,
  ): Promise<Taken> {
    const { gatewayId, leaseMs, newId, now, maxQueueDepth } = this.options
    const { channel, address, platformId, author } = incoming
    if (![address, platformId, author].every((name) => name !== '' && name.length <= MAX_NAME_CHARACTERS)) {
      const rule = `must have 1 to ${MAX_NAME_CHARACTERS} characters each`
      throw new GatewayError('request_invalid', `The address, the id and the author of a message ${rule}.`)
    }
    const text = storableText(incoming.text)
    const invalid = objection ?? problemOf(text)
    return this.store.transaction<Taken>(async (tables) => {
      const at = now()
      const { seq, ...entered } = await tables.conversations.enter(incoming, newId(), at)
      const conversationId = entered.id
      const ahead = await tables.jobs.countOpen(conversationId)
      const first = ahead > 0 ? await tables.jobs.first(conversationId) : undefined
      const runningId = first?.state === 'active' ? first.messageId : undefined
      const waiting = runningId === undefined ? ahead : ahead - 1
      const problem = invalid ?? (waiting >= maxQueueDepth ? fullProblem(waiting) : undefined)
      const message = {
        id: newId(),
        conversationId,
        channel,
        platformId,
        seq,
        kind: incoming.kind ?? 'message',
        author,
        text: problem === undefined ? text : text.slice(0, KEPT_OF_REFUSED),
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
          // Whoever admits it may have changed what is chosen for it.
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
    return this.#modeOf(conversation) === 'interrupt' && running !== undefined && areOfOneKind(running, message)
  }

  #modeOf(conversation: Conversation | undefined): QueueMode {
    return conversation?.queueMode ?? this.options.defaultMode?.() ?? 'followup'
  }

  /** Puts a reply on its way that answers no message. Returns its id; nothing when the channel had claimed the key. */
  async say(place: IncomingPlace, text: string, author?: string, key?: string): Promise<string | undefined> {
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

  /** The platform could not deliver a reply that it had taken. Nothing when it was not thought to be delivered. */
  async failDelivery(id: string, problem: string): Promise<Delivery | undefined> {
    return this.store.outbox.fail(id, problem, this.options.now())
  }

  /**
   * Takes the message that has waited longest, of those that may run now, and puts its run on record, if there is to be one.
   *
   * Contract: `planRun` is not asked for a message that is to be cancelled.
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
      if (!conversation) throw new Error(`The job ${claim.messageId} has no message, or that no conversation`)
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
    // Only once: what was cut off goes on in the session that it began.
    if (beginsSession && isFirst) await tables.sessions.reset(claim.conversationId, at)
    const merged = await this.#collect(tables, claim, message, this.#modeOf(found))
    const conversation = projectId === undefined ? found : { ...found, projectId }
    const project = await projectOf(tables, conversation, message)
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
    }
    const run = claim.isCancelled ? undefined : planRun(work)
    const about = { messageId: message.id, conversationId: conversation.id, gatewayId, ...(metadata && { metadata }) }
    if (run) await tables.runs.begin({ ...run, ...about }, at, isFirst)
    return work
  }

  /** What is answered with a message that was just claimed: as before, and what has come since where the mode says so. The
   *  conversation's row stays free: others lock it before they look at the job that is ours now. */
  async #collect({ inbox, jobs }: Tables, claim: Claim, message: Message, mode: QueueMode): Promise<Message[]> {
    const before = claim.fence > 1 ? await jobs.mergedInto(message.id) : []
    // One that was stopped ends without a turn, and must not take with it what came after.
    if ((mode !== 'collect' && mode !== 'interrupt') || claim.isCancelled) return before
    const waiting = await inbox.behindFirst(message.conversationId, this.options.maxQueueDepth)
    const joining = joinable(message, waiting, roomBeside(message, before))
    await jobs.merge(
      joining.map(({ id }) => id),
      message.id,
    )
    // Not what was seen before: its author may have changed or deleted it meanwhile.
    return joining.length === 0 ? before : jobs.mergedInto(message.id)
  }

  /**
   * Takes the next message that waits into the turn under way, for its agent to be told, where the mode says so.
   *
   * Contract: the caller offers it, and then adds it to `work.merged` or calls `part`. Should neither come, whoever takes
   * the turn up again has it.
   */
  async join(work: Work): Promise<Message | undefined> {
    const { leaseMs, now } = this.options
    const { claim, message, merged } = work
    const { conversationId } = claim
    // Asked every second of each turn that could be steered: in other modes without a lock.
    if (this.#modeOf(await this.store.conversations.get(conversationId)) !== 'steer') return undefined
    work.mayHaveMerged = true
    return this.store.transaction(async (tables) => {
      await tables.conversations.nextSeq(conversationId, now())
      if ((await tables.jobs.renew(claim, now(), leaseMs)) !== 'held') return undefined
      const waiting = await tables.inbox.behindFirst(conversationId, 1)
      const [next] = joinable(message, waiting, roomBeside(message, merged))
      if (next) await tables.jobs.merge([next.id], message.id)
      return next
    })
  }

  /** Lets a message wait after all which the agent did not take. Nothing happens without the claim. */
  async part({ claim }: Work, message: Message): Promise<void> {
    const { leaseMs, now } = this.options
    await this.store.transaction(async (tables) => {
      await tables.conversations.nextSeq(claim.conversationId, now())
      if ((await tables.jobs.renew(claim, now(), leaseMs)) === 'lost') return
      await tables.jobs.unmerge(message, now())
    })
  }

  /** Keeps the session of a turn that goes on, for the case that it is cut off. Nothing happens without the claim. */
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

  /** With the last events of its run, and what `claimReply` does. Contract: all of it or, when the claim is `lost`, nothing. */
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

  /** Changes the text of a message that waits. Contract: one that would be refused as a new message stays as it is. */
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

  /** Takes a message out that nobody works on, or lets go of an undelivered reply; `active` when somebody works on it. */
  async drop(messageId: string, note?: Note): Promise<'dropped' | 'active' | 'finished'> {
    const { onDropped } = this.options
    let dropped: Message | undefined
    const outcome = await this.store.transaction(async (tables) => {
      const [result, message] = await this.#drop(tables, messageId)
      dropped = message
      if (result === 'dropped') await note?.(tables, { action: 'queue.drop', subject: messageId })
      return result
    })
    if (dropped) onDropped?.(dropped)
    return outcome
  }

  /** With the message that nobody will take up any more, if there is one. */
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
   * Takes up a dead letter with all that failed with it, or sends a reply again that could not be delivered.
   *
   * Contract: throws `conflict` for a command that may have been done in part, and for one of a removed project.
   */
  async retry(id: string, note?: Note): Promise<'message' | 'reply'> {
    const { now, replyExpiryMs } = this.options
    return this.store.transaction(async (tables) => {
      const at = now()
      await note?.(tables, { action: 'queue.retry', subject: id })
      const delivery = await tables.outbox.get(id)
      if (delivery) {
        if (delivery.state !== 'undelivered') throw notWaiting(id, `its reply is ${delivery.state}`)
        await tables.outbox.reopen(id, at, at + replyExpiryMs)
        return 'reply'
      }
      const carrierId = (await tables.inbox.get(id))?.mergedInto ?? id
      const { message, seq } = await this.#lockMessage(tables, carrierId, at)
      if (message.state !== 'failed') throw notWaiting(id, `it is ${message.state}`)
      await requireRepeatable(tables, message)
      const end = 1 + (await tables.runs.lastNumber(carrierId))
      await tables.jobs.reopen(message, seq, end, at)
      for (const merged of await tables.jobs.mergedInto(carrierId, 'failed')) {
        await tables.jobs.reopenMerged(merged.id, await tables.conversations.nextSeq(message.conversationId, at))
      }
      return 'message'
    })
  }

  /** Reads a message while nobody else changes its conversation. */
  async #lockMessage(tables: Tables, id: string, at: number): Promise<{ message: Message; seq: number }> {
    const found = await tables.inbox.get(id)
    const seq = found && (await tables.conversations.nextSeq(found.conversationId, at))
    const message = await tables.inbox.get(id)
    if (message && seq !== undefined) return { message, seq }
    throw new GatewayError(
      'not_found',
      `There is no message ${id}. GET /queue, or "aetheel queue list", shows those there are.`,
    )
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

async function requireRepeatable(tables: Tables, message: Message): Promise<void> {
  const { id, conversationId, options = {} } = message
  if (options.command && (await tables.runs.wasInterrupted(id))) {
    const advice = 'Look what is done already, then send it as a new command.'
    throw new GatewayError('conflict', `${id} was cut off while it ran, and is not run twice. ${advice}`)
  }
  const conversation = await tables.conversations.get(conversationId)
  if (options.projectInstance === undefined || conversation?.projectId === undefined) return
  await tables.projects.hold(conversation.projectId, 'use')
  if (await projectOf(tables, conversation, message)) return
  throw new GatewayError('conflict', `The project of ${id} was removed. Drop it, or send it to another project.`)
}

/** No agent takes more in one prompt. */
function roomBeside(message: Message, merged: Message[]): number {
  return [message, ...merged].reduce((room, { text }) => room - text.length, MAX_MESSAGE_CHARACTERS)
}

function problemOf(text: string): string | undefined {
  if (text.trim() === '') return 'The message is empty. Write what the agent should do.'
  if (text.length <= MAX_MESSAGE_CHARACTERS) return undefined
  const size = `${text.length} characters, of at most ${MAX_MESSAGE_CHARACTERS}`
  return `The message is too long: ${size}. Put it in a file and name the file.`
}

function fullProblem(waiting: number): string {
  return `${waiting === 1 ? '1 message waits' : `${waiting} messages wait`} in this conversation already, so this one was not taken. Send it again later.`
}

function notWaiting(id: string, state: string): GatewayError {
  return new GatewayError(
    'conflict',
    `${id} cannot be tried again: ${state}, not failed. Wait for its end, or send it as a new one.`,
  )
}

/** A text as the store gives it back: it has no place for NUL, nor for half a character. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '').replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}
