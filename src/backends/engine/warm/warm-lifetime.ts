// A process that takes the next turn of its session too; see docs/live-agents.md. A turn that it cannot take gets a process
// of its own.

import { randomUUID } from 'node:crypto'
import { withDeadline } from '../../../core/async.js'
import { compareVersions } from '../../../core/versions.js'
import { messageOf } from '../../../errors.js'
import { type AgentCli, runVariables, UNTRUSTED_LOOK_MS, VERSION_TIMEOUT_MS, type WarmAgent } from '../agent-cli.js'
import { noting } from '../joined-prompt.js'
import { isWarmTurn } from '../mode.js'
import { OneShot } from '../one-shot.js'
import { poolKey } from '../pool.js'
import { refusedAsking, refusedVersionToAsk, unprepared } from '../refusals.js'
import type { Lease, Lifetime } from '../take-turn.js'
import type { Failed } from '../translation.js'
import type { Turn } from '../turn.js'
import { type TimeLimits, timeLimits } from '../turn-watch.js'
import type { AgentEvent, AgentMode, AgentRequest, Steer } from '../../types.js'
import type { WarmDriver } from './types.js'
import type { WarmLease } from './warm-pool.js'
import { startWarmProcess, type WarmProcess } from './warm-process.js'
import { startWarmRun, type WarmRun } from './warm-run.js'

export class WarmLifetime implements Lifetime {
  /** What the agent was told while it worked. */
  readonly steered: string[] = []
  /** As the agent named it, or as it was asked for. */
  sessionId: string | undefined
  /** Absent where a process of its own has taken the turn. */
  run: WarmRun | undefined
  #isSessionLost = false
  #fingerprint = ''
  #leaveSession: (() => void) | undefined

  constructor(
    private readonly agent: AgentCli,
    private readonly options: WarmAgent,
    private readonly request: AgentRequest,
  ) {
    this.sessionId = request.sessionId
  }

  async acquire(signal: AbortSignal): Promise<Lease | Failed> {
    const { agent, request } = this
    if (request.sessionId) await this.enter(request.sessionId, signal)
    const turn = agent.turnOf(request, true)
    signal.throwIfAborted()
    const lease = await this.#lease(turn, signal)
    if (lease && 'reason' in lease) return lease
    if (lease) return this.#leased(turn, lease)
    await this.leavePool(signal)
    return new OneShot(agent, request).acquire(signal)
  }

  /** One turn at a time in each session. Contract: `leave` is called when the turn is over. */
  async enter(sessionId: string, signal: AbortSignal): Promise<void> {
    this.#leaveSession ??= await this.options.pool.queue.enter(this.#keyOfSession(sessionId), signal)
  }

  leave(): void {
    this.#leaveSession?.()
  }

  /** For a turn of the session outside of the pool. */
  async leavePool(signal: AbortSignal): Promise<void> {
    const { sessionId } = this
    if (sessionId) await this.options.pool.leave(this.#keyOfSession(sessionId), signal)
  }

  /** Whether another process should take the turn. */
  get isLost(): boolean {
    // No other process would ask.
    return this.run?.isProcessLost === true && !this.request.approve
  }

  /** Whether the process never began to listen. */
  get isUnready(): boolean {
    return this.run?.isProcessLost === true && !this.run.wasAsked && !this.run.isDeclined
  }

  /** For a turn that was taken to its end: what it says about those to come. */
  noteOutcome(): void {
    const { pool } = this.options
    if (!this.run) return
    if (!this.run.isProcessLost) return pool.backoffs.succeeded(this.#fingerprint)
    if (this.run.isDeclined) return
    const { definition, dependencies } = this.agent
    dependencies.log.warn(this.isUnready ? 'live.not-ready' : 'live.lost', { backend: definition.name })
    if (this.isUnready) pool.backoffs.failed(this.#fingerprint)
  }

  #leased(turn: Turn, lease: WarmLease): Lease {
    const { agent, request } = this
    const onSteerable = (steer: Steer): void => request.onSteerable?.(noting(steer, this.steered))
    return {
      start: (limits) => {
        this.run = startWarmTurn(agent, lease.process, { ...request, onSteerable }, turn, limits)
        return this.run
      },
      heard: (event) => this.#heard(event, turn),
      release: () => {
        const isElsewhere = this.#isSessionLost || this.run?.isDeclined
        return lease.release(isElsewhere || !this.sessionId ? undefined : this.#keyOfSession(this.sessionId))
      },
    }
  }

  #heard(event: AgentEvent, { workingDir }: Turn): undefined {
    if (event.type === 'started') this.sessionId = event.sessionId ?? this.sessionId
    if (event.type !== 'complete') return
    const { sessionId, failure } = event.result
    this.#isSessionLost = failure?.reason === 'session_lost'
    this.sessionId = sessionId ?? this.sessionId
    this.agent.remember(sessionId, workingDir)
  }

  /** Undefined where the turn is to have a process of its own. Contract: throws at the signal alone. */
  async #lease(turn: Turn, signal: AbortSignal): Promise<WarmLease | Failed | undefined> {
    const { agent, request } = this
    this.#fingerprint = agent.fingerprint()
    if (!(await this.#isTaken(turn, signal))) return undefined
    const isAsking = request.approve !== undefined
    const obstacle = isAsking ? await this.#obstacleToAsking(signal) : undefined
    signal.throwIfAborted()
    if (obstacle) return obstacle
    try {
      const lease = this.#mode === 'oneshot' ? undefined : await this.#poolLease(turn, signal)
      if (lease || !isAsking) return lease
      await this.leavePool(signal)
      return leaseForTurn(await this.#open())
    } catch (error) {
      signal.throwIfAborted()
      const { definition, dependencies } = agent
      dependencies.log.warn('live.not-started', { backend: definition.name, error: messageOf(error) })
      return isAsking ? unprepared(definition.traits.label, error) : undefined
    }
  }

  async #isTaken(turn: Turn, signal: AbortSignal): Promise<boolean> {
    const { agent, request, options } = this
    // What is refused is refused in the same words.
    if (agent.refusalOf(request, turn)) return false
    const isWarm = await isWarmTurn({
      mode: this.#mode,
      isAsking: request.approve !== undefined,
      needsCommandLine: request.command !== undefined,
      isBackingOff: options.pool.backoffs.leftMs(this.#fingerprint) > 0,
      oldestKnown: options.driver.oldestKnown,
      version: () => this.#version(signal),
    })
    if (!isWarm || !request.isUntrusted) return isWarm
    const obstacle = await withDeadline(UNTRUSTED_LOOK_MS, signal, (look) => agent.obstacleIn(turn, look))
    return obstacle === undefined
  }

  get #mode(): AgentMode {
    return this.request.mode ?? this.options.mode
  }

  #version(signal: AbortSignal): Promise<string | undefined> {
    return withDeadline(VERSION_TIMEOUT_MS, signal, (look) => this.agent.version(look))
  }

  /** Why it would not ask before it uses a tool. */
  async #obstacleToAsking(signal: AbortSignal): Promise<Failed | undefined> {
    const { label } = this.agent.definition.traits
    const { canAsk, oldestKnown } = this.options.driver
    if (!canAsk) return refusedAsking(label)
    const version = await this.#version(signal)
    const isKnown = version !== undefined && compareVersions(version, oldestKnown) >= 0
    return isKnown ? undefined : refusedVersionToAsk(label, oldestKnown)
  }

  /** Undefined when all places are taken. */
  #poolLease(turn: Turn, signal: AbortSignal): Promise<WarmLease | undefined> {
    const { request, options } = this
    const { isShared, locksSessions = false } = options.driver
    const needs = {
      key: this.#keyOf(turn),
      session: request.sessionId ? this.#keyOfSession(request.sessionId) : undefined,
      ...{ isShared, locksSessions, isUntrusted: turn.isUntrusted },
      open: () => this.#open(),
    }
    return options.pool.acquire(needs, signal)
  }

  /** Others may use it too, whatever becomes of this turn. */
  #open(): Promise<WarmProcess> {
    const { agent, options, request } = this
    return withDeadline(VERSION_TIMEOUT_MS, undefined, (look) => openWarmProcess(agent, options.driver, request, look))
  }

  #keyOf(turn: Turn): string {
    const { environment = {}, secretFiles = [] } = this.request
    const fixed = [this.agent.definition.name, this.#fingerprint, this.options.driver.keyOf(turn)]
    return poolKey(fixed, environment, secretFiles)
  }

  #keyOfSession(sessionId: string): string {
    return `${this.agent.definition.name} ${sessionId.toLowerCase()}`
  }
}

/**
 * Starts a process on this machine that takes turns like this one. Its files are gone with it.
 *
 * Contract: rejects when it cannot be prepared; that it could not be started is how it `ended`.
 */
export async function openWarmProcess(
  agent: AgentCli,
  driver: WarmDriver,
  request: AgentRequest,
  signal: AbortSignal,
): Promise<WarmProcess> {
  const { limits, scrubber, owner } = agent.dependencies
  const turn = agent.turnOf(request)
  agent.warnAboutIgnoredOptions(request, turn)
  const place = agent.localPlace(turn)
  try {
    const invocation = await driver.launch(turn, place, signal)
    const process = startWarmProcess({
      process: {
        executable: agent.executableIn(place, turn),
        args: invocation.args,
        cwd: turn.workingDir,
        environment: agent.environmentOf(invocation, turn, runVariables(request, place)),
        runId: randomUUID(),
        ...(owner && { owner }),
        stopSignal: agent.definition.traits.stopSignal,
      },
      connect: (send) => driver.connect(send, place),
      ...(driver.shorten && { shorten: driver.shorten }),
      limits,
      scrubber,
    })
    void process.ended.then(() => agent.leave(place))
    return process
  } catch (error) {
    agent.leave(place)
    throw error
  }
}

/** One turn in a process that `openWarmProcess` started. */
export function startWarmTurn(
  agent: AgentCli,
  process: WarmProcess,
  request: AgentRequest,
  turn: Turn = agent.turnOf(request, true),
  watched: TimeLimits = timeLimits(request, agent.config),
): WarmRun {
  const { label, failureSigns } = agent.definition.traits
  const { now, elapsed, limits, scrubber } = agent.dependencies
  return startWarmRun(process, {
    ...{ label, failureSigns, turn, limits, now, elapsed, scrubber, ...watched },
    ...(request.approve && { approve: request.approve }),
    ...(request.onSteerable && { onSteerable: request.onSteerable }),
  })
}

/** For a turn that needs a warm process where the pool has no place, or `oneshot` is asked for: it ends with the turn. */
function leaseForTurn(process: WarmProcess): WarmLease {
  return {
    process,
    async release() {
      process.stop()
      await process.ended
    },
  }
}
