// A turn on a shared server.
//
// Traps:
// - Events must flow before the prompt is sent: the outcome is reported nowhere else.
// - `idle` is sent twice, and the second one may arrive after the next turn has begun. It ends a turn only if the agent's
//   last message is complete, or the server confirms it when asked. A complete message alone is not the end: a summary and
//   more work may follow.
// - The request with the prompt is answered with the last message some milliseconds before the events have it. In the
//   simplest case that is the end, but the session's next turn still waits for `idle`. In every other case, once the turn
//   has begun, the events decide.
// - A prompt may still begin after an abort, so the abort is repeated until the session is quiet.

import { randomUUID } from 'node:crypto'
import { deferred, wait, within } from '../../../core/async.js'
import type { OutputLimits } from '../../../processes/output.js'
import { isObject } from '../../engine/jsonl.js'
import { SESSION_TITLE } from '../format.js'
import { lostSession } from '../../engine/starting-over.js'
import { approveInTurn, type Drive, type Printed, type RunControl, type Turn } from '../../engine/turn.js'
import { type Ending, printedTooMuch } from '../../engine/failures.js'
import type { AgentRequest, Steer } from '../../types.js'
import {
  type Model,
  type OpenCodeClient,
  OpenCodeServerError,
  type Prompt,
  PROMPT_MS,
  retryUntilAnswered,
  type SessionMessage,
} from './client.js'
import type { EventLink, EventListener, EventStream, ServerEvent } from './event-stream.js'
import { RequestAnswers } from './request-answers.js'
import { failedCall, isOutOfReach, lostServer, lostTurn, saysBrokenDown } from './server-failures.js'
import { ServerTranslation } from './server-translation.js'
import { endsWithRules, type ToolControl, toolControl } from './tool-rules.js'

export interface ServerDrivePlan {
  turn: Turn
  /** Whether the session is known to have the turn's rules already. */
  hasRules: boolean
  request: Pick<AgentRequest, 'approve' | 'onSteerable'>
  client: OpenCodeClient
  stream: EventStream
  limits: OutputLimits
}

/** How many messages of a session are read after a gap: far more than any reasonable turn has. */
const MESSAGES_READ = 200
/** A busy server confirms that events flow some time before they do. */
const REREAD_AFTER_MS = [2_000, 10_000]
const DOUBT_MS = 500
const SETTLE_MS = 250
/** How long the end of the answer may lag behind `idle`, or `idle` behind the answer. */
const ANSWER_LAG_MS = 3_000
const BEGINNING_LAG_MS = 60_000
/** An abort takes a moment, and longer with a stubborn tool. */
const ABORT_MS = 10_000
const ABORT_AGAIN_MS = 2_000
const OWN_SUMMARY = 'OpenCode cannot be told what to keep when it compacts a session.'
/** After this time, a prompt that was aborted before it began will no longer begin. */
const LATE_BEGINNING_MS = 1_000

export class ServerDrive implements Drive, EventListener {
  readonly ended: Promise<Ending>
  readonly translation: ServerTranslation
  readonly #promptId = newPartId()
  readonly #control: ToolControl
  readonly #answers: RequestAnswers
  readonly #preparing = new AbortController()
  /** Aborted when approvals are no longer needed. */
  readonly #asking = new AbortController()
  #end = (_ending?: Ending) => {}
  #isOver = false
  /** The server stopped answering. */
  hasLostServer = false
  /** After `ended`: settles when late events can no longer mix with the next turn. Absent if there can be none; set for a
   *  prompt that was still being sent, or an answer that came before `idle`. Contract: never rejects. */
  late: Promise<void> | undefined
  #link: EventLink | undefined
  #sessionId: string | undefined
  #directory: string
  /** Set when the prompt is sent; settles when the server has begun with it. */
  #prompting: Promise<void> | undefined
  /** Aborts the request with the prompt. */
  readonly #requesting = new AbortController()
  readonly #begun = deferred()
  /** `idle` arrived after the end. */
  readonly #lateIdle = deferred()
  #receivedCharacters = 0
  /** How often events may have been missed. */
  #gaps = 0
  /** Events that arrive while the session is being reread; they are processed after it. */
  #held: ServerEvent[] | undefined
  #reading: Promise<void> | undefined
  #isSettling = false
  #isSteered = false
  /** Whether `onSteerable` was called. */
  #isSteerable = false
  #onChange = () => {}

  constructor(
    private readonly plan: ServerDrivePlan,
    private readonly run: RunControl,
  ) {
    const { turn, client, request } = plan
    this.#directory = turn.workingDir
    this.#control = toolControl(turn)
    this.translation = new ServerTranslation(run.emit, turn, this.#promptId)
    const report = (content: string): void => {
      this.translation.lastProblem = content
      run.emit({ type: 'notice', content })
    }
    this.#answers = new RequestAnswers(client, this.#control.rules, report, () => this.#isOver, {
      toolOf: (callId) => this.translation.toolOf(callId),
      signal: this.#asking.signal,
      approve: request.approve && approveInTurn(request.approve, run.watch, this.#asking.signal),
    })
    this.ended = new Promise((resolve) => {
      this.#end = (ending = { type: 'done' }) => {
        this.#isOver = true
        resolve(ending)
      }
    })
    void this.#start()
  }

  stop(): boolean {
    if (this.#isOver) return false
    this.#preparing.abort()
    this.#asking.abort()
    void within(ABORT_MS, this.#halt()).then(() => this.#end())
    return true
  }

  async settle(): Promise<Printed> {
    this.#asking.abort()
    void this.#close()
    return { stderr: '', plainStdout: '' }
  }

  /** Contract: never rejects. */
  async #start(): Promise<void> {
    try {
      await this.#begin()
    } catch (error) {
      // The prompt was rejected, so it will never begin.
      const isRefused = error instanceof OpenCodeServerError && error.kind === 'status'
      if (isRefused) this.#prompting = undefined
      this.hasLostServer ||= isOutOfReach(error)
      this.run.stop(failedCall(error, this.#prompting !== undefined))
    }
  }

  async #close(): Promise<void> {
    await this.late
    this.#link?.close()
    this.#requesting.abort()
  }

  /** Contract: rejects with why the turn cannot begin. */
  async #begin(): Promise<void> {
    const { turn, stream } = this.plan
    const link = await stream.open(this)
    if (this.#isOver) return link.close()
    this.#link = link
    const sessionId = turn.sessionId ?? (await this.#newSession())
    this.#sessionId = sessionId
    this.translation.enter(sessionId)
    link.follow(sessionId)
    if (turn.compaction) {
      this.#prompting = this.#compact(sessionId)
      return this.#prompting
    }
    if (this.#needsRules && !this.#control.tools) await this.#addRules(sessionId)
    if (this.run.stopped) return
    this.#prompting = this.#send(sessionId, this.#promptOf(this.#promptId, turn.prompt))
    await this.#prompting
  }

  get #needsRules(): boolean {
    const { turn, hasRules } = this.plan
    return turn.sessionId !== undefined && !hasRules
  }

  #promptOf(id: string, text: string): Prompt {
    const { turn } = this.plan
    const { tools } = this.#needsRules ? this.#control : {}
    return {
      parts: [{ type: 'text', id, text }],
      ...(turn.model !== undefined && { model: modelOf(turn.model) }),
      ...(turn.systemPrompt !== '' && { system: turn.systemPrompt }),
      ...(tools && { tools }),
    }
  }

  /** A prompt sent to a busy session becomes part of its turn. */
  #steer: Steer = async (text) => {
    const sessionId = this.#sessionId
    if (this.run.stopped || this.#isOver || sessionId === undefined) return false
    const id = newPartId()
    const dismiss = this.translation.expect(id)
    this.#isSteered = true
    try {
      await this.plan.client.sendPromptAsync(sessionId, this.#promptOf(id, text))
      return !this.run.stopped
    } catch {
      dismiss()
      this.#update()
      return false
    }
  }

  /** Settles when the server has begun with the prompt. Contract: rejects with why it will not. */
  async #send(sessionId: string, prompt: Prompt): Promise<void> {
    const { client } = this.plan
    const answered = client.sendMessage(sessionId, prompt, this.#requesting.signal).then(
      (message) => this.#answered(message),
      (error: unknown) => this.#unanswered(error),
    )
    const taken = Promise.race([this.#begun.promise, answered]).then(() => true)
    if (!(await within(PROMPT_MS, taken))) {
      throw client.fault('silent', 'accepts connections but does not answer (POST /session/:id/message)')
    }
  }

  /** Contract: rejects with why it failed, unless the summary itself says so. */
  async #compact(sessionId: string): Promise<void> {
    const { turn, client } = this.plan
    const { translation } = this
    if (turn.compaction?.focus) this.run.emit({ type: 'notice', content: OWN_SUMMARY })
    const known = await client.messages(sessionId, MESSAGES_READ)
    const model = turn.model === undefined ? known.findLast(({ info }) => info.model)?.info.model : modelOf(turn.model)
    if (model) await client.summarize(sessionId, model, this.#requesting.signal)
    const messages = model ? await client.messages(sessionId, MESSAGES_READ) : []
    if (this.run.stopped || this.#isOver) return
    const ids = new Set(known.map(({ info }) => info.id))
    translation.takeSummary(messages.filter(({ info }) => !ids.has(info.id)))
    if (!translation.isIdle) this.late = this.#untilLateIdle()
    this.#end()
  }

  /** Must not delay stopping the backend. */
  #untilLateIdle(): Promise<void> {
    return Promise.race([this.#lateIdle.promise, wait(ANSWER_LAG_MS, { ref: false })])
  }

  #answered(message: SessionMessage): void {
    // A steering message may be answered after it.
    if (this.run.stopped || this.#isOver || this.#held || this.#gaps > 0 || this.#isSteered) return
    if (!this.translation.takeAnswer(message)) return
    this.late = this.#untilLateIdle()
    this.#end()
  }

  /** Contract: rejects if this is why the turn will not begin. */
  async #unanswered(error: unknown): Promise<void> {
    if (this.#isOver) return
    const translation = this.translation
    const isBreakdown = saysBrokenDown(error)
    if (isBreakdown && (await this.#isSessionDamaged())) {
      const message = `OpenCode can no longer read the session ${this.#sessionId}. ${error.message}`
      return this.#end({ type: 'lost', failed: lostSession(message) })
    }
    if (isBreakdown && !translation.hasBegun) await wait(DOUBT_MS)
    // The events describe the error better.
    if (!translation.hasBegun && !translation.isDoubtful) throw error
    if (!isBreakdown) return
    translation.lastProblem ??= error.message
    void this.#clarify(DOUBT_MS)
  }

  /** Only for a continued session. A server that failed for another reason can still read it. */
  async #isSessionDamaged(): Promise<boolean> {
    const { turn, client } = this.plan
    if (turn.sessionId === undefined) return false
    return client.messages(turn.sessionId, MESSAGES_READ).then(() => false, saysBrokenDown)
  }

  async #newSession(): Promise<string> {
    const { turn, client } = this.plan
    const options = { directory: turn.workingDir, title: SESSION_TITLE, permission: this.#control.rules }
    return (await client.createSession(options, this.#preparing.signal)).id
  }

  async #addRules(sessionId: string): Promise<void> {
    const { client } = this.plan
    const { rules } = this.#control
    const { permission = [] } = await client.getSession(sessionId, this.#preparing.signal)
    if (!endsWithRules(permission, rules)) await client.addRules(sessionId, rules, this.#preparing.signal)
  }

  onEvent(event: ServerEvent): void {
    if (this.#isOver) return this.#lateEvent(event)
    this.run.watch.alive()
    const { limits } = this.plan
    this.#receivedCharacters += event.size
    if (this.#receivedCharacters > limits.totalBytes) this.#tooMuch('in total', limits.totalBytes)
    const directory = event.directory ?? this.#directory
    this.#answers.event(event, directory)
    const { sessionID = this.#sessionId } = event.properties
    // Only the requests of subagents matter.
    if (sessionID !== this.#sessionId) return
    this.#directory = directory
    if (this.#held) this.#held.push(event)
    else this.translation.event(event)
    this.#update()
  }

  #lateEvent({ type, properties: { sessionID, part } }: ServerEvent): void {
    if (type === 'session.idle' && sessionID === this.#sessionId) this.#lateIdle.resolve()
    if (isObject(part) && part['id'] === this.#promptId) this.#begun.resolve()
  }

  onTooLong(): void {
    this.#tooMuch('on one line', this.plan.limits.lineBytes)
  }

  onReconnected(): void {
    if (this.#isOver) return
    this.#gaps += 1
    this.translation.interrupt()
    void this.#catchUp()
  }

  onLost(error: OpenCodeServerError): void {
    this.hasLostServer = true
    const failed = this.#prompting ? lostServer(this.plan.client, error) : failedCall(error, false)
    this.#end({ type: 'lost', failed })
  }

  #update(): void {
    this.#onChange()
    const { isIdle, isDoubtful, hasBegun, verdict, mustStop } = this.translation
    if (hasBegun) this.#begun.resolve()
    // The end of a compaction is the answer to its request.
    if (this.run.stopped || this.plan.turn.compaction) return
    if (this.translation.takesPrompts && !this.#isSteerable) {
      this.#isSteerable = true
      this.plan.request.onSteerable?.(this.#steer)
    }
    if (mustStop) this.run.stop(mustStop)
    else if (isIdle && hasBegun && verdict && !this.translation.owesAnswer) this.#end()
    else if (isIdle) void this.#clarify(0)
    else if (isDoubtful) void this.#clarify(DOUBT_MS)
  }

  /** The session seems to be idle without an answer: polls until that is settled. */
  async #clarify(delayMs: number): Promise<void> {
    if (this.#isSettling) return
    this.#isSettling = true
    await wait(delayMs)
    // A prompt that is still being sent has not begun.
    await this.#prompting?.catch(() => {})
    // Counted in looks, not by the clock: on a busy machine, what it waits for is late too.
    for (let looks = 0; await this.#isMoreExpected(looks * SETTLE_MS); looks += 1) await wait(SETTLE_MS)
    this.#isSettling = false
  }

  /** Whether the session is idle but more is to come. */
  async #isMoreExpected(waitedMs: number): Promise<boolean> {
    await this.#readAgain().catch(() => {})
    const translation = this.translation
    if (this.run.stopped || this.#isOver || !translation.isIdle) return false
    const { hasBegun } = translation
    if (translation.owesAnswer) {
      if (waitedMs < BEGINNING_LAG_MS) return true
      this.run.stop(lostTurn(this.plan.client, hasBegun))
    } else if (translation.verdict || translation.isAnswered) this.#end()
    else if (!hasBegun && translation.isDoubtful) {
      translation.giveUp()
      this.#end()
    } else if (hasBegun ? waitedMs < ANSWER_LAG_MS : waitedMs < BEGINNING_LAG_MS) return true
    else if (hasBegun && this.#gaps === 0) this.#end()
    else this.run.stop(lostTurn(this.plan.client, hasBegun))
    return false
  }

  async #catchUp(): Promise<void> {
    const link = this.#link
    if (this.#sessionId === undefined || !link) return
    const isAbandoned = (): boolean => this.#isOver || this.run.stopped !== undefined
    const answer = (): Promise<void> => this.#answers.catchUp(this.#directory, (id) => link.isFollowed(id))
    const reread = async (): Promise<void> => {
      await Promise.all([
        retryUntilAnswered(() => this.#readAgain(), isAbandoned),
        retryUntilAnswered(answer, isAbandoned),
      ])
      this.#update()
    }
    // At once: the events that follow are processed after the messages read.
    await reread()
    for (const delayMs of REREAD_AFTER_MS) {
      await wait(delayMs, { ref: false })
      if (isAbandoned()) return
      await reread()
    }
  }

  /** Contract: rejects with why it could not be read; events that arrive meanwhile are processed in any case. */
  #readAgain(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    const { client, limits } = this.plan
    const sessionId = this.#sessionId
    if (sessionId === undefined) return
    this.#held = []
    try {
      let gaps: number
      do {
        gaps = this.#gaps
        const reading = [client.messages(sessionId, MESSAGES_READ), client.statuses(this.#directory)] as const
        const [messages, statuses] = await Promise.all(reading)
        // An answer to a request from before a gap may be out of date.
        if (gaps === this.#gaps) this.translation.readAgain(messages, statuses[sessionId])
      } while (gaps !== this.#gaps)
    } catch (error) {
      const isTooLarge = error instanceof OpenCodeServerError && error.kind === 'too_large'
      if (isTooLarge) this.#tooMuch('on one line', limits.lineBytes)
      throw error
    } finally {
      const held = this.#held
      this.#held = undefined
      for (const event of held) this.translation.event(event)
    }
  }

  #tooMuch(where: string, bytes: number): void {
    this.run.stop(printedTooMuch(`more than ${bytes / 1024 / 1024} MiB ${where}`))
  }

  /** Stops all work on the turn, as far as the server reports it. */
  async #halt(): Promise<void> {
    const sessionId = this.#sessionId
    if (!this.#prompting || sessionId === undefined) return
    const settled = this.#prompting.then(
      () => true,
      () => true,
    )
    // A compaction is answered only at its end.
    const taken = this.plan.turn.compaction ? Promise.resolve(true) : settled
    if (!(await within(ABORT_MS / 2, taken))) this.late = this.#abortLate(sessionId, taken)
    const startedAt = Date.now()
    const translation = this.translation
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
        await this.plan.client.abortSession(sessionId)
      } catch {
        return // Unreachable: the server's owner ends what is left.
      }
      await within(translation.hasBegun ? ABORT_AGAIN_MS : LATE_BEGINNING_MS, quiet)
    } while (!isQuiet() && !this.#isOver)
  }

  async #abortLate(sessionId: string, taken: Promise<unknown>): Promise<void> {
    await taken
    for (const delayMs of [0, LATE_BEGINNING_MS]) {
      await wait(delayMs)
      await this.plan.client.abortSession(sessionId).catch(() => {})
    }
  }
}

function newPartId(): string {
  return `prt_${randomUUID().replaceAll('-', '')}`
}

/** The provider is the part before the first slash. */
function modelOf(model: string): Model {
  const [providerID = '', ...rest] = model.split('/')
  return { providerID, modelID: rest.join('/') }
}
