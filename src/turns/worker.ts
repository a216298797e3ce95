// Takes messages from the queue through their turns, several conversations at once.
//
// What must stay true:
// - A turn whose lease cannot be kept is stopped: by its end somebody else may have begun the same message.
// - A result is written until it is written. The agent has done its work; a full disk must not undo it.
// - What the agent is told while it works is on record as part of its turn before, so that a crash carries it along.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { wait, within } from '../core/async.js'
import type { AgentFailure, AgentResult, Steer } from '../backends/types.js'
import type { Acceptance, Reply } from '../channels/types.js'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { TurnListener, TurnOutcome } from '../runtime/agent-runtime.js'
import { oneLine } from '../core/one-line.js'
import { isWebAddress, readMediaTokens } from '../media/media-tokens.js'
import { readHeartbeatAnswer } from '../prompt/heartbeat.js'
import { explainFailure } from '../runtime/explain-failure.js'
import { planRetry } from '../runtime/retry.js'
import type { Message } from '../store/inbox.js'
import type { RecordedEvent } from '../store/runs.js'
import type { Delivery } from '../store/outbox.js'
import type { Store, Tables } from '../store/store.js'
import { EventRecorder, type WriteEvents } from './event-recorder.js'
import type { AcceptOptions, IncomingMessage, PlannedRun, Queue, RunOf, Settlement, Taken, Work } from './queue.js'

/** The steps of a message's walk, in order. */
export type Step = 'accepted' | 'claimed' | 'streaming' | 'finished' | 'committed' | 'sent'

/** Where and with what a turn runs. */
export interface TurnPlan {
  backend: string
  model?: string
  /** Where the agent works. In a pod it is no path of this machine. */
  directory: string
  /** Whether files of the directory can go with the answer. */
  canSendFiles: boolean
  run(runId: string, signal: AbortSignal, listener: TurnListener): Promise<TurnOutcome>
  /** Whether `run` prepares at once and then waits for `mayBegin` by itself; otherwise it is called after that. */
  awaitsLeave?: boolean
  /** What the channel makes of an answer; undefined when there is nothing to say. */
  finish?(reply: Reply): Reply | undefined
}

export interface WorkerOptions {
  /** Those this gateway serves; others are left to gateways that do. */
  channels: string[]
  /** Serves this conversation alone. */
  address?: string
  maxConcurrentQueries: number
  leaseMs: number
  queue: Queue
  store: Pick<Store, 'inbox' | 'write'>
  /** Takes a reply with the end of the turn, and sends it. */
  replies: {
    claim(tables: Pick<Tables, 'outbox'>): Promise<Delivery | undefined>
    send(delivery: Delivery, answered?: Message): void
    wake(): void
  }
  /** Contract: throws only for what the person or the operator must put right; the message says what. */
  plan(work: Work): TurnPlan
  onSettled(work: Work): void
  /** It was stopped by hand, and gets no answer. */
  onCancelled(work: Work): void
  /** They may be shown, and are not written yet. */
  onEvents(work: Work, runId: string, events: RecordedEvent[]): void
  /** They are written. */
  onRecorded(work: Work, runId: string, events: RecordedEvent[]): void
  onStep(step: Step): void
  /** Hides known secrets: what is thrown may hold some. */
  scrub(text: string): string
  log: Log
  now: () => number
  newId: () => string
  /** How often it looks without being told. */
  pollMs?: number
}

export interface StoppedTurn {
  messageId: string
  backend: string
  durationMs: number
}

/** What a claimed message is to have: a turn, or nothing for a problem. */
type Prepared = { plan: TurnPlan; run: PlannedRun } | { problem: string }

interface Turn {
  work: Work
  prepared: Prepared | undefined
  startedAt: number
  /** Why it ends before its time; `unsure` when we cannot tell whether the claim still is ours. */
  ending?: 'cancelled' | 'lost' | 'unsure' | 'handed-back'
  abort: AbortController
  /** How to talk to the agent, while it can be talked to. */
  steer?: Steer
  /** What waits is being offered to the agent. */
  offering?: Promise<void>
  mayBeMore: boolean
  onJoined(message: Message): void
  /** Settles when whoever brought the message has heard that it is taken. Nothing is begun and told before, nor when it
   *  rejects. */
  mayBegin: Promise<void>
  /** Whether its message is on the disk. */
  isTaken: boolean
  /** It may not begin. */
  isVoid: boolean
  /** It has ended without an answer, as somebody wanted. */
  wasStopped: boolean
  done: Promise<void>
}

const POLL_MS = 1_000
const WRITE_AGAIN_MS = 1_000
const MAX_INTERRUPTIONS = 10
/** Of a message, enough to recognise it. */
const TOLD_CHARACTERS = 100
const INTERRUPTED_NOTE = 'The gateway ended while this was worked on. It is taken up again; what follows is new.'

export class Worker {
  readonly #turns = new Map<string, Turn>()
  readonly #prepared = new WeakMap<Work, Prepared>()
  readonly #poll: NodeJS.Timeout
  #isClaiming = false
  #mayBeMore = false
  /** How many messages are just being accepted, to be begun at once. */
  #beginning = 0
  /** Settles when those that were accepted so far have begun. */
  #begun: Promise<unknown> = Promise.resolve()
  #isStopped = false
  /** The deadline of the stop is past, also for what was just being claimed. */
  #isOver = false
  #hasFailed = false

  constructor(private readonly options: WorkerOptions) {
    this.#poll = setInterval(() => this.wake(), options.pollMs ?? POLL_MS)
  }

  /** Looks for work now. */
  wake(): void {
    this.#look()
    for (const turn of this.#turns.values()) this.#offer(turn)
  }

  #look(): void {
    this.#mayBeMore = true
    if (!this.#isClaiming) void this.#claimAll()
  }

  /** Takes a message in, and begins with it at once where nothing comes before it. Contract: that of `Queue.accept`. */
  async accept(incoming: IncomingMessage, options: AcceptOptions = {}): Promise<Acceptance> {
    const { queue } = this.options
    if (!this.#mayBegin(incoming)) {
      const acceptance = await queue.accept(incoming, options)
      this.#lookIn(acceptance.conversationId)
      return acceptance
    }
    this.#beginning += 1
    let tell = (_taken: Taken): void => {}
    const committed = new Promise<Taken>((resolve) => {
      tell = resolve
    })
    const taking = queue.take(incoming, options, this.#planRun, tell)
    this.#begun = Promise.all([this.#begun, this.#goOn(committed, taking)])
    return (await taking).acceptance
  }

  #mayBegin({ channel, address }: IncomingMessage): boolean {
    const { channels, address: only = address } = this.options
    // What is looked for has waited longer.
    const isBusy = this.#isStopped || this.#isClaiming || this.#mayBeMore || !this.#hasRoom()
    return !isBusy && channels.includes(channel) && address === only
  }

  #hasRoom(): boolean {
    return this.#turns.size + this.#beginning < this.options.maxConcurrentQueries
  }

  /** What the turn needs is looked for while the message gets to the disk. Contract: never rejects. */
  async #goOn(committed: Promise<Taken>, taking: Promise<Taken>): Promise<void> {
    // Of a failure hears whoever brought it.
    const { acceptance, work } = await Promise.race([committed, taking]).catch((): Partial<Taken> => ({}))
    // The turn before it has ended, and may be just being put away.
    if (work) await this.#turns.get(work.claim.conversationId)?.done
    this.#beginning -= 1
    if (work) this.#begin(work, taking)
    else this.#lookIn(acceptance?.conversationId)
  }

  /** Looks for work, and whether the turn of this conversation can take something in. */
  #lookIn(conversationId: string | undefined): void {
    this.#look()
    const turn = conversationId === undefined ? undefined : this.#turns.get(conversationId)
    if (turn) this.#offer(turn)
  }

  /** Ends the turn of a conversation, or only that of the one message; settles when nothing of it is alive. Nothing where its
   *  answer came first, or somebody else has it now. */
  async cancel(conversationId: string, messageId?: string): Promise<StoppedTurn | undefined> {
    if (!this.#turns.has(conversationId)) await this.#begun
    const turn = this.#turns.get(conversationId)
    if (!turn || (messageId !== undefined && turn.work.message.id !== messageId)) return undefined
    this.#end(turn, 'cancelled')
    await turn.done
    const { work, startedAt, wasStopped } = turn
    if (!wasStopped) return undefined
    return { messageId: work.message.id, backend: backendOf(turn), durationMs: this.options.now() - startedAt }
  }

  /** Ends the turn of a message, if it is ours. Somebody else has put on record that it shall end. */
  endMessage(messageId: string): void {
    if (!this.#endTurnOf(messageId)) void this.#begun.then(() => this.#endTurnOf(messageId))
  }

  #endTurnOf(messageId: string): boolean {
    const turn = [...this.#turns.values()].find(({ work }) => work.message.id === messageId)
    if (turn) this.#end(turn, 'cancelled')
    return turn !== undefined
  }

  /** What is worked on, by conversation. */
  active(): string[] {
    return [...this.#turns.keys()]
  }

  /** Takes nothing more, waits for the turns, and at the deadline stops them and gives their messages back. */
  async stop(deadlineMs: number): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#poll)
    await within(deadlineMs, this.#allDone())
    this.#isOver = true
    for (const turn of this.#turns.values()) this.#end(turn, 'handed-back')
    await this.#allDone()
  }

  async #allDone(): Promise<void> {
    while (this.#isClaiming || this.#beginning > 0 || this.#turns.size > 0) {
      await Promise.all([...this.#turns.values()].map(({ done }) => done))
      if (this.#isClaiming || this.#beginning > 0) await wait(1)
    }
  }

  async #claimAll(): Promise<void> {
    const { queue, channels, address, log } = this.options
    const only = address === undefined ? {} : { address }
    this.#isClaiming = true
    try {
      while (this.#mayBeMore && !this.#isStopped && this.#hasRoom()) {
        this.#mayBeMore = false
        const work = await queue.claim(channels, { ...only, except: [...this.#turns.keys()] }, this.#planRun)
        this.#hasFailed = false
        if (!work) continue
        this.#mayBeMore = true
        this.#begin(work)
        // What has just begun goes on first: it need not wait until the next is looked for.
        await nextTurn()
      }
    } catch (error) {
      if (!this.#hasFailed) log.error('queue.claim-failed', { error: messageOf(error) })
      this.#hasFailed = true
    } finally {
      this.#isClaiming = false
    }
  }

  readonly #planRun: RunOf = (work) => {
    const prepared = this.#prepare(work)
    this.#prepared.set(work, prepared)
    return 'run' in prepared ? prepared.run : undefined
  }

  #prepare(work: Work): Prepared {
    const { plan: planOf, newId, scrub } = this.options
    const { interruptions } = work.claim
    if (interruptions > MAX_INTERRUPTIONS) {
      return { problem: `The gateway ended ${interruptions} times while this was worked on.` }
    }
    try {
      const plan = planOf(work)
      const { backend, model, directory } = plan
      return { plan, run: { id: newId(), backend, directory, ...(model !== undefined && { model }) } }
    } catch (error) {
      return { problem: scrub(messageOf(error)) }
    }
  }

  #begin(work: Work, taking: Promise<unknown> = Promise.resolve()): void {
    const { conversationId } = work.claim
    const turn: Turn = {
      work,
      prepared: this.#prepared.get(work),
      startedAt: this.options.now(),
      abort: new AbortController(),
      mayBeMore: false,
      onJoined: () => {},
      mayBegin: Promise.resolve(),
      isTaken: false,
      isVoid: false,
      wasStopped: false,
      done: Promise.resolve(),
    }
    this.#turns.set(conversationId, turn)
    turn.mayBegin = this.#admit(turn, taking).catch((error: unknown) => {
      turn.isVoid = true
      this.#end(turn, 'unsure')
      throw error
    })
    if (this.#isOver) this.#end(turn, 'handed-back')
    turn.done = this.#work(turn)
      .catch((error: unknown) => {
        this.options.log.error('turn.broken', { messageId: work.message.id, error: messageOf(error) })
      })
      .finally(() => {
        this.#turns.delete(conversationId)
        this.options.onSettled(work)
        this.#look()
      })
  }

  /** Contract: rejects where the turn must not begin. */
  async #admit(turn: Turn, taking: Promise<unknown>): Promise<void> {
    await taking
    turn.isTaken = true
    await new Promise<void>((resolve) => process.nextTick(resolve))
    this.options.onStep('claimed')
    if (this.#isLate(turn.work)) throw new Error('The gateway was frozen, and somebody else may have begun.')
  }

  #isLate({ claimedAt }: Work): boolean {
    const { leaseMs, now } = this.options
    return now() - claimedAt >= leaseMs
  }

  #end(turn: Turn, why: NonNullable<Turn['ending']>): void {
    turn.ending ??= why
    turn.abort.abort()
  }

  async #work(turn: Turn): Promise<void> {
    const stopRenewing = this.#keepLease(turn)
    try {
      const outcome = await this.#run(turn)
      await turn.mayBegin.catch(() => {})
      if (!turn.isVoid) await this.#settle(turn, ...outcome)
      // Otherwise it is taken up when its lease ends.
      else if (turn.isTaken) await this.#settle(turn, handedBack(turn))
    } finally {
      stopRenewing()
    }
  }

  /** One attempt. Returns what it came to, and by whom its last events are written with that. */
  async #run(turn: Turn): Promise<[Settlement, EventRecorder?]> {
    const { queue, onStep, scrub, log, now } = this.options
    const { work, prepared } = turn
    if (!prepared) return [{ kind: 'cancelled' }]
    if ('problem' in prepared) return [failed(work, prepared.problem)]
    // Not even what a turn needs is looked for: some of that is tidied up on the way.
    if (this.#isLate(work)) return [handedBack(turn)]
    const { plan, run } = prepared
    const runId = run.id
    let isStreaming = false
    const recorder = this.#recorder(turn, runId)
    const note = (content: string): void => recorder.push({ type: 'notice', content, timestamp: now() })
    if (work.wasInterrupted) note(INTERRUPTED_NOTE)
    turn.onJoined = ({ text }) => note(`The agent was told meanwhile: ${oneLine(scrub(text), TOLD_CHARACTERS)}`)
    try {
      const outcome = await this.#runPlan(plan, runId, turn.abort.signal, {
        onEvent: (event) => {
          recorder.push(event)
          // Nothing comes after the end.
          if (event.type === 'complete') turn.onJoined = () => {}
          if (isStreaming || event.type !== 'output') return
          isStreaming = true
          onStep('streaming')
        },
        keepSession: (session) =>
          queue.keepSession(work, session).catch((error: unknown) => {
            log.warn('session.not-kept', { runId, error: messageOf(error) })
          }),
        mayBegin: turn.mayBegin,
        onSteerable: (steer) => {
          turn.steer = steer
          this.#offer(turn)
        },
      })
      delete turn.steer
      await turn.offering
      onStep('finished')
      return [this.#judge(turn, runId, outcome, plan), recorder]
    } finally {
      recorder.close()
    }
  }

  #recorder(turn: Turn, runId: string): EventRecorder {
    const { store, onEvents, onRecorded, log } = this.options
    const { work } = turn
    const write: WriteEvents = async (events, onCommitted) => {
      const heard = (isOurs: boolean): void => {
        if (!isOurs) this.#end(turn, 'lost')
        onCommitted()
      }
      if (!turn.isVoid) return store.write(({ runs }) => runs.record(runId, events), heard)
      heard(false)
      return false
    }
    const listener = {
      // What is shown of a turn that is somebody else's now comes to an end, and goes on there.
      onShown: (events: RecordedEvent[]) => {
        if (!turn.isVoid) onEvents(work, runId, turn.ending === 'lost' ? events.filter(isEnd) : events)
      },
      onRecorded: (events: RecordedEvent[]) => {
        if (!turn.isVoid) onRecorded(work, runId, events)
      },
    }
    const mayShow = turn.mayBegin.catch(() => {})
    return new EventRecorder(runId, write, listener, log, mayShow)
  }

  /** Tells the agent what waits behind the message it works on, where the conversation wants that. */
  #offer(turn: Turn): void {
    if (!turn.steer) return
    turn.mayBeMore = true
    turn.offering ??= this.#offerAll(turn)
      .catch((error: unknown) => {
        // What waits comes after this turn then, whatever is on record.
        delete turn.steer
        this.options.log.warn('turn.not-steered', { messageId: turn.work.message.id, error: messageOf(error) })
      })
      .finally(() => delete turn.offering)
  }

  async #offerAll(turn: Turn): Promise<void> {
    const { queue, store } = this.options
    const { work } = turn
    while (turn.mayBeMore && turn.steer && !turn.ending) {
      turn.mayBeMore = false
      if ((await store.inbox.countOpen(work.claim.conversationId)) < 2) continue
      const message = await queue.join(work)
      if (!message) continue
      turn.mayBeMore = true
      if (await turn.steer?.(message.text)) {
        work.merged.push(message)
        turn.onJoined(message)
      } else {
        delete turn.steer
        await queue.part(work, message)
      }
    }
  }

  /** Contract: never rejects. What should not happen counts as a failed attempt, so that it does not happen for ever. */
  async #runPlan(plan: TurnPlan, runId: string, signal: AbortSignal, listener: TurnListener): Promise<TurnOutcome> {
    const { now, scrub } = this.options
    const startedAt = now()
    let hasEnded = false
    const onEvent: TurnListener['onEvent'] = (event) => {
      hasEnded ||= event.type === 'complete'
      listener.onEvent(event)
    }
    try {
      if (!plan.awaitsLeave) await listener.mayBegin
      if (signal.aborted) throw new Error('It was stopped before it began.')
      return await plan.run(runId, signal, { ...listener, onEvent })
    } catch (error) {
      const message = scrub(messageOf(error))
      const reason = signal.aborted ? ('cancelled' as const) : ('spawn' as const)
      const failure = { reason, message, report: message }
      const result = { isError: true, durationMs: now() - startedAt, failure }
      if (!hasEnded) {
        onEvent({ type: 'error', content: message, reason: failure.reason, timestamp: now() })
        onEvent({ type: 'complete', result, timestamp: now() })
      }
      return { result, notes: [] }
    }
  }

  #judge({ work, ending }: Turn, runId: string, outcome: TurnOutcome, plan: TurnPlan): Settlement {
    const { backend } = plan
    const { result, notes, session, isFinal = false } = outcome
    const run = { id: runId, result }
    const keep = session && { session }
    const { failure } = result
    if (!failure) {
      const reply = replyTo(work, result, [...notes, ...mergedNotes(work)], plan)
      return { kind: 'answered', run, ...(reply && { reply }), ...keep }
    }
    if (ending !== undefined && ending !== 'cancelled') return { kind: 'handed-back', runId }
    if (ending === 'cancelled') return { kind: 'cancelled', run, ...keep }
    const { now } = this.options
    const { kind, options } = work.message
    // The next heartbeat is the second attempt; meanwhile nobody's messages wait behind this one.
    const retry = isFinal || kind === 'heartbeat' ? undefined : planRetry(failure, work.claim.failures, now())
    if (!retry) {
      const problem = `${failure.reason}: ${failure.message}`
      const text = ofJob(work, explained(work, failure, backend, now(), result.exitCode !== undefined))
      const reply: Reply = { text, notes, isError: true, canRetry: true }
      return { kind: 'failed', problem, ...(!options?.isKnownToFail && { reply }), run, ...keep }
    }
    const note = retry.isAttempt ? undefined : waitingReply(backend, retry.at)
    return { kind: 'retry', ...retry, run, ...(note && { note }), ...keep }
  }

  async #settle(turn: Turn, settlement: Settlement, recorder?: EventRecorder): Promise<void> {
    const { queue, replies, log, onStep } = this.options
    let isSettled = false
    let delivery: Delivery | undefined
    let isAnswer = false
    const claimReply = async (tables: Tables, replyId: string): Promise<void> => {
      delivery = await replies.claim(tables)
      isAnswer = delivery?.id === replyId
    }
    const settle = async (events: RecordedEvent[]): Promise<boolean> =>
      (isSettled = (await queue.settle(turn.work, settlement, events, claimReply)) === 'settled')
    await this.#untilWritten(turn, async () => {
      if (recorder) await recorder.flush(settle)
      else await settle([])
    })
    if (!isSettled) {
      const { id: messageId } = turn.work.message
      log.warn('turn.lost', { messageId })
      // Else the channel shows for ever that it is worked on here.
      await recorder
        ?.flush()
        .catch((error: unknown) => log.warn('events.not-written', { messageId, error: messageOf(error) }))
      return
    }
    turn.wasStopped = settlement.kind === 'cancelled'
    onStep('committed')
    const { message } = turn.work
    if (delivery) replies.send(delivery, delivery.messageId === message.id ? message : undefined)
    // If there is an answer, it waits behind others.
    if (!isAnswer) replies.wake()
    this.#tell(turn, settlement)
    if (settlement.kind === 'cancelled') this.options.onCancelled(turn.work)
  }

  #tell(turn: Turn, settlement: Settlement): void {
    const { log } = this.options
    const { work } = turn
    const run = 'run' in settlement ? settlement.run : undefined
    const about = {
      messageId: work.message.id,
      runId: run?.id,
      backend: backendOf(turn),
      durationMs: run?.result.durationMs,
    }
    const reason = run?.result.failure?.reason
    if (settlement.kind === 'failed') log.error('message.failed', { ...about, reason })
    else if (settlement.kind === 'retry') log.warn('turn.failed', { ...about, reason, triedAgainAt: settlement.at })
    else log.info(`turn.${settlement.kind}`, about)
  }

  /** Tries until it is written, or known to be somebody else's. At a stop the message is left to its lease. */
  async #untilWritten(turn: Turn, write: () => Promise<void>): Promise<void> {
    for (let hasFailed = false; turn.ending !== 'lost';) {
      try {
        return await write()
      } catch (error) {
        const messageId = turn.work.message.id
        if (!hasFailed) this.options.log.error('turn.not-written', { messageId, error: messageOf(error) })
        hasFailed = true
        if (this.#isStopped) break
        await wait(WRITE_AGAIN_MS)
      }
    }
  }

  #keepLease(turn: Turn): () => void {
    const { queue, leaseMs, log, now } = this.options
    let heldUntil = turn.work.claimedAt + leaseMs
    let isRenewing = false
    const renew = async (): Promise<void> => {
      const askedAt = now()
      // The database does not answer.
      if (isRenewing && askedAt >= heldUntil) this.#end(turn, 'unsure')
      if (isRenewing) return
      isRenewing = true
      try {
        const state = await queue.renew(turn.work)
        if (state === 'held') heldUntil = askedAt + leaseMs
        else this.#end(turn, state)
      } catch (error) {
        log.warn('lease.not-renewed', { messageId: turn.work.message.id, error: messageOf(error) })
        // On a full disk nobody else can claim it either, and the agent may go on.
        const isFull = error instanceof GatewayError && error.code === 'store_full'
        if (now() >= heldUntil && !isFull) this.#end(turn, 'unsure')
      } finally {
        isRenewing = false
      }
    }
    const timer = setInterval(() => void renew(), leaseMs / 3)
    return () => clearInterval(timer)
  }
}

function isEnd({ event }: RecordedEvent): boolean {
  return event.type === 'complete'
}

function handedBack({ prepared }: Turn): Settlement {
  return { kind: 'handed-back', ...(prepared && 'run' in prepared && { runId: prepared.run.id }) }
}

/** Empty when it has none. */
function backendOf({ prepared }: Turn): string {
  return prepared && 'plan' in prepared ? prepared.plan.backend : ''
}

/** What the person is told of a turn that went well, if anything. */
function replyTo({ message }: Work, result: AgentResult, notes: string[], plan: TurnPlan): Reply | undefined {
  const { finish = (reply: Reply) => reply } = plan
  const reply = { ...answer(result.finalOutput ?? '', plan), notes, isError: false }
  if (message.kind === 'heartbeat') {
    const text = readHeartbeatAnswer(reply.text, reply.files !== undefined)
    return text === undefined ? undefined : finish({ ...reply, text })
  }
  if (message.kind === 'cron' && message.options?.command) {
    const { exitCode = 0 } = result
    const isQuiet = reply.text.trim() === ''
    if (exitCode === 0) return isQuiet ? undefined : finish(reply)
    const [executable = ''] = message.options.command
    const problem = ofJob({ message }, `${executable} ended with exit code ${exitCode}.`)
    return finish({ ...reply, text: isQuiet ? problem : `${problem}\n\n${reply.text}`, isError: true })
  }
  return finish(reply)
}

function mergedNotes({ merged: { length: count } }: Work): string[] {
  if (count === 0) return []
  return [count === 1 ? 'This answers the message after it, too.' : `This answers the ${count} messages after it, too.`]
}

/** What went wrong, and what to do. */
function explained(
  { message }: Pick<Work, 'message'>,
  failure: AgentFailure,
  ...about: [string, number, boolean]
): string {
  // Of a command these are our own words, which say both.
  const isOwn = message.kind === 'cron' && message.options?.command !== undefined
  return isOwn ? failure.message : explainFailure(failure, ...about)
}

/** Who gets it has not asked for it, and may have several jobs. */
function ofJob({ message }: Pick<Work, 'message'>, problem: string): string {
  const { job } = message.options ?? {}
  return job === undefined ? problem : `The job ${job} has failed. ${problem}`
}

/** The text for the person, and the files that it names. */
function answer(output: string, { directory, canSendFiles }: TurnPlan): Pick<Reply, 'text' | 'files'> {
  if (!canSendFiles) return { text: output }
  const { text, media } = readMediaTokens(output)
  const files = media.map((item) => (isWebAddress(item) ? { url: item } : { path: item, directory }))
  return { text, ...(files.length > 0 && { files }) }
}

function failed({ message }: Work, problem: string): Settlement {
  const reply: Reply = { text: ofJob({ message }, problem), notes: [], isError: true, canRetry: true }
  return { kind: 'failed', problem, ...(!message.options?.isKnownToFail && { reply }) }
}

function waitingReply(backend: string, waitsUntil: number): Reply {
  const time = new Date(waitsUntil).toISOString().replace('T', ' ').slice(0, 16)
  const text = `The limit of ${backend} is reached. Your message waits and is answered after ${time} UTC.`
  return { text, notes: [], isError: false, waitsUntil }
}
