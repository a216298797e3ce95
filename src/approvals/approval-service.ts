// Asks people for approval on behalf of agents.
//
// Invariants:
// - The row in the store is authoritative. Whoever changes it first has answered, on any gateway. The waiting gateway
//   polls; waking it only saves time.
// - Nothing is locked while a person decides, and no error ever allows anything.

import type { ApprovalAnswer, ApprovalRequest, Approve } from '../backends/types.js'
import type { Channel } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import { shownAgent } from '../core/demo-agent.js'
import type { Scrubber } from '../credentials/scrubber.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { Approval, NewApproval } from '../store/approvals.js'
import type { Note } from '../store/audit.js'
import type { Conversation } from '../store/conversations.js'
import type { Message } from '../store/inbox.js'
import type { Store } from '../store/store.js'
import { answerApproval, type ApprovalDecision } from './answer-approval.js'
import { askedNotice, endedNotice, endedText, questionText, refusal } from './approval-words.js'
import { shownInput, subjectOf, summaryOf } from './asked-input.js'

export interface ApprovalOptions {
  config: Pick<GatewayConfig, 'approvalTimeoutMs' | 'agentBackend' | 'isDemoAgent'>
  store: Store
  channels: Channel[]
  scrubber: Scrubber
  /** Called when there is a question to send. */
  onAsked(): void
  log: Log
  now: () => number
  newId: () => string
  pollMs?: number
}

/** The run whose agent asks. */
export interface RequestingRun {
  id: string
  backend: string
  message: Pick<Message, 'id' | 'kind' | 'author'>
  conversation: Pick<Conversation, 'id' | 'channel' | 'address' | 'projectId'>
}

export interface RunApproval {
  approve: Approve
  /** Notes below the answer, one sentence each. */
  notes: string[]
}

type RequestedTool = Pick<NewApproval, 'projectId' | 'backend' | 'toolName' | 'toolInput' | 'subject'>

type Notify = (notice: string, at: number) => void

/** A run with its notices and notes. */
interface RequestingTurn {
  run: RequestingRun
  notify: Notify
  notes: string[]
  /** How many of its questions are unanswered. */
  waiting: number
}

const POLL_MS = 1_000
/** Per run: with more open questions, people would allow them unread. */
export const MAX_OPEN_QUESTIONS = 10
const TOO_MANY = `This was refused: ${MAX_OPEN_QUESTIONS} questions wait for an answer already. Ask again when they have one.`
/** Batch size for closing ended questions. */
const CLOSED_AT_ONCE = 50

export class ApprovalService {
  readonly #waiting = new Map<string, () => void>()
  #isClosing = false
  #mayBeMore = false

  constructor(private readonly options: ApprovalOptions) {}

  /** The approval callback for one run's agent. `notify` adds a notice to its events. */
  approverFor(run: RequestingRun, notify: Notify): RunApproval {
    const turn: RequestingTurn = { run, notify, notes: [], waiting: 0 }
    const approve: Approve = async (request, signal) => {
      try {
        return await this.#ask(turn, request, signal)
      } catch (error) {
        this.options.log.error('approval.not-asked', { runId: run.id, error: messageOf(error) })
        return { isAllowed: false, message: 'This was refused, since nobody could be asked.' }
      }
    }
    return { approve, notes: turn.notes }
  }

  /** Contract: throws like `answerApproval`. */
  async answer(id: string, decision: ApprovalDecision, audit?: Note): Promise<Approval> {
    const { store, now } = this.options
    const answered = await answerApproval(store, id, decision, now(), audit)
    this.#waiting.get(id)?.()
    this.closeQuestions()
    return answered
  }

  /** Updates ended questions that channels still show as open. */
  closeQuestions(): void {
    this.#mayBeMore = true
    if (!this.#isClosing) void this.#closeAll()
  }

  async #ask(turn: RequestingTurn, request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalAnswer> {
    const { store, scrubber } = this.options
    const { backend, conversation } = turn.run
    const subject = subjectOf(request, scrubber)
    const { projectId } = conversation
    const kind = { backend, toolName: request.toolName, ...(projectId !== undefined && { projectId }) }
    const about = { ...kind, ...(subject !== undefined && { subject }) }
    if (await store.approvalRules.allows(about)) return { isAllowed: true }
    if (turn.waiting >= MAX_OPEN_QUESTIONS) return { isAllowed: false, message: TOO_MANY }
    turn.waiting += 1
    try {
      return await this.#askPerson(turn, { ...about, ...request }, signal)
    } finally {
      turn.waiting -= 1
    }
  }

  async #askPerson(
    { run, notify, notes }: RequestingTurn,
    about: RequestedTool,
    signal: AbortSignal,
  ): Promise<ApprovalAnswer> {
    const { onAsked, now } = this.options
    const approval = await this.#put(about, run)
    onAsked()
    notify(askedNotice(approval), now())
    const ended = await this.#untilEnded(approval, signal)
    notify(endedNotice(ended), now())
    if (ended.state === 'expired') notes.push(`${endedNotice(ended)}.`)
    return ended.state === 'allowed' ? { isAllowed: true } : { isAllowed: false, message: refusal(ended) }
  }

  /**
   * Stores the approval and queues the question. Contract: rejects if the run is over or was lost to another gateway.
   */
  async #put(about: RequestedTool, { id: runId, message, conversation }: RequestingRun): Promise<NewApproval> {
    const { config, store, channels, scrubber, now, newId } = this.options
    const askedAt = now()
    const toolInput = shownInput(about.toolInput, scrubber)
    const approval: NewApproval = {
      ...about,
      id: newId(),
      messageId: message.id,
      runId,
      conversationId: conversation.id,
      toolInput,
      summary: summaryOf({ toolName: about.toolName, toolInput }),
      askedAt,
      deadline: askedAt + config.approvalTimeoutMs,
    }
    const { id, deadline } = approval
    const question = { id, canRemember: approval.subject !== undefined }
    // Questions of heartbeats and jobs have no author; the channel decides who gets them.
    const author = message.kind === 'message' ? { author: message.author } : {}
    const { id: conversationId, channel, address } = conversation
    const { endQuestion, offersAnswers } = channels.find(({ name }) => name === channel) ?? {}
    const canEnd = endQuestion !== undefined
    const text = questionText(this.#shown(approval), askedAt, offersAnswers)
    const reply = { text, notes: [], isError: false, question, ...author }
    await store.transaction(async (tables) => {
      // Locks the conversation: the run cannot end between this check and the writes.
      const seq = await tables.conversations.nextSeq(conversationId, askedAt)
      if ((await tables.runs.get(runId))?.state !== 'running') throw new Error(`The run ${runId} is over`)
      await tables.approvals.add(approval, canEnd)
      await tables.outbox.add({ id, conversationId, channel, address, seq, reply, expiresAt: deadline }, askedAt)
    })
    return approval
  }

  /** Contract: never rejects, and settles soon after the signal or the deadline. */
  async #untilEnded(approval: NewApproval, signal: AbortSignal): Promise<Approval> {
    const { store, log, now, pollMs = POLL_MS } = this.options
    const { id, deadline } = approval
    for (;;) {
      const end = signal.aborted ? 'withdrawn' : now() >= deadline ? 'expired' : undefined
      try {
        if (end) await this.#end(id, end)
        const found = await store.approvals.get(id)
        if (found?.state !== 'asked') return found ?? { ...approval, state: 'withdrawn' }
      } catch (error) {
        log.warn('approval.not-read', { id, error: messageOf(error) })
        if (end) return { ...approval, state: end }
      }
      await this.#pause(id, signal, Math.min(pollMs, Math.max(0, deadline - now())))
    }
  }

  async #end(id: string, state: 'withdrawn' | 'expired'): Promise<void> {
    const { store, now } = this.options
    await store.transaction(async (tables) => {
      if (await tables.approvals.end(id, { state, at: now() })) await tables.outbox.takeBack([id])
    })
    this.closeQuestions()
  }

  /** Waits until it is answered here, or for the given time. */
  #pause(id: string, signal: AbortSignal, durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        this.#waiting.delete(id)
        resolve()
      }
      const timer = setTimeout(wake, durationMs)
      signal.addEventListener('abort', wake)
      this.#waiting.set(id, wake)
      if (signal.aborted) wake()
    })
  }

  /** With the agent's name as people see it. */
  #shown<T extends NewApproval>(approval: T): T {
    return { ...approval, backend: shownAgent(approval.backend, this.options.config) }
  }

  async #closeAll(): Promise<void> {
    const { store, channels, log } = this.options
    const byName = new Map(channels.flatMap((channel) => (channel.endQuestion ? [[channel.name, channel]] : [])))
    this.#isClosing = true
    try {
      while (this.#mayBeMore) {
        this.#mayBeMore = false
        for (const approval of await store.approvals.shownTooLong([...byName.keys()], CLOSED_AT_ONCE)) {
          const { id, address } = approval
          await byName.get(approval.channel)?.endQuestion?.({ id, address, text: endedText(this.#shown(approval)) })
          await store.approvals.close(id)
        }
      }
    } catch (error) {
      // Retried with the next question, and every minute.
      log.warn('approval.still-shown', { error: messageOf(error) })
    } finally {
      this.#isClosing = false
    }
  }
}
