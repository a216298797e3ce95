// The person's side of one conversation with a gateway.
//
// Invariants:
// - The gateway's record is authoritative. Pushed events and replies are only faster: they may be missing if the
//   connection broke or another gateway on the same database did the work. Then the record is read.
// - A message keeps its platform id until the gateway has accepted it, so resending it after a disconnect is safe.
// - A reply is shown once, however often and by whichever path it arrives.
// - An agent's question is open as long as the record says so, whoever answers it and wherever.

import { randomUUID } from 'node:crypto'
import { wait } from '../core/async.js'
import { defined } from '../core/defined.js'
import type { NextAttempt } from '../channels/types.js'
import { timeAhead } from '../runtime/time-words.js'
import type { Control, HistoryEntry, OpenQuestion, ParametersOf, Push, ShownReply } from './control/protocol.js'
import { isCommand } from '../turns/accept.js'
import { GatewayError, messageOf } from '../errors.js'
import { oneLine } from '../core/one-line.js'
import { endedNotice } from '../approvals/approval-words.js'
import { NOBODY } from './terminal-approval.js'
import type { Printer } from './turn-printer.js'

export interface ChatSessionOptions {
  address: string
  author: string
  projectId?: string | undefined
  view: ChatView
  /** Nobody can answer questions about our messages, so they are denied at once. */
  refusesQuestions: boolean
  /** Undefined if no gateway is running. */
  connect(onPush: (push: Push) => void): Promise<Control | undefined>
  /** How long to wait for a lost gateway. Absent: forever. */
  reconnectTimeoutMs?: number | undefined
}

/** What the person sees. */
export interface ChatView {
  /** How much of a line is worth showing. */
  readonly width: number
  /** Lines of `/help` about what only this view offers. */
  readonly help: string
  newPrinter(): Printer
  /** What the gateway says, outside a turn. */
  note(text: string): void
  showHistory(entries: HistoryEntry[]): void
  /** Shows all open questions, oldest first. Absent if questions are shown as replies. */
  showQuestions?(questions: OpenQuestion[]): void
  /** No answer is pending and nothing is being printed. */
  idle(): void
}

interface SentMessage {
  platformId: string
  text: string
  files: string[]
  /** Set once the gateway has accepted it. */
  messageId?: string
}

interface ShownRun {
  id: string
  messageId: string
  seq: number
  /** Whether every event was seen from the first. */
  isWhole: boolean
  isOver: boolean
  printer: Printer
}

type EventPush = Extract<Push, { kind: 'event' }>

const POLL_MS = 1_000
const RECONNECT_MS = 300
/** Open messages beyond these are not followed. */
const POLLED_ENTRIES = 400
const HISTORY_ENTRIES = 50
const REFUSED_ADVICE =
  'To answer, run "aetheel chat" in a terminal or use the dashboard. To stop agents asking, set agentPermissions to allow.'

export class ChatSession {
  /** Whether any message went unanswered. */
  hasFailed = false
  /** Whether all lines so far were blank. */
  hasOnlyBlanks = false
  #hasAsked = false
  #control: Control | undefined
  #unanswered: SentMessage[] = []
  /** Whether each finished message was answered, by id. */
  readonly #finished = new Map<string, boolean>()
  readonly #shownReplies = new Set<string>()
  #afterSeq = 0
  #run: ShownRun | undefined
  /** Events of the next turn, held until the last turn's reply has arrived. */
  #held: EventPush[] = []
  #hasQuestions = false
  /** The gateway's notices about questions that were denied here. */
  readonly #refusals = new Set<string>()
  #polling: Promise<void> | undefined
  #mayBeMore = false
  #lastProblem = ''
  #isClosed = false
  #poll: NodeJS.Timeout | undefined
  #sending: Promise<void> = Promise.resolve()
  readonly #onSettled: Array<() => void> = []

  constructor(private readonly options: ChatSessionOptions) {}

  /**
   * `greet` is called before the history is shown. Contract: rejects if the gateway refuses, as for an unknown project.
   */
  async begin(control: Control, showsHistory: number, greet = async (): Promise<void> => {}): Promise<void> {
    await this.#attach(control)
    await greet()
    const { address } = this.options
    const { entries } = await control.call('chat.history', { address, afterSeq: 0, limit: HISTORY_ENTRIES })
    for (const entry of entries) if (entry.kind === 'reply') this.#shownReplies.add(entry.id)
    this.#advance(entries)
    if (showsHistory > 0) this.options.view.showHistory(entries.slice(-showsHistory))
    if (this.options.view.showQuestions) await this.#readQuestions()
    this.#poll = setInterval(() => void this.#catchUp(), POLL_MS)
  }

  get isBusy(): boolean {
    return this.#unanswered.length > 0
  }

  /** Undefined while the gateway is gone. */
  get control(): Control | undefined {
    return this.#control
  }

  onPush(push: Push): void {
    switch (push.kind) {
      case 'event':
        return this.#take(push)
      case 'reply':
        this.#showReply({ ...push, id: push.idempotencyKey })
        if (push.isLast && push.messageId !== undefined) this.#finished.set(push.messageId, !push.isError)
        return this.#settleFinished()
      case 'retry':
        return this.#noteRetry(push)
      default: // From a newer gateway; anything that matters is on record.
    }
  }

  /** Handles what the person wrote. `files` are attached to a message. */
  async take(line: string, files: string[] = []): Promise<void> {
    this.#hasAsked ||= line.trim() !== ''
    this.hasOnlyBlanks = !this.#hasAsked
    if (line.trim() === '') return this.options.view.idle()
    if (line.trim() === '/history') return this.#showHistory()
    // A script cannot see when the agent has paused.
    if (this.options.refusesQuestions && line.trim() === '/continue') await this.answered()
    if (isCommand(line)) return this.#command(line)
    this.#unanswered.push({ platformId: randomUUID(), text: line, files })
    await this.#send()
  }

  /** Stops the running turn. */
  async stopTurn(): Promise<void> {
    await this.#command('/stop')
    await this.#catchUp()
  }

  /** Contract: rejects if it could not be answered. */
  async answerQuestion(answer: ParametersOf<'approvals.answer'>): Promise<void> {
    await this.#present().call('approvals.answer', answer)
  }

  /** Settles when every message is answered or has failed. */
  async answered(): Promise<void> {
    await this.#sending
    if (!this.isBusy) return
    await new Promise<void>((resolve) => {
      this.#onSettled.push(resolve)
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#poll)
    await this.#control?.close()
  }

  async #attach(control: Control): Promise<void> {
    const { address, projectId } = this.options
    await control.call('chat.attach', defined({ address, projectId }))
    this.#control = control
    void control.closed.then(() => {
      this.#control = undefined
      if (!this.#isClosed) void this.#reconnect()
    })
  }

  async #reconnect(): Promise<void> {
    const { reconnectTimeoutMs = Number.POSITIVE_INFINITY } = this.options
    const lostAt = Date.now()
    this.#note('! Lost the connection to the gateway. Waiting for it to come back; Ctrl-C leaves.')
    while (!this.#isClosed) {
      await wait(RECONNECT_MS)
      if (Date.now() - lostAt > reconnectTimeoutMs) {
        this.#note('! It did not come back. Messages it accepted are kept, and the next gateway answers them.')
        for (const message of this.#unanswered) this.#settle(message, false)
        return
      }
      try {
        const control = await this.options.connect((push) => this.onPush(push))
        if (!control) continue
        if (this.#isClosed) return await control.close()
        await this.#attach(control)
        break
      } catch (error) {
        this.#report(error)
      }
    }
    if (this.#isClosed) return
    this.#note('! The gateway is back.')
    await this.#send()
    await this.#catchUp()
    if (!this.isBusy) this.options.view.idle()
  }

  /** Sends what the gateway does not have yet, in order. */
  #send(): Promise<void> {
    this.#sending = this.#sending.then(() => this.#sendAll())
    return this.#sending
  }

  async #sendAll(): Promise<void> {
    const { address, author } = this.options
    for (const message of this.#unanswered.filter(({ messageId }) => messageId === undefined)) {
      const control = this.#control
      // Sent again after the reconnect.
      if (!control) return
      const { platformId, text, files } = message
      try {
        const acceptance = await control.call('chat.send', {
          ...{ address, platformId, author, text },
          ...(files.length > 0 && { files }),
        })
        message.messageId = acceptance.messageId
        if (acceptance.status !== 'accepted') continue
        const { position, notes, interrupts } = acceptance
        for (const note of notes) this.#note(`! ${note}`)
        if (position > 0 && interrupts === undefined) {
          this.#note(`! ${position} ${position === 1 ? 'message is' : 'messages are'} ahead of this one.`)
        }
      } catch (error) {
        if (isDisconnected(error)) return
        this.#note(`Error: ${messageOf(error)}`)
        this.#settle(message, false)
      }
    }
    this.#settleFinished()
  }

  #command(line: string): Promise<void> {
    const { address, author } = this.options
    return this.#ask(async (control) => {
      const { answer, messageId } = await control.call('chat.command', { address, author, line })
      // Wait for it as if the person had written it.
      if (messageId !== undefined) this.#unanswered.push({ platformId: '', text: line, files: [], messageId })
      this.#note(line.trim() === '/help' ? `${answer}\n${this.options.view.help}` : answer)
      this.#settleFinished()
    })
  }

  #showHistory(): Promise<void> {
    const request = { address: this.options.address, afterSeq: 0, limit: HISTORY_ENTRIES }
    return this.#ask(async (control) => {
      this.options.view.showHistory((await control.call('chat.history', request)).entries)
    })
  }

  async #ask(ask: (control: Control) => Promise<void>): Promise<void> {
    try {
      await ask(this.#present())
    } catch (error) {
      this.#note(`Error: ${messageOf(error)}`)
    }
    if (!this.isBusy) this.options.view.idle()
  }

  #present(): Control {
    if (!this.#control)
      throw new GatewayError('gateway_unavailable', 'Not connected to the gateway. Try again in a moment.')
    return this.#control
  }

  /** Reads what was not pushed from the record. */
  #catchUp(): Promise<void> {
    this.#mayBeMore = true
    this.#polling ??= this.#readRecord().finally(() => {
      this.#polling = undefined
    })
    return this.#polling
  }

  async #readRecord(): Promise<void> {
    const { address } = this.options
    try {
      while (this.#control && this.#mayBeMore) {
        this.#mayBeMore = false
        const request = { address, afterSeq: this.#afterSeq, limit: POLLED_ENTRIES }
        const { entries } = await this.#control.call('chat.history', request)
        for (const entry of entries) {
          if (entry.kind === 'reply') this.#showReply(entry)
          else if (entry.state !== 'open') this.#finished.set(entry.id, entry.state === 'answered')
        }
        this.#advance(entries)
        this.#settleFinished()
        this.#release()
        this.#lastProblem = ''
      }
      if (this.#hasQuestions) await this.#readQuestions()
    } catch (error) {
      if (!isDisconnected(error)) this.#report(error)
    }
  }

  /** Entries before the first open message no longer change. */
  #advance(entries: HistoryEntry[]): void {
    const open = entries.find((entry) => entry.kind === 'message' && entry.state === 'open')
    this.#afterSeq = open ? open.seq - 1 : (entries.at(-1)?.seq ?? this.#afterSeq)
  }

  #settleFinished(): void {
    for (const message of this.#unanswered) {
      const isAnswered = this.#finished.get(message.messageId ?? '')
      if (isAnswered !== undefined) this.#settle(message, isAnswered)
    }
  }

  #settle(message: SentMessage, isAnswered: boolean): void {
    if (!isAnswered) this.hasFailed = true
    this.#unanswered = this.#unanswered.filter((other) => other !== message)
    if (this.isBusy) return
    for (const resolve of this.#onSettled.splice(0)) resolve()
    this.options.view.idle()
  }

  #take(push: EventPush): void {
    // For the same message, the earlier turn failed and has no reply: do not hold.
    const isNext = this.#run !== undefined && this.#run.isOver && this.#run.messageId !== push.messageId
    if (isNext || this.#held.length > 0) this.#held.push(push)
    else this.#showEvent(push)
  }

  /** Shows held events: the last turn has its reply, or gets none. */
  #release(): void {
    for (const push of this.#held.splice(0)) this.#showEvent(push)
  }

  #showEvent({ runId, messageId, seq, event }: EventPush): void {
    if (this.#run?.id !== runId) {
      this.#run?.printer.break()
      this.#run = { id: runId, messageId, seq: 0, isWhole: true, isOver: false, printer: this.#newPrinter() }
    }
    const run = this.#run
    if (seq !== run.seq + 1) run.isWhole = false
    run.seq = seq
    const isKnown = event.type === 'notice' && this.#refusals.has(event.content)
    if (run.isWhole && !isKnown) run.printer.show(event)
    if (this.#hasQuestions && event.type === 'notice') void this.#catchUp()
    if (event.type !== 'complete') return
    run.isOver = true
  }

  #showReply(reply: ShownReply): void {
    if (this.#shownReplies.has(reply.id)) return
    this.#shownReplies.add(reply.id)
    if (reply.question) void this.#showQuestion(reply, reply.question.id)
    else this.#printReply(reply)
  }

  #printReply({ messageId, text, notes, isError, waitsUntil, shownFiles = [] }: ShownReply): void {
    if (this.#held[0]?.messageId === messageId) this.#release()
    const isOfRun = this.#run !== undefined && this.#run.messageId === messageId
    if (!isOfRun) this.#run?.printer.break()
    const printer = (isOfRun ? this.#run?.printer : undefined) ?? this.#newPrinter()
    // A reply without a message, such as a question, comes in the middle of a run.
    if (messageId !== undefined) this.#run = undefined
    if (isError) printer.note(`Error: ${text}`)
    else if (waitsUntil !== undefined) printer.note(`! ${text}`)
    else printer.answer(text)
    for (const file of shownFiles) {
      if ('place' in file) printer.file(file.place)
      else printer.note(`! ${file.problem}`)
    }
    for (const note of notes) printer.note(`! ${note}`)
    this.#release()
    if (!this.isBusy) this.options.view.idle()
  }

  #noteRetry({ problem, attempt, attempts, startsAt }: NextAttempt): void {
    const why = oneLine(problem, this.options.view.width).replace(/[.:\s]+$/, '')
    const next = `Attempt ${attempt} of ${attempts} starts ${timeAhead(startsAt, Date.now())}.`
    this.#note(`! Failed, retrying: ${why}. ${next}`)
  }

  async #showQuestion(reply: ShownReply, id: string): Promise<void> {
    // Only after sending is it known which messages are ours.
    await this.#sending
    const questions = await this.#readQuestions()
    if (questions && this.options.view.showQuestions) return
    const question = questions?.find((open) => open.id === id)
    const isOurs = this.#unanswered.some(({ messageId }) => messageId === question?.messageId)
    if (question && isOurs && this.options.refusesQuestions) await this.#refuse(question)
    else this.#printReply(reply)
  }

  /** Undefined if the gateway cannot be asked. */
  async #readQuestions(): Promise<OpenQuestion[] | undefined> {
    try {
      const answer = await this.#control?.call('chat.questions', { address: this.options.address })
      if (!answer) return undefined
      this.#hasQuestions = answer.questions.length > 0
      this.options.view.showQuestions?.(answer.questions)
      return answer.questions
    } catch (error) {
      if (!isDisconnected(error)) this.#report(error)
      return undefined
    }
  }

  async #refuse({ id, summary, deadline }: OpenQuestion): Promise<void> {
    const refused = { state: 'denied', answeredBy: 'terminal', askedAt: deadline, deadline, summary } as const
    this.#refusals.add(endedNotice(refused))
    try {
      await this.#control?.call('approvals.answer', { id, decision: 'deny', message: NOBODY })
      this.#note(
        `! Denied, because nobody can answer here: ${oneLine(summary, this.options.view.width)}. ${REFUSED_ADVICE}`,
      )
    } catch (error) {
      // Answered in the meantime, or the gateway is gone: the next run asks again.
      if (!isDisconnected(error)) this.#report(error)
    }
  }

  #newPrinter(): Printer {
    return this.options.view.newPrinter()
  }

  #note(line: string): void {
    if (this.#run) this.#run.printer.note(line)
    else this.options.view.note(line)
  }

  #report(error: unknown): void {
    const problem = messageOf(error)
    if (problem !== this.#lastProblem) this.#note(`! ${problem}`)
    this.#lastProblem = problem
  }
}

function isDisconnected(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'gateway_unavailable'
}
