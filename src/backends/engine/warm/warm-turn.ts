// A turn of a warm agent; see docs/live-agents.md. A turn that it cannot take runs one-shot. If the warm process is
// lost, a one-shot process continues the turn.

import { withDeadline } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import type { AgentEvent, AgentMode, AgentRequest, Steer } from '../../types.js'
import { type AgentCli, isWarmTurn, VERSION_TIMEOUT_MS, type WarmAgent } from '../agent-cli.js'
import { needsCommandLine } from '../command-args.js'
import type { Failed } from '../failures.js'
import { OneShot } from '../one-shot.js'
import { poolKey } from '../pool.js'
import { preparationFailure, refusedAsking, refusedVersionToAsk } from '../refusals.js'
import {
  type AttemptNotice,
  AttemptStream,
  interruptedPrompt,
  isSessionLost,
  joinedPrompt,
  recordTaken,
  saysSessionLost,
} from '../starting-over.js'
import { compactionOf, type Lease, type Lifetime, type Run, takeTurn, type Turn } from '../turn.js'
import { UNTRUSTED_CHECK_MS } from '../untrusted-git.js'
import type { WarmLease } from './warm-pool.js'
import { openWarmProcess, startWarmRun, type WarmDrive, type WarmProcess } from './warm-process.js'

const LOST: AttemptNotice = {
  content: "The agent's process ended in the middle of the turn. The turn continues in a new process.",
}
const DECLINED: AttemptNotice = {
  content: 'The warm agent cannot take this turn. It runs in a new process.',
  isTechnical: true,
}
const NOT_READY: AttemptNotice = {
  content: 'The warm agent did not become ready. The turn runs in a new process.',
  isTechnical: true,
}

interface Attempt {
  lifetime: Lifetime
  /** Sent before it. */
  notice?: AttemptNotice
  /** Whether its end calls for the next attempt. */
  isLost: (end: AgentEvent) => boolean
  next?: () => Attempt
}

export async function* takeWarmTurn(
  agent: AgentCli,
  options: WarmAgent,
  request: AgentRequest,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void, undefined> {
  const { config, dependencies } = agent
  const { now, elapsed } = dependencies
  const begunAt = elapsed()
  const startedAt = now()
  const stream = new AttemptStream()
  const warm = new WarmLifetime(agent, options, request)
  let attempt: Attempt | undefined = {
    lifetime: warm,
    isLost: () => warm.isLost,
    next: () => afterLoss(agent, request, warm),
  }
  try {
    while (attempt) {
      const { lifetime, isLost, next }: Attempt = attempt
      const take = { request, signal, spentMs: elapsed() - begunAt, config, dependencies }
      for await (const event of takeTurn(take, lifetime)) {
        // No `yield*`: it would dominate the cost of an answer in many pieces.
        for (const passed of stream.pass(event, isLost)) {
          // A consumer that learns of a new session may send it the next prompt at once.
          if (passed.type === 'started' && passed.sessionId) await warm.enterSession(passed.sessionId, signal)
          yield lifetime === warm ? passed : withWholeTime(passed, startedAt)
        }
      }
      if (lifetime === warm) warm.recordOutcome()
      attempt = stream.isLost ? next?.() : undefined
      if (!attempt) return
      await warm.leavePool(signal).catch(() => {})
      yield* stream.nextAttempt(attempt.notice)
    }
  } finally {
    warm.leaveSession()
  }
}

/** Continues the turn in a one-shot process, from where the lost one stopped. */
function afterLoss(agent: AgentCli, request: AgentRequest, warm: WarmLifetime): Attempt {
  const { sessionId, steered, run } = warm
  const whole = joinedPrompt(request.prompt, steered)
  const isKnown = run?.drive.wasPrompted && sessionId && !request.isCommand
  const prompt = isKnown ? interruptedPrompt('Your process ended', 'its end', whole) : whole
  const { sessionId: _asked, ...rest } = request
  const fresh = { ...rest, prompt }
  // The process may have ended before it stored a session that began in this turn.
  const isOfThisTurn = sessionId !== request.sessionId
  return {
    lifetime: new OneShot(agent, { ...fresh, ...(sessionId && { sessionId }) }),
    notice: run?.drive.isDeclined ? DECLINED : warm.isUnready ? NOT_READY : LOST,
    isLost: (end) => isOfThisTurn && saysSessionLost(end),
    next: () => ({ lifetime: new OneShot(agent, fresh), isLost: () => false }),
  }
}

/** With the time since the start of the first attempt. */
function withWholeTime(event: AgentEvent, startedAt: number): AgentEvent {
  if (event.type !== 'complete') return event
  return { ...event, result: { ...event.result, durationMs: event.timestamp - startedAt } }
}

class WarmLifetime implements Lifetime {
  /** Texts by which the agent was steered. */
  readonly steered: string[] = []
  /** As reported by the agent, or else as requested. */
  sessionId: string | undefined
  /** Absent if a one-shot process took the turn. */
  run: Run<WarmDrive> | undefined
  readonly #mode: AgentMode
  #isSessionLost = false
  #fingerprint = ''
  #leaveSession: (() => void) | undefined

  constructor(
    private readonly agent: AgentCli,
    private readonly options: WarmAgent,
    private readonly request: AgentRequest,
  ) {
    this.sessionId = request.sessionId
    this.#mode = request.mode ?? options.mode
  }

  async acquire(signal: AbortSignal): Promise<Lease | Failed> {
    const { agent, request } = this
    if (request.sessionId) await this.enterSession(request.sessionId, signal)
    const turn = agent.turnOf(request, true)
    signal.throwIfAborted()
    const lease = await this.#lease(turn, signal)
    if (lease && 'reason' in lease) return lease
    if (lease) return this.#leased(turn, lease)
    await this.leavePool(signal)
    return new OneShot(agent, request).acquire(signal)
  }

  /** One turn at a time in each session. Contract: `leaveSession` is called when the turn is over. */
  async enterSession(sessionId: string, signal: AbortSignal): Promise<void> {
    this.#leaveSession ??= await this.options.pool.queue.enter(this.#sessionKey(sessionId), signal)
  }

  leaveSession(): void {
    this.#leaveSession?.()
  }

  /** Frees the session for a turn outside the pool. */
  async leavePool(signal: AbortSignal): Promise<void> {
    const { sessionId } = this
    if (sessionId) await this.options.pool.leave(this.#sessionKey(sessionId), signal)
  }

  /** Whether another process should retry the turn. */
  get isLost(): boolean {
    return this.#isProcessLost && !this.#mustBeWarm
  }

  /** A one-shot process could not ask for approval, and not every one can compact. */
  get #mustBeWarm(): boolean {
    const { agent, request } = this
    return request.approve !== undefined || (agent.compactsWarm && compactionOf(request) !== undefined)
  }

  /** Whether the process never became ready. */
  get isUnready(): boolean {
    return this.#isProcessLost && !this.run?.drive.wasPrompted && !this.run?.drive.isDeclined
  }

  get #isProcessLost(): boolean {
    return this.run?.drive.isProcessLost(this.run.result) === true
  }

  /** After a turn: adjusts the back-off for the next ones. */
  recordOutcome(): void {
    const { pool } = this.options
    if (!this.run) return
    if (!this.#isProcessLost) return pool.backoffs.succeeded(this.#fingerprint)
    if (this.run.drive.isDeclined) return
    const { definition, dependencies } = this.agent
    dependencies.log.warn(this.isUnready ? 'live.not-ready' : 'live.lost', { backend: definition.name })
    if (this.isUnready) pool.backoffs.failed(this.#fingerprint)
  }

  #leased(turn: Turn, lease: WarmLease): Lease {
    const { agent, request } = this
    const onSteerable = (steer: Steer): void => request.onSteerable?.(recordTaken(steer, this.steered))
    return {
      start: (limits) => {
        this.run = startWarmRun(agent, lease.process, { ...request, onSteerable }, turn, limits)
        return this.run
      },
      onEvent: (event) => this.#onEvent(event, turn),
      release: () => {
        const isElsewhere = this.#isSessionLost || this.run?.drive.isDeclined
        return lease.release(isElsewhere || !this.sessionId ? undefined : this.#sessionKey(this.sessionId))
      },
    }
  }

  #onEvent(event: AgentEvent, { workingDir }: Turn): undefined {
    if (event.type === 'started') this.sessionId = event.sessionId ?? this.sessionId
    if (event.type !== 'complete') return
    const { sessionId, failure } = event.result
    this.#isSessionLost = isSessionLost(failure)
    this.sessionId = sessionId ?? this.sessionId
    this.agent.remember(sessionId, workingDir)
  }

  /** Undefined if the turn should run in a one-shot process. Contract: rejects only at the signal. */
  async #lease(turn: Turn, signal: AbortSignal): Promise<WarmLease | Failed | undefined> {
    const { agent, request } = this
    this.#fingerprint = agent.fingerprint()
    if (!(await this.#shouldBeWarm(turn, signal))) return undefined
    const obstacle = request.approve ? await this.#obstacleToAsking(signal) : undefined
    signal.throwIfAborted()
    if (obstacle) return obstacle
    try {
      const lease = this.#mode === 'oneshot' ? undefined : await this.#poolLease(turn, signal)
      if (lease || !this.#mustBeWarm) return lease
      await this.leavePool(signal)
      return await this.#leaseForTurn()
    } catch (error) {
      signal.throwIfAborted()
      const { definition, dependencies } = agent
      dependencies.log.warn('live.not-started', { backend: definition.name, error: messageOf(error) })
      return this.#mustBeWarm ? preparationFailure(definition.traits.label, error) : undefined
    }
  }

  async #shouldBeWarm(turn: Turn, signal: AbortSignal): Promise<boolean> {
    const { agent, request, options } = this
    // The one-shot path refuses it with the same message.
    if (agent.refusalOf(request, turn)) return false
    const isWarm = await isWarmTurn({
      mode: this.#mode,
      mustBeWarm: this.#mustBeWarm,
      needsCommandLine: turn.compaction ? needsCommandLine(request.command) : request.command !== undefined,
      isBackingOff: options.pool.backoffs.remainingMs(this.#fingerprint) > 0,
      oldestKnown: options.driver.oldestKnown,
      version: () => this.#version(signal),
    })
    if (!isWarm || !request.isUntrusted) return isWarm
    const obstacle = await withDeadline(UNTRUSTED_CHECK_MS, signal, (deadline) => agent.obstacleIn(turn, deadline))
    return obstacle === undefined
  }

  #version(signal: AbortSignal): Promise<string | undefined> {
    return withDeadline(VERSION_TIMEOUT_MS, signal, (deadline) => this.agent.version(deadline))
  }

  /** Why it cannot ask for approval. */
  async #obstacleToAsking(signal: AbortSignal): Promise<Failed | undefined> {
    const { label } = this.agent.definition.traits
    const { canAsk, oldestKnown } = this.options.driver
    if (!canAsk) return refusedAsking(label)
    return refusedVersionToAsk(label, await this.#version(signal), oldestKnown)
  }

  /** Undefined if the pool is full. */
  #poolLease(turn: Turn, signal: AbortSignal): Promise<WarmLease | undefined> {
    const { request, options } = this
    const { isShared, locksSessions = false } = options.driver
    const needs = {
      key: this.#processKey(turn),
      session: request.sessionId ? this.#sessionKey(request.sessionId) : undefined,
      ...{ isShared, locksSessions, isUntrusted: turn.isUntrusted },
      open: () => this.#open(),
    }
    return options.pool.acquire(needs, signal)
  }

  /** For a turn that needs the warm protocol although the pool is full or the mode is `oneshot`: the process ends with it. */
  async #leaseForTurn(): Promise<WarmLease> {
    const process = await this.#open()
    const release = async (): Promise<void> => {
      process.stop()
      await process.ended
    }
    return { process, release }
  }

  /** Not tied to this turn's signal: other turns may use the process too. */
  #open(): Promise<WarmProcess> {
    const { agent, options, request } = this
    return withDeadline(VERSION_TIMEOUT_MS, undefined, (deadline) =>
      openWarmProcess(agent, options.driver, request, deadline),
    )
  }

  #processKey(turn: Turn): string {
    const { environment = {}, secretFiles = [] } = this.request
    const fixed = [this.agent.definition.name, this.#fingerprint, this.options.driver.keyOf(turn)]
    return poolKey(fixed, environment, secretFiles)
  }

  #sessionKey(sessionId: string): string {
    return `${this.agent.definition.name} ${sessionId.toLowerCase()}`
  }
}
