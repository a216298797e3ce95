// One turn on a server, from its prompt to its `complete`.
//
// Traps that a careless edit would fall into:
// - Events must flow before the prompt is sent: what comes of it is told nowhere else.
// - `idle` is said twice, and the second time may come when the next turn has begun: it ends a turn only when the agent's
//   last message is whole, or when the server says so again on being asked. That message alone is no end: a summary and
//   more work may follow.
// - The request that brings the prompt is answered with the last message some milliseconds before the events have it. In
//   the simplest case that is the end; the next turn of the session still waits for `idle`. Whatever else becomes of the
//   request after the turn has begun, the events decide.
// - A prompt that was sent may begin after an abort: it is aborted again until it is quiet.
// - What we did ourselves (time-out, cancel) decides over anything the agent still says.

import { randomUUID } from 'node:crypto'
import { wait, within } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import type { OutputLimits } from '../../../processes/line-splitter.js'
import type { Run } from '../../engine/cli-run.js'
import { EventQueue } from '../../engine/event-queue.js'
import { findSign } from '../../engine/failures.js'
import { isObject } from '../../engine/jsonl.js'
import { OPENCODE, SESSION_TITLE } from '../format.js'
import type { Failed } from '../../engine/translation.js'
import type { Turn } from '../../engine/turn.js'
import {
  failureOfStop,
  printedTooMuch,
  reportedFailure,
  resultOf,
  unansweredFailure,
} from '../../engine/turn-result.js'
import { approveInTurn } from '../../engine/turn-approvals.js'
import { type TimeLimits, type TurnWatch, watchTurn } from '../../engine/turn-watch.js'
import type { AgentEventBody, AgentFailure, Approve, Steer } from '../../types.js'
import { type OpenCodeClient, OpenCodeServerError, type Prompt, PROMPT_MS, type SessionMessage } from './client.js'
import type { EventLink, EventListener, EventStream, ServerEvent } from './event-stream.js'
import { retryUntilAnswered } from './retry-until-answered.js'
import { RequestAnswers } from './request-answers.js'
import { ServerTranslation } from './server-translation.js'
import { endsWithRules, type ToolControl, toolControl } from './tool-rules.js'

export interface ServerRunPlan extends TimeLimits {
  turn: Turn
  /** Whether the session is known to have the rules that the turn needs. */
  hasItsRules: boolean
  /** As of the request. */
  approve?: Approve
  client: OpenCodeClient
  stream: EventStream
  /** As of the request. */
  onSteerable?(steer: Steer): void
  limits: OutputLimits
  now: () => number
  elapsed: () => number
}

/** How many messages of a session are read after a gap: far more than a turn that anybody waits for. */
const MESSAGES_READ = 200
/** A server with much to do says that events flow some time before they do. */
const LATER_LOOKS_MS = [2_000, 10_000]
const DOUBT_MS = 500
const SETTLE_MS = 250
/** How long a session that is idle may owe us the end of its answer, or one that has answered that it is idle. */
const OWES_ANSWER_MS = 3_000
const OWES_BEGINNING_MS = 60_000
/** An abort takes a moment, and a tool that does not want to end some more. */
const ABORT_MS = 10_000
const ABORT_AGAIN_MS = 2_000
/** After that time nothing will come of a prompt that was aborted before it began. */
const LATE_BEGINNING_MS = 1_000

export class ServerRun implements Run, EventListener {
  readonly events: EventQueue
  readonly ended: Promise<void>
  readonly #plan: ServerRunPlan
  readonly #promptId = newPartId()
  readonly #control: ToolControl
  readonly #translation: ServerTranslation
  readonly #answers: RequestAnswers
  readonly #watch: TurnWatch
  readonly #preparing = new AbortController()
  /** Aborted when no answer to what the agent asks is wanted any more. */
  readonly #asking = new AbortController()
  /** Settles when nothing is waited for any more. */
  readonly #over: Promise<void>
  #end = () => {}
  #isOver = false
  #hasLostServer = false
  #late: Promise<void> | undefined
  #stopped: Failed | undefined
  #link: EventLink | undefined
  #sessionId: string | undefined
  #directory: string
  /** From the moment the prompt is sent, until the server has begun with it. */
  #prompting: Promise<void> | undefined
  /** Of the request that brings the prompt. */
  readonly #requesting = new AbortController()
  #onBegun = () => {}
  /** Told after the end. */
  #onIdle = () => {}
  #receivedCharacters = 0
  /** How often events may have been missed. */
  #gaps = 0
  /** Events that came while the session is read again; they are told after it. */
  #held: ServerEvent[] | undefined
  #reading: Promise<void> | undefined
  #isSettling = false
  #isSteered = false
  /** Whether it was told how the agent can be talked to. */
  #isOffered = false
  #onChange = () => {}

  constructor(plan: ServerRunPlan) {
    const { turn, client, now } = plan
    this.#plan = plan
    this.#directory = turn.workingDir
    this.#control = toolControl(turn)
    this.events = new EventQueue(now)
    const tell = (event: AgentEventBody): void => {
      if (!this.#stopped) this.events.push(event)
    }
    this.#translation = new ServerTranslation(tell, turn, this.#promptId)
    const complain = (content: string): void => {
      this.#translation.complaint = content
      tell({ type: 'notice', content })
    }
    this.#watch = watchTurn({ ...plan, onTimeout: (failed) => this.stop(failed) })
    const { approve } = plan
    this.#answers = new RequestAnswers(client, this.#control.rules, complain, () => this.#isOver, {
      toolOf: (callId) => this.#translation.toolOf(callId),
      signal: this.#asking.signal,
      ...(approve && { approve: approveInTurn(approve, this.#watch, this.#asking.signal) }),
    })
    this.#over = new Promise((resolve) => {
      this.#end = () => {
        this.#isOver = true
        resolve()
      }
    })
    this.ended = this.#play()
  }

  /** Whether the server did not answer. */
  get hasLostServer(): boolean {
    return this.#hasLostServer
  }

  /** After `ended`: settles when nothing of the turn can get among the next one, where that is not certain by then: of a
   *  prompt that was still on its way, or of an answer that came before `idle`. Contract: never rejects. */
  get late(): Promise<void> | undefined {
    return this.#late
  }

  stop(failed: Failed): void {
    if (this.#stopped || this.#isOver) return
    this.#stopped = failed
    this.#preparing.abort()
    this.#asking.abort()
    void within(ABORT_MS, this.#halt()).then(() => this.#end())
  }

  async #play(): Promise<void> {
    const { now, elapsed } = this.#plan
    this.#begin().catch((error: unknown) => {
      // Then nothing can come of it.
      const isRefused = error instanceof OpenCodeServerError && error.kind === 'status'
      if (isRefused) this.#prompting = undefined
      this.#hasLostServer ||= isOutOfReach(error)
      this.stop(failedCall(error, this.#prompting !== undefined))
    })
    await this.#over
    this.#asking.abort()
    this.#watch.end()
    void this.#close()
    const failure = judge(this.#stopped, this.#translation, now())
    this.events.complete(
      resultOf(this.#translation, failure, { durationMs: Math.round(elapsed() - this.#watch.startedAt) }),
    )
  }

  async #close(): Promise<void> {
    await this.#late
    this.#link?.close()
    this.#requesting.abort()
  }

  /** Contract: rejects with why the turn cannot begin. */
  async #begin(): Promise<void> {
    const { turn, stream } = this.#plan
    const link = await stream.open(this)
    if (this.#isOver) return link.close()
    this.#link = link
    const sessionId = turn.sessionId ?? (await this.#newSession())
    this.#sessionId = sessionId
    this.#translation.enter(sessionId)
    link.follow(sessionId)
    if (this.#needsRules && !this.#control.tools) await this.#addRules(sessionId)
    if (this.#stopped) return
    this.#prompting = this.#send(sessionId, this.#promptOf(this.#promptId, turn.prompt))
    await this.#prompting
  }

  get #needsRules(): boolean {
    const { turn, hasItsRules } = this.#plan
    return turn.sessionId !== undefined && !hasItsRules
  }

  #promptOf(id: string, text: string): Prompt {
    const { turn } = this.#plan
    const { tools } = this.#needsRules ? this.#control : {}
    return {
      parts: [{ type: 'text', id, text }],
      ...(turn.model !== undefined && { model: modelOf(turn.model) }),
      ...(turn.systemPrompt !== '' && { system: turn.systemPrompt }),
      ...(tools && { tools }),
    }
  }

  /** A prompt that a session at work is sent becomes part of what it does. */
  #steer: Steer = async (text) => {
    const sessionId = this.#sessionId
    if (this.#stopped || this.#isOver || sessionId === undefined) return false
    const id = newPartId()
    const dismiss = this.#translation.expect(id)
    this.#isSteered = true
    try {
      await this.#plan.client.sendPromptAsync(sessionId, this.#promptOf(id, text))
      return !this.#stopped
    } catch {
      dismiss()
      this.#look()
      return false
    }
  }

  /** Settles when the server has begun with the prompt. Contract: rejects with why it will not. */
  async #send(sessionId: string, prompt: Prompt): Promise<void> {
    const { client } = this.#plan
    const begun = new Promise<void>((resolve) => {
      this.#onBegun = resolve
    })
    const answered = client.sendMessage(sessionId, prompt, this.#requesting.signal).then(
      (message) => this.#answered(message),
      (error: unknown) => this.#unanswered(error),
    )
    const taken = Promise.race([begun, answered]).then(() => true)
    if (!(await within(PROMPT_MS, taken))) {
      throw client.fault('silent', 'accepts connections but does not answer (POST /session/:id/message)')
    }
  }

  #answered(message: SessionMessage): void {
    // What else it was told may be answered after it.
    if (this.#stopped || this.#isOver || this.#held || this.#gaps > 0 || this.#isSteered) return
    if (!this.#translation.takeAnswer(message)) return
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
    // Whoever stops the backend meanwhile is not kept waiting.
    const tooLate = wait(OWES_ANSWER_MS, { ref: false })
    this.#late = Promise.race([idle, tooLate])
    this.#end()
  }

  /** Contract: rejects when that is why the turn will not begin. */
  async #unanswered(error: unknown): Promise<void> {
    if (this.#isOver) return
    const translation = this.#translation
    const isBreakdown = saysBrokenDown(error)
    if (isBreakdown && (await this.#isSessionDamaged())) {
      const message = `OpenCode cannot read the session ${this.#sessionId} any more. ${error.message}`
      this.#stopped ??= { reason: 'session_lost', message }
      return this.#end()
    }
    if (isBreakdown && !translation.hasBegun) await wait(DOUBT_MS)
    // Among the events it is told in better words.
    if (!translation.hasBegun && !translation.isDoubtful) throw error
    if (!isBreakdown) return
    translation.complaint ??= error.message
    void this.#settle(DOUBT_MS)
  }

  /** Of one that is continued. A server that has broken down for another reason can still read it. */
  async #isSessionDamaged(): Promise<boolean> {
    const { turn, client } = this.#plan
    if (turn.sessionId === undefined) return false
    return client.messages(turn.sessionId, MESSAGES_READ).then(() => false, saysBrokenDown)
  }

  async #newSession(): Promise<string> {
    const { turn, client } = this.#plan
    const options = { directory: turn.workingDir, title: SESSION_TITLE, permission: this.#control.rules }
    return (await client.createSession(options, this.#preparing.signal)).id
  }

  async #addRules(sessionId: string): Promise<void> {
    const { client } = this.#plan
    const { rules } = this.#control
    const { permission = [] } = await client.getSession(sessionId, this.#preparing.signal)
    if (!endsWithRules(permission, rules)) await client.addRules(sessionId, rules, this.#preparing.signal)
  }

  onEvent(event: ServerEvent): void {
    if (this.#isOver) return this.#lateEvent(event)
    this.#watch.alive()
    const { limits } = this.#plan
    this.#receivedCharacters += event.size
    if (this.#receivedCharacters > limits.totalBytes) this.#tooMuch('in all', limits.totalBytes)
    const directory = event.directory ?? this.#directory
    this.#answers.event(event, directory)
    const { sessionID = this.#sessionId } = event.properties
    // Of what sub-agents do, only their questions matter.
    if (sessionID !== this.#sessionId) return
    this.#directory = directory
    if (this.#held) this.#held.push(event)
    else this.#translation.event(event)
    this.#look()
  }

  #lateEvent({ type, properties: { sessionID, part } }: ServerEvent): void {
    if (type === 'session.idle' && sessionID === this.#sessionId) this.#onIdle()
    if (isObject(part) && part['id'] === this.#promptId) this.#onBegun()
  }

  onTooLong(): void {
    this.#tooMuch('on one line', this.#plan.limits.lineBytes)
  }

  onReconnected(): void {
    if (this.#isOver) return
    this.#gaps += 1
    this.#translation.interrupt()
    void this.#catchUp()
  }

  onLost(error: OpenCodeServerError): void {
    this.#hasLostServer = true
    this.#stopped ??= this.#prompting ? lostServer(this.#plan.client, error) : failedCall(error, false)
    this.#end()
  }

  #look(): void {
    this.#onChange()
    const { isIdle, isDoubtful, hasBegun, verdict, mustStop } = this.#translation
    if (hasBegun) this.#onBegun()
    if (this.#stopped) return
    if (this.#translation.takesPrompts && !this.#isOffered) {
      this.#isOffered = true
      this.#plan.onSteerable?.(this.#steer)
    }
    if (mustStop) this.stop(mustStop)
    else if (isIdle && hasBegun && verdict && !this.#translation.isOwing) this.#end()
    else if (isIdle) void this.#settle(0)
    else if (isDoubtful) void this.#settle(DOUBT_MS)
  }

  /** The session seems to be idle without an answer: it is asked until one of both is certain. */
  async #settle(delayMs: number): Promise<void> {
    if (this.#isSettling) return
    this.#isSettling = true
    await wait(delayMs)
    // A prompt that is still on its way has not begun.
    await this.#prompting?.catch(() => {})
    const startedAt = Date.now()
    while (await this.#isOwed(startedAt)) await wait(SETTLE_MS)
    this.#isSettling = false
  }

  /** Whether the session is idle, and something is yet to come. */
  async #isOwed(since: number): Promise<boolean> {
    await this.#readAgain().catch(() => {})
    const translation = this.#translation
    if (this.#stopped || this.#isOver || !translation.isIdle) return false
    const { hasBegun } = translation
    const owedMs = Date.now() - since
    if (translation.isOwing) {
      if (owedMs < OWES_BEGINNING_MS) return true
      this.stop(lostTurn(this.#plan.client, hasBegun))
    } else if (translation.verdict || translation.isAnswered) this.#end()
    else if (!hasBegun && translation.isDoubtful) {
      translation.giveUp()
      this.#end()
    } else if (hasBegun ? owedMs < OWES_ANSWER_MS : owedMs < OWES_BEGINNING_MS) return true
    else if (hasBegun && this.#gaps === 0) this.#end()
    else this.stop(lostTurn(this.#plan.client, hasBegun))
    return false
  }

  async #catchUp(): Promise<void> {
    const link = this.#link
    if (this.#sessionId === undefined || !link) return
    const isAbandoned = (): boolean => this.#isOver || this.#stopped !== undefined
    const answer = (): Promise<void> => this.#answers.catchUp(this.#directory, (id) => link.isFollowed(id))
    const lookAgain = async (): Promise<void> => {
      await Promise.all([
        retryUntilAnswered(() => this.#readAgain(), isAbandoned),
        retryUntilAnswered(answer, isAbandoned),
      ])
      this.#look()
    }
    // At once: the events that follow are told after what is read.
    await lookAgain()
    for (const delayMs of LATER_LOOKS_MS) {
      await wait(delayMs, { ref: false })
      if (isAbandoned()) return
      await lookAgain()
    }
  }

  /** Contract: rejects with why it could not be read; what has come meanwhile is told in any case. */
  #readAgain(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    const { client, limits } = this.#plan
    const sessionId = this.#sessionId
    if (sessionId === undefined) return
    this.#held = []
    try {
      let gaps: number
      do {
        gaps = this.#gaps
        const reading = [client.messages(sessionId, MESSAGES_READ), client.statuses(this.#directory)] as const
        const [messages, statuses] = await Promise.all(reading)
        // What was asked for before a gap may have been answered before it.
        if (gaps === this.#gaps) this.#translation.readAgain(messages, statuses[sessionId])
      } while (gaps !== this.#gaps)
    } catch (error) {
      const isTooLarge = error instanceof OpenCodeServerError && error.kind === 'too_large'
      if (isTooLarge) this.#tooMuch('on one line', limits.lineBytes)
      throw error
    } finally {
      const held = this.#held
      this.#held = undefined
      for (const event of held) this.#translation.event(event)
    }
  }

  #tooMuch(where: string, bytes: number): void {
    this.stop(printedTooMuch(`more than ${bytes / 1024 / 1024} MiB ${where}`))
  }

  /** Nothing of the turn is at work afterwards, as far as the server lets us know. */
  async #halt(): Promise<void> {
    const sessionId = this.#sessionId
    if (!this.#prompting || sessionId === undefined) return
    const taken = this.#prompting.then(
      () => true,
      () => true,
    )
    if (!(await within(ABORT_MS / 2, taken))) this.#late = this.#abortLate(sessionId, taken)
    const startedAt = Date.now()
    const translation = this.#translation
    const isQuiet = (): boolean => {
      const canBegin = !translation.hasBegun && Date.now() - startedAt < LATE_BEGINNING_MS
      return translation.isIdle && translation.openTools.size === 0 && !canBegin
    }
    do {
      translation.isIdle = false
      const quiet = new Promise<void>((resolve) => {
        this.#onChange = () => isQuiet() && resolve()
      })
      try {
        await this.#plan.client.abortSession(sessionId)
      } catch {
        return // Out of reach: whoever has the server ends what is left.
      }
      await within(translation.hasBegun ? ABORT_AGAIN_MS : LATE_BEGINNING_MS, quiet)
    } while (!isQuiet() && !this.#isOver)
  }

  async #abortLate(sessionId: string, taken: Promise<unknown>): Promise<void> {
    await taken
    for (const delayMs of [0, LATE_BEGINNING_MS]) {
      await wait(delayMs)
      await this.#plan.client.abortSession(sessionId).catch(() => {})
    }
  }
}

function judge(stopped: Failed | undefined, translation: ServerTranslation, now: number): AgentFailure | undefined {
  if (stopped) return failureOfStop(stopped)
  const { verdict, complaint = '' } = translation
  if (verdict?.isError) return reportedFailure(verdict, OPENCODE.failureSigns, now)
  return verdict ? undefined : unansweredFailure(OPENCODE.label, complaint, OPENCODE.failureSigns)
}

function saysBrokenDown(error: unknown): error is OpenCodeServerError {
  return error instanceof OpenCodeServerError && (error.status ?? 0) >= 500
}

function isOutOfReach(error: unknown): boolean {
  return error instanceof OpenCodeServerError && ['silent', 'refused', 'unreachable'].includes(error.kind)
}

/** Why a turn could not begin. What is wrong with the server is no word of the agent, nor about its own login. */
function failedCall(error: unknown, isSent: boolean): Failed {
  const message = messageOf(error)
  if (!(error instanceof OpenCodeServerError)) return { reason: 'exit', message }
  const { kind, status } = error
  // It may have begun all the same.
  if (kind === 'silent' && isSent) return { reason: 'exit', message }
  if (isOutOfReach(error)) return { reason: 'spawn', message }
  if (status === 401 || status === 403) return { reason: 'spawn', message, isLasting: true }
  return { reason: findSign(message, OPENCODE.failureSigns)?.[1] ?? 'exit', message }
}

function lostTurn(client: OpenCodeClient, hasBegun: boolean): Failed {
  if (!hasBegun) {
    return { reason: 'exit', message: client.fault('silent', 'took the prompt and did not begin with it').message }
  }
  const what = 'lost the turn: it was started again, or the turn was ended there.'
  return { reason: 'exit', message: `The OpenCode server at ${client.url} ${what}` }
}

function lostServer(client: OpenCodeClient, error: OpenCodeServerError): Failed {
  if (!isOutOfReach(error)) return { reason: 'exit', message: error.message }
  const what = error.kind === 'silent' ? 'does not answer any more' : 'went away during the turn'
  return { reason: 'exit', message: client.fault(error.kind, what).message }
}

function newPartId(): string {
  return `prt_${randomUUID().replaceAll('-', '')}`
}

/** The provider stands before the first slash. */
function modelOf(model: string): { providerID: string; modelID: string } {
  const [providerID = '', ...rest] = model.split('/')
  return { providerID, modelID: rest.join('/') }
}
