// An agent whose process stays for the next turn of its session; see docs/live-agents.md. What cannot be had so, and what
// such a process fails at, is done by a process for the turn alone.

import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { startDeadline, withDeadline } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import type { BackendDependencies } from '../backend-dependencies.js'
import { type CliBackend, UNTRUSTED_LOOK_MS, VERSION_TIMEOUT_MS } from '../cli-backend.js'
import { executeTurn } from '../execute-turn.js'
import { interruptedPrompt } from '../interrupted.js'
import { joinedPrompt, noting } from '../joined-prompt.js'
import { CANCELLED, refusedRun } from '../refusals.js'
import type { Failed } from '../translation.js'
import type { Turn } from '../turn.js'
import { modeInUse } from '../version.js'
import { timeLimits, tookTooLong } from '../turn-watch.js'
import type {
  AgentBackend,
  AgentCapabilities,
  AgentEvent,
  AgentMode,
  AgentProbe,
  AgentRequest,
  BackendAdapterConfig,
  BackendEventResult,
  Steer,
  StreamCallback,
} from '../../types.js'
import type { WarmLease, WarmPool } from './warm-pool.js'
import type { WarmProcess } from './warm-process.js'
import type { WarmRun } from './warm-run.js'
import { OneStream } from './one-stream.js'
import type { WarmDriver } from './types.js'

const LOST = 'The process of the agent ended in the middle of the turn. It goes on in another one.'
const DECLINED = 'This turn cannot be had in the process of the agent that stays. It is done in another one.'
const NOT_READY = 'The process of the agent did not begin to listen. The turn is done in another one.'

const TROUBLED =
  'Each turn has a process of its own for now: one that should have stayed did not begin to listen. It is tried again.'

interface WarmOptions {
  /** For requests that name none. */
  mode: AgentMode
  config: BackendAdapterConfig
  dependencies: Pick<BackendDependencies, 'log' | 'now' | 'elapsed'>
}

/** One turn, from the moment that its session is its own. */
interface Task {
  request: AgentRequest
  turn: Turn
  /** As the pool knows it. */
  session: string | undefined
  startedAt: number
  /** The same, as `elapsed` tells it. */
  begunAt: number
  /** What the agent was told while it worked. */
  steered: string[]
  signal: AbortSignal
  /** The signal, or the end of its time. */
  inTime: AbortSignal
}

export class WarmBackend implements AgentBackend {
  /** What `auto` came to when the installed version was last looked at. */
  #probedMode: AgentProbe['mode']

  constructor(
    private readonly oneShot: CliBackend,
    private readonly driver: WarmDriver,
    private readonly pool: WarmPool,
    private readonly options: WarmOptions,
  ) {}

  name() {
    return this.oneShot.name()
  }

  execute(
    prompt: string,
    systemPrompt: string,
    sessionId?: string,
    onStream?: StreamCallback,
  ): Promise<BackendEventResult> {
    return executeTurn(this, this.options.dependencies.log, prompt, systemPrompt, sessionId, onStream)
  }

  validate(): Promise<boolean> {
    return this.oneShot.validate()
  }

  async probe(): Promise<AgentProbe> {
    const probe = await this.oneShot.probe()
    if (!probe.isFound) return probe
    const use = modeInUse(this.options.mode, probe.version, this.driver.oldestKnown)
    const isTroubled = use.mode === 'live' && this.pool.isTroubled(this.oneShot.executableFingerprint() ?? '')
    const used = isTroubled ? { mode: 'oneshot' as const, whyNotLive: TROUBLED } : use
    this.#probedMode = used.mode
    return { ...probe, ...used }
  }

  capabilities(): AgentCapabilities {
    const capabilities = this.oneShot.capabilities()
    const mode = this.#probedMode ?? this.options.mode
    // Every agent that stays streams, also Codex, whose command line tells whole texts.
    return { ...capabilities, supportsStreaming: capabilities.supportsStreaming || mode !== 'oneshot' }
  }

  async *run(request: AgentRequest, signal: AbortSignal): AsyncGenerator<AgentEvent, void, undefined> {
    const { config, dependencies } = this.options
    const { timeoutMs } = timeLimits(request, config)
    // A session in a pod is not at home here.
    if (request.pod || signal.aborted) {
      yield* this.oneShot.run(request, signal)
      return
    }
    const session = request.sessionId ? this.#sessionOf(request.sessionId) : undefined
    // A caller may start any number of runs with one signal.
    setMaxListeners(0, signal)
    const limit = startDeadline(timeoutMs, signal)
    const startedAt = dependencies.now()
    const begunAt = dependencies.elapsed()
    let leave = session === undefined ? undefined : await this.pool.queue.enter(session, limit.signal)
    try {
      const turn = this.oneShot.toTurn(request, true)
      for await (const event of this.#take({
        request,
        turn,
        session,
        startedAt,
        begunAt,
        steered: [],
        signal,
        inTime: limit.signal,
      })) {
        // Whoever is told of a new session may send the next prompt to it at once.
        if (event.type === 'started' && event.sessionId) {
          leave ??= await this.pool.queue.enter(this.#sessionOf(event.sessionId), signal)
        }
        yield event
      }
    } catch (error) {
      if (!limit.signal.aborted) throw error
      yield* refusedRun(signal.aborted ? CANCELLED : tookTooLong(timeoutMs), dependencies.now)
    } finally {
      limit.clear()
      leave?.()
    }
  }

  /** Contract: throws at the signal, and then before the first event. */
  async *#take(task: Task): AsyncGenerator<AgentEvent, void, undefined> {
    const { request, session, signal, inTime } = task
    inTime.throwIfAborted()
    const mark = this.oneShot.executableFingerprint() ?? ''
    const lease = await this.#lease(task, mark)
    if (lease && 'reason' in lease) {
      yield* refusedRun(lease, this.options.dependencies.now)
      return
    }
    if (!lease) {
      if (session !== undefined) await this.pool.leave(session, inTime)
      yield* this.oneShot.run(request, signal, this.#spentMs(task))
      return
    }
    const stream = new OneStream(task.startedAt)
    const run = yield* this.#live(task, lease, stream)
    if (!run.isProcessLost) this.pool.noteSuccess(mark)
    else if (!request.approve) yield* this.#fallBack(task, run, stream)
    else this.#noteLoss(run)
  }

  async *#live(task: Task, lease: WarmLease, stream: OneStream): AsyncGenerator<AgentEvent, WarmRun, undefined> {
    const { request, turn, signal, steered } = task
    const onSteerable = (steer: Steer): void => request.onSteerable?.(noting(steer, steered))
    const run = this.oneShot.startWarm(lease.process, { ...request, onSteerable }, turn, this.#spentMs(task))
    const cancel = (): void => run.stop(CANCELLED)
    signal.addEventListener('abort', cancel)
    if (signal.aborted) cancel()
    let isSessionLost = false
    try {
      for await (const event of run.events) {
        if (event.type === 'complete') {
          isSessionLost = event.result.failure?.reason === 'session_lost'
          if (event.result.sessionId !== undefined) stream.sessionId = event.result.sessionId
          this.oneShot.remember(event.result.sessionId, turn.workingDir)
        }
        const isEnd = event.type === 'error' || event.type === 'complete'
        // No other process would ask.
        const isLast = !run.isProcessLost || request.approve !== undefined
        if (isEnd && !isLast) continue
        // Not by `yield*`, which costs more than all the rest for an answer in many pieces.
        for (const passed of stream.pass(event)) yield passed
      }
    } finally {
      signal.removeEventListener('abort', cancel)
      // Reached early when the consumer leaves the loop: the agent must not work on for nobody.
      cancel()
      await run.ended
      const { sessionId = request.sessionId } = stream
      const isElsewhere = isSessionLost || run.isDeclined
      await lease.release(isElsewhere || !sessionId ? undefined : this.#sessionOf(sessionId))
    }
    return run
  }

  /** The turn in a process of its own, where the lost one had come to. */
  async *#fallBack(task: Task, run: WarmRun, stream: OneStream): AsyncGenerator<AgentEvent, void, undefined> {
    const { request, signal, steered } = task
    const { now } = this.options.dependencies
    const { wasAsked, isDeclined } = run
    const { sessionId = request.sessionId } = stream
    const isUnready = this.#noteLoss(run)
    if (sessionId) await this.pool.leave(this.#sessionOf(sessionId), signal).catch(() => {})
    yield* stream.again(isDeclined ? DECLINED : isUnready ? NOT_READY : LOST, now())
    const whole = joinedPrompt(request.prompt, steered)
    const prompt = wasAsked && sessionId ? interruptedPrompt('Your process ended', 'its end', whole) : whole
    const next = { ...request, prompt, ...(sessionId && { sessionId }) }

    // It may have ended before it wrote down that there is such a session.
    const isOfThisTurn = sessionId !== request.sessionId
    let isUnwritten = false
    for await (const event of this.oneShot.run(next, signal, this.#spentMs(task))) {
      isUnwritten ||= isOfThisTurn && saysSessionLost(event)
      if (!isUnwritten) yield* stream.pass(event)
    }
    if (!isUnwritten) return
    const { sessionId: _unwritten, ...fresh } = next
    for await (const event of this.oneShot.run(fresh, signal, this.#spentMs(task))) yield* stream.pass(event)
  }

  /** Whether the process was never ready. */
  #noteLoss({ wasAsked, isDeclined }: WarmRun): boolean {
    const isUnready = !wasAsked && !isDeclined
    if (!isDeclined) {
      this.options.dependencies.log.warn(isUnready ? 'live.not-ready' : 'live.lost', { backend: this.name() })
    }
    if (isUnready) this.pool.noteTrouble(this.oneShot.executableFingerprint() ?? '')
    return isUnready
  }

  /**
   * Undefined where the turn is to have a process of its own, in which nothing is asked: one that is to ask is refused
   * there, or fails here. Contract: throws at the signal alone.
   */
  async #lease(task: Task, mark: string): Promise<WarmLease | Failed | undefined> {
    const { request, session, inTime: signal } = task
    if (!(await this.#canStay(task, mark))) return undefined
    const isAsking = request.approve !== undefined
    const obstacle = isAsking ? await this.oneShot.obstacleToAsking(this.driver, signal) : undefined
    signal.throwIfAborted()
    if (obstacle) return obstacle
    // Others may use it too, whatever becomes of this turn.
    const open = () =>
      withDeadline(VERSION_TIMEOUT_MS, undefined, (look) => this.oneShot.openWarm(this.driver, request, look))
    try {
      const lease = this.#modeOf(request) === 'oneshot' ? undefined : await this.#place(task, mark, open)
      if (lease || !isAsking) return lease
      if (session !== undefined) await this.pool.leave(session, signal)
      return leaseForTurn(await open())
    } catch (error) {
      signal.throwIfAborted()
      const { log } = this.options.dependencies
      log.warn('live.not-started', { backend: this.name(), error: messageOf(error) })
      return isAsking ? this.oneShot.unprepared(error) : undefined
    }
  }

  /** Undefined when all places are taken. */
  #place({ request, turn, session, inTime }: Task, mark: string, open: () => Promise<WarmProcess>) {
    const key = this.#keyOf(request, turn, mark)
    const { isShared, locksSessions = false } = this.driver
    const { isUntrusted } = turn
    return this.pool.acquire({ key, session, isShared, locksSessions, isUntrusted, open }, inTime)
  }

  #modeOf({ mode = this.options.mode }: AgentRequest): AgentMode {
    return mode
  }

  async #canStay({ request, turn, inTime: signal }: Task, mark: string): Promise<boolean> {
    const { command, approve } = request
    const mode = this.#modeOf(request)
    if (command || (!approve && (mode === 'oneshot' || this.pool.isTroubled(mark)))) return false
    // What is refused is refused in the same words.
    if (this.oneShot.refusalOf(request, turn)) return false
    const isKnown = (): Promise<boolean> =>
      this.oneShot.isInstalledSince(this.driver.oldestKnown, VERSION_TIMEOUT_MS, signal)
    if (mode === 'auto' && !approve && !(await isKnown())) return false
    if (!request.isUntrusted) return true
    const obstacle = await withDeadline(UNTRUSTED_LOOK_MS, signal, (look) => this.oneShot.obstacleIn(turn, look))
    return obstacle === undefined
  }

  /** Secrets are part of it: hashed, so that it can be kept and compared. */
  #keyOf({ environment = {}, secretFiles = [] }: AgentRequest, turn: Turn, mark: string): string {
    const files = secretFiles.map(({ variable, content }) => [variable, content])
    const parts = [this.name(), mark, this.driver.keyOf(turn), Object.entries(environment).toSorted(byName)]
    return createHash('sha256')
      .update(JSON.stringify([...parts, files.toSorted(byName)]))
      .digest('hex')
  }

  #sessionOf(sessionId: string): string {
    return `${this.name()} ${sessionId.toLowerCase()}`
  }

  #spentMs({ begunAt }: Task): number {
    return this.options.dependencies.elapsed() - begunAt
  }
}

/** Where all places are taken, or none shall stay: it ends with the turn. */
function leaseForTurn(process: WarmProcess): WarmLease {
  return {
    process,
    async release() {
      process.stop()
      await process.ended
    },
  }
}

function saysSessionLost(event: AgentEvent): boolean {
  if (event.type === 'complete') return event.result.failure?.reason === 'session_lost'
  return event.type === 'error' && event.reason === 'session_lost'
}

function byName([one = '']: string[], [other = '']: string[]): number {
  return one < other ? -1 : 1
}
