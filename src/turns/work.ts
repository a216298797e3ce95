// Claims messages and runs their turns, several conversations at once.
//
// Invariants:
// - A turn whose lease cannot be renewed is stopped: another gateway may begin the same message.
// - Writing a result is retried until it succeeds. The agent has done its work; a full disk must not undo it.
// - A message is recorded as part of the turn before the agent is steered with it, so a crash does not lose it.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Steer } from '../backends/types.js'
import type { Acceptance, NextAttempt } from '../channels/types.js'
import { wait, within } from '../core/async.js'
import { oneLine } from '../core/one-line.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { failTurn, type TurnListener, type TurnOutcome } from '../runtime/agent-runtime.js'
import type { Message } from '../store/inbox.js'
import type { Delivery } from '../store/outbox.js'
import type { RecordedEvent } from '../store/events.js'
import type { Store, Tables } from '../store/store.js'
import { keepLease } from './lease.js'
import { Planner, type Prepared } from './plan.js'
import type { AcceptOptions, Queue, Taken } from './queue.js'
import { EventRecorder, type WriteEvents } from './record.js'
import { logSettlement, settlementOf, type TurnEnding, unplanned } from './settle.js'
import type { IncomingMessage, Settlement, Step, TurnPlan, Work } from './types.js'

export interface WorkerOptions {
  /** The channels this gateway serves; other gateways serve the rest. */
  channels: string[]
  /** Serve only this conversation. */
  address?: string
  maxConcurrentQueries: number
  leaseMs: number
  queue: Queue
  store: Pick<Store, 'jobs' | 'write'>
  /** Claims a reply in the transaction that ends the turn, then sends it. */
  replies: {
    claim(tables: Pick<Tables, 'outbox'>): Promise<Delivery | undefined>
    send(delivery: Delivery, answered?: Message): void
    wake(): void
  }
  /** Contract: throws only for problems that the person or the operator must fix; the error message says how. */
  plan(work: Work): TurnPlan
  onSettled(work: Work): void
  /** Stopped by a person; there will be no answer. */
  onCancelled(work: Work): void
  onRetry(work: Work, next: Omit<NextAttempt, 'address' | 'messageId'>): void
  /** To show at once, before they are stored. */
  onEvents(work: Work, runId: string, events: RecordedEvent[]): void
  onRecorded(work: Work, runId: string, events: RecordedEvent[]): void
  onStep?(step: Step): void
  /** Hides known secrets where no stage does: in why a turn cannot be planned, and in text before it is truncated. */
  scrub(text: string): string
  log: Log
  now: () => number
  newId: () => string
  /** Polling interval, for changes it was not notified of. */
  pollMs?: number
}

export interface StoppedTurn {
  messageId: string
  backend: string
  durationMs: number
}

interface Turn {
  work: Work
  prepared: Prepared | undefined
  startedAt: number
  ending?: TurnEnding
  abort: AbortController
  /** Steers the agent, while that is possible. */
  steer?: Steer
  /** Set while waiting messages are offered to the agent. */
  offering?: Promise<void>
  mayBeMore: boolean
  onMerged(message: Message): void
  /**
   * Settles when the sender has been told that the message is accepted. Nothing begins or is shown before that, nor if
   * it rejects.
   */
  mayBegin: Promise<void>
  /** Whether its message is on disk. */
  isStored: boolean
  /** It must not begin. */
  isVoid: boolean
  /** It ended without an answer because it was stopped. */
  wasStopped: boolean
  done: Promise<void>
}

const POLL_MS = 1_000
const REWRITE_MS = 1_000
/** How much of a message a notice quotes: enough to recognise it. */
const NOTICE_CHARACTERS = 100
const INTERRUPTED_NOTE = 'The gateway stopped while working on this. It starts again; what follows is new.'

export class Worker {
  readonly #turns = new Map<string, Turn>()
  readonly #planner: Planner
  readonly #poll: NodeJS.Timeout
  #isClaiming = false
  #mayBeMore = false
  /** Messages being accepted that will begin at once. */
  #beginning = 0
  /** Settles when all messages accepted so far have begun. */
  #begun: Promise<unknown> = Promise.resolve()
  #isStopped = false
  /** The stop's deadline has passed; this also ends turns that are just being claimed. */
  #isOver = false
  #hasFailed = false

  constructor(private readonly options: WorkerOptions) {
    this.#planner = new Planner(options.plan, options.newId, options.scrub)
    this.#poll = setInterval(() => this.wake(), options.pollMs ?? POLL_MS)
  }

  /** Claims waiting messages and offers them to running turns. */
  wake(): void {
    this.#claimSoon()
    for (const turn of this.#turns.values()) this.#offer(turn)
  }

  #claimSoon(): void {
    this.#mayBeMore = true
    if (!this.#isClaiming) void this.#claimAll()
  }

  /** Accepts a message, and begins it at once if nothing is ahead of it. Contract: see `Queue.accept`. */
  async accept(incoming: IncomingMessage, options: AcceptOptions = {}): Promise<Acceptance> {
    const { queue } = this.options
    if (!this.#mayBegin(incoming)) {
      const acceptance = await queue.accept(incoming, options)
      this.#claimAndOffer(acceptance.conversationId)
      return acceptance
    }
    this.#beginning += 1
    let onTaken = (_taken: Taken): void => {}
    const committed = new Promise<Taken>((resolve) => {
      onTaken = resolve
    })
    const taking = queue.take(incoming, options, this.#planner.planRun, onTaken)
    this.#begun = Promise.all([this.#begun, this.#beginWhenCommitted(committed, taking)])
    return (await taking).acceptance
  }

  #mayBegin({ channel, address }: IncomingMessage): boolean {
    const { channels, address: only = address } = this.options
    // Messages a pending claim would find have waited longer.
    const isBusy = this.#isStopped || this.#isClaiming || this.#mayBeMore || !this.#hasRoom()
    return !isBusy && channels.includes(channel) && address === only
  }

  #hasRoom(): boolean {
    return this.#turns.size + this.#beginning < this.options.maxConcurrentQueries
  }

  /** The turn is prepared while the message is being flushed to disk. Contract: never rejects. */
  async #beginWhenCommitted(committed: Promise<Taken>, taking: Promise<Taken>): Promise<void> {
    // The sender gets the error.
    const { acceptance, work } = await Promise.race([committed, taking]).catch((): Partial<Taken> => ({}))
    // The previous turn has ended but may still be cleaning up.
    if (work) await this.#turns.get(work.claim.conversationId)?.done
    this.#beginning -= 1
    if (work) this.#begin(work, taking)
    else this.#claimAndOffer(acceptance?.conversationId)
  }

  #claimAndOffer(conversationId: string | undefined): void {
    this.#claimSoon()
    const turn = conversationId === undefined ? undefined : this.#turns.get(conversationId)
    if (turn) this.#offer(turn)
  }

  /**
   * Ends a conversation's turn, or only that of the given message; settles when nothing of it is alive. Returns
   * undefined if it was answered first or the claim was lost.
   */
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

  /** Ends a message's turn if it runs here. The caller has already recorded the request to cancel. */
  endMessage(messageId: string): void {
    if (!this.#endTurnOf(messageId)) void this.#begun.then(() => this.#endTurnOf(messageId))
  }

  #endTurnOf(messageId: string): boolean {
    const turn = [...this.#turns.values()].find(({ work }) => work.message.id === messageId)
    if (turn) this.#end(turn, 'cancelled')
    return turn !== undefined
  }

  /** The conversations being worked on. */
  active(): string[] {
    return [...this.#turns.keys()]
  }

  /** Claims nothing more, waits for running turns, and at the deadline stops them and releases their messages. */
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
        const work = await queue.claim(channels, { ...only, except: [...this.#turns.keys()] }, this.#planner.planRun)
        this.#hasFailed = false
        if (!work) continue
        this.#mayBeMore = true
        this.#begin(work)
        // Let the new turn start before the next is claimed.
        await nextTurn()
      }
    } catch (error) {
      if (!this.#hasFailed) log.error('queue.claim-failed', { error: messageOf(error) })
      this.#hasFailed = true
    } finally {
      this.#isClaiming = false
    }
  }

  #begin(work: Work, taking: Promise<unknown> = Promise.resolve()): void {
    const { conversationId } = work.claim
    const turn: Turn = {
      work,
      prepared: this.#planner.prepared(work),
      startedAt: this.options.now(),
      abort: new AbortController(),
      mayBeMore: false,
      onMerged: () => {},
      mayBegin: Promise.resolve(),
      isStored: false,
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
        this.#claimSoon()
      })
  }

  /** Contract: rejects if the turn must not begin. */
  async #admit(turn: Turn, taking: Promise<unknown>): Promise<void> {
    await taking
    turn.isStored = true
    await new Promise<void>((resolve) => process.nextTick(resolve))
    this.options.onStep?.('claimed')
    if (this.#isLate(turn.work)) throw new Error('The gateway was frozen, and another one may have started this.')
  }

  #isLate({ claimedAt }: Work): boolean {
    const { leaseMs, now } = this.options
    return now() - claimedAt >= leaseMs
  }

  #end(turn: Turn, why: TurnEnding): void {
    turn.ending ??= why
    turn.abort.abort()
  }

  async #work(turn: Turn): Promise<void> {
    const stopRenewing = keepLease(turn.work, this.options, (why) => this.#end(turn, why))
    try {
      const outcome = await this.#run(turn)
      await turn.mayBegin.catch(() => {})
      if (!turn.isVoid) await this.#settle(turn, ...outcome)
      // If it is not stored, its lease expires and it is claimed again.
      else if (turn.isStored) await this.#settle(turn, released(turn))
    } finally {
      stopRenewing()
    }
  }

  /** Runs one attempt. Returns its outcome, and the recorder that writes the last events with it. */
  async #run(turn: Turn): Promise<[Settlement, EventRecorder?]> {
    const { queue, onStep, scrub, log, now } = this.options
    const { work, prepared } = turn
    if (!prepared) return [{ kind: 'cancelled' }]
    if ('problem' in prepared) return [unplanned(work, prepared.problem)]
    // Not even preparation may run: parts of it clean up.
    if (this.#isLate(work)) return [released(turn)]
    const { plan, run } = prepared
    const runId = run.id
    let said = ''
    const recorder = this.#recorder(turn, runId)
    const note = (content: string): void => recorder.push({ type: 'notice', content, timestamp: now() })
    if (work.wasInterrupted) note(INTERRUPTED_NOTE)
    turn.onMerged = ({ text }) => note(`Passed on to the running agent: ${oneLine(scrub(text), NOTICE_CHARACTERS)}`)
    try {
      const outcome = await this.#runPlan(plan, runId, turn.abort.signal, {
        onEvent: (event) => {
          recorder.push(event)
          if (event.type === 'notice' && event.isTechnical) {
            log.info('agent.notice', { runId, backend: plan.backend, notice: event.content })
          }
          // Nothing may follow `complete`.
          if (event.type === 'complete') turn.onMerged = () => {}
          if (event.type !== 'output') return
          if (said === '') onStep?.('streaming')
          said += event.content
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
      onStep?.('finished')
      return [settlementOf(work, turn.ending, runId, { ...outcome, said }, plan, now()), recorder]
    } finally {
      recorder.close()
    }
  }

  #recorder(turn: Turn, runId: string): EventRecorder {
    const { store, onEvents, onRecorded, log } = this.options
    const { work } = turn
    const write: WriteEvents = async (events, onCommitted) => {
      const onWritten = (isOurs: boolean): void => {
        if (!isOurs) this.#end(turn, 'lost')
        onCommitted()
      }
      if (!turn.isVoid) return store.write((tables) => tables.events.record(runId, events), onWritten)
      onWritten(false)
      return false
    }
    const listener = {
      // The display of a turn lost to another gateway ends here and continues there.
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

  /** Steers the agent with waiting messages, if the conversation's mode says so. */
  #offer(turn: Turn): void {
    if (!turn.steer) return
    turn.mayBeMore = true
    turn.offering ??= this.#offerAll(turn)
      .catch((error: unknown) => {
        // Waiting messages then get their own turn, whatever is recorded.
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
      if ((await store.jobs.countOpen(work.claim.conversationId)) < 2) continue
      const message = await queue.mergeIntoRunning(work)
      if (!message) continue
      turn.mayBeMore = true
      if (await turn.steer?.(message.text)) {
        work.merged.push(message)
        turn.onMerged(message)
      } else {
        delete turn.steer
        await queue.unmerge(work, message)
      }
    }
  }

  /** Contract: never rejects. Unexpected errors count as failed attempts, so they do not repeat forever. */
  async #runPlan(plan: TurnPlan, runId: string, signal: AbortSignal, listener: TurnListener): Promise<TurnOutcome> {
    const { now } = this.options
    const startedAt = now()
    let hasEnded = false
    const onEvent: TurnListener['onEvent'] = (event) => {
      hasEnded ||= event.type === 'complete'
      listener.onEvent(event)
    }
    try {
      if (signal.aborted) throw new Error('It was stopped before it started.')
      return await plan.run({ runId }, signal, { ...listener, onEvent })
    } catch (error) {
      const failure = { reason: signal.aborted ? 'cancelled' : 'spawn', message: messageOf(error) } as const
      const rest = { onEvent: hasEnded ? () => {} : onEvent }
      return failTurn(failure, rest, now(), now() - startedAt)
    }
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
      // Otherwise the channel would forever show it as in progress here.
      await recorder
        ?.flush()
        .catch((error: unknown) => log.warn('events.not-written', { messageId, error: messageOf(error) }))
      return
    }
    turn.wasStopped = settlement.kind === 'cancelled'
    onStep?.('committed')
    const { message } = turn.work
    if (delivery) replies.send(delivery, delivery.messageId === message.id ? message : undefined)
    // The answer, if any, waits behind others.
    if (!isAnswer) replies.wake()
    logSettlement(log, turn.work, backendOf(turn), settlement)
    if (settlement.kind === 'cancelled') this.options.onCancelled(turn.work)
    if (settlement.kind === 'retry' && settlement.next) {
      this.options.onRetry(turn.work, { ...settlement.next, startsAt: settlement.at })
    }
  }

  /** Retries until it is written or the claim is lost. On stop, the message is left to its lease. */
  async #untilWritten(turn: Turn, write: () => Promise<void>): Promise<void> {
    for (let hasFailed = false; turn.ending !== 'lost';) {
      try {
        return await write()
      } catch (error) {
        const messageId = turn.work.message.id
        if (!hasFailed) this.options.log.error('turn.not-written', { messageId, error: messageOf(error) })
        hasFailed = true
        if (this.#isStopped) break
        await wait(REWRITE_MS)
      }
    }
  }
}

function isEnd({ event }: RecordedEvent): boolean {
  return event.type === 'complete'
}

function released({ prepared }: Turn): Settlement {
  return { kind: 'handed-back', ...(prepared && 'run' in prepared && { runId: prepared.run.id }) }
}

/** Empty if no turn was planned. */
function backendOf({ prepared }: Turn): string {
  return prepared && 'plan' in prepared ? prepared.plan.backend : ''
}
