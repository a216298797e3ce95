import { resolve } from 'node:path'
import { failureOf } from '../backends/engine/failures.js'
import { compactionOf } from '../backends/engine/turn.js'
import {
  AttemptStream,
  interruptedPrompt,
  joinedPrompt,
  recordTaken,
  saysSessionLost,
} from '../backends/engine/starting-over.js'
import type {
  AgentEvent,
  AgentFailure,
  AgentRequest,
  AgentResult,
  BackendAdapter,
  BackendEventResult,
  Steer,
} from '../backends/types.js'
import type { GatewayConfig } from '../config.js'
import type { MarkdownConfig } from '../prompt/markdown-config-loader.js'
import type { PromptContext } from '../prompt/system-prompt-assembler.js'
import { messageOf } from '../errors.js'
import { podDirectory } from '../kubernetes/types.js'
import type { Session, SessionRecord } from '../store/sessions.js'
import type { HookManager } from './hook-manager.js'
import { liftAdapter, type TurnBackend } from './lift-adapter.js'
import type { SessionManager } from './session-manager.js'

/** What the runtime decides itself. It passes on everything else in a request unchanged. */
type OwnParts = 'command' | 'systemPrompt' | 'sessionId' | 'sessionUsage' | 'idleTimeoutMs' | 'onSteerable'

/** One message for an agent. Omitted values come from the configuration. */
export interface GatewayEvent extends Omit<AgentRequest, OwnParts> {
  /** The conversation, to which the answer goes. */
  channelId: string
  kind?: PromptContext['kind']
  /** Whether an earlier attempt was cut off, possibly after the agent had begun. */
  wasInterrupted?: boolean
  /** Whether files can be sent with the answer. */
  canSendFiles?: boolean
  /** `own`: a session for this turn only; `idle`: the conversation's, without counting as a use of it. */
  session?: 'own' | 'idle'
  /** A conversation idle for this long begins a new session; defaults to the session manager's value. */
  sessionIdleMs?: number
  /**
   * Builds the actual request once the session is known; defaults to `prompt` unchanged. Contract: throws
   * `request_invalid`, with a sentence for the person, if that is impossible.
   */
  compose?(sessionId: string | undefined): Pick<AgentRequest, 'prompt' | 'command'>
}

export interface EventResult {
  responseText?: string
  targetChannelId?: string
  sessionId?: string
  error?: string
}

/** Follows a turn while it runs. */
export interface TurnListener {
  /** Contract: events come in the order that `run` guarantees, even across a second attempt. */
  onEvent(event: AgentEvent): void
  /** Called as soon as a new session has an id: if we are killed mid-turn, the next attempt resumes it. */
  keepSession(session: Session): Promise<void>
  /** See `AgentRequest`. */
  onSteerable?(steer: Steer): void
  /** Settles when the agent may start and events may be shown; at once if omitted. Rejects if they may not. */
  mayBegin?: Promise<void>
}

/** The outcome of a turn. */
export interface TurnOutcome {
  result: AgentResult
  /** Notes below the answer, one sentence each. */
  notes: string[]
  /** The session to continue in. Absent if the agent reported none or the turn had its own. */
  session?: Session
  /** A failure is not retried: what was done before it is unknown. */
  isFinal?: boolean
}

interface PreparedTurn {
  event: Omit<GatewayEvent, 'kind' | 'canSendFiles' | 'workingDir'>
  workingDir: string
  /** The workplace that this turn's session belongs to. */
  workplaceKey: string
  systemPrompt: string
  /** Steering messages the agent got; a second attempt gets them again. */
  steered: string[]
  signal: AbortSignal
}

type RuntimeConfig = Pick<GatewayConfig, 'idleTimeoutMs' | 'workingDir'>

const FRESH_SESSION_NOTE =
  'The earlier session was lost; this answer starts a fresh one and remembers nothing from before.'
const NOTHING_TO_COMPACT = 'There is nothing to compact: no session has started here.'
const MOVED_NOTE = 'The working directory has changed; this answer starts a fresh session there.'

/** Runs one turn of an agent for an event: session, system prompt, hooks, run, session again. */
export class AgentRuntime {
  readonly #backend: TurnBackend

  constructor(
    private readonly config: RuntimeConfig,
    backend: BackendAdapter | TurnBackend,
    private readonly sessionManager: Pick<SessionManager, 'get' | 'peek' | 'set' | 'forget'>,
    private readonly markdownConfigLoader: { load(): Promise<MarkdownConfig> },
    private readonly systemPromptAssembler: { assemble(markdown: MarkdownConfig, context: PromptContext): string },
    private readonly hookManager: Pick<HookManager, 'fire'>,
    private readonly now: () => number = Date.now,
  ) {
    this.#backend = liftAdapter(backend)
  }

  /** Runs one turn and stores its session. Contract: the agent's failures become an `EventResult` with `error`. */
  async process(event: GatewayEvent, signal: AbortSignal): Promise<EventResult> {
    const keepSession = (session: Session): Promise<void> => this.sessionManager.set(session)
    const { result, session } = await this.runTurn(event, signal, { onEvent: () => {}, keepSession })
    if (session) await this.sessionManager.set(session)
    return toEventResult(toBackendResult(result), event.channelId)
  }

  /** Like `process`, for a caller that stores the session itself, together with its own data. */
  async runTurn(event: GatewayEvent, signal: AbortSignal, listener: TurnListener): Promise<TurnOutcome> {
    const backend = this.#backend.name()
    const { channelId: conversationId, runId, metadata } = event
    const about = { conversationId, backend, ...(runId !== undefined && { runId }), ...(metadata && { metadata }) }
    // Concurrently with `mayBegin`.
    const preparing = Promise.all([this.#knownSession(event), this.markdownConfigLoader.load()])
    await Promise.all([listener.mayBegin, preparing])
    this.hookManager.fire('run-started', about)
    const outcome = await this.#runWithSession(event, ...(await preparing), signal, listener)
    const { failure, durationMs } = outcome.result
    const isCancelled = failure?.reason === 'cancelled'
    const isPaused = failure?.reason === 'max_turns'
    if (failure && !isCancelled && !isPaused) {
      this.hookManager.fire('error', { ...about, reason: failure.reason, message: failure.message })
    } else this.hookManager.fire('run-finished', { ...about, durationMs, isCancelled, isPaused })
    return outcome
  }

  async #runWithSession(
    event: GatewayEvent,
    known: SessionRecord | undefined,
    markdown: MarkdownConfig,
    signal: AbortSignal,
    listener: TurnListener,
  ): Promise<TurnOutcome> {
    const { kind = 'message', canSendFiles = false, workingDir: directory = this.config.workingDir, ...rest } = event
    const workingDir = resolve(directory)
    const workplaceKey = event.pod ? podDirectory(event.pod, workingDir) : workingDir
    const systemPrompt = this.systemPromptAssembler.assemble(markdown, { kind, canSendFiles })
    const turn: PreparedTurn = { event: rest, workingDir, workplaceKey, systemPrompt, steered: [], signal }
    // Most agents find a session only in the directory where it began, and some hang if it is not there.
    const isHere = known?.directory === workplaceKey
    // Turns that do not use the session do not replace it either.
    const notes = known && !isHere && event.session === undefined ? [MOVED_NOTE] : []
    const session = isHere ? known : undefined

    if (!session) return { ...(await this.#attempt(turn, undefined, listener)), notes }

    const attempts = new AttemptStream()
    const first = await this.#attempt(turn, session, inTurn(attempts, listener, saysSessionLost))
    if (!attempts.isLost) return { ...first, notes }
    await this.sessionManager.forget(session)
    for (const event of attempts.nextAttempt({ content: FRESH_SESSION_NOTE })) listener.onEvent(event)
    const second = await this.#attempt(turn, undefined, inTurn(attempts, listener))
    return { ...second, notes: [FRESH_SESSION_NOTE] }
  }

  #knownSession({ channelId, session, sessionIdleMs }: GatewayEvent): Promise<SessionRecord | undefined> {
    const backend = this.#backend.name()
    if (session === undefined) return this.sessionManager.get(channelId, backend, sessionIdleMs)
    return session === 'idle' ? this.sessionManager.peek(channelId, backend, sessionIdleMs) : Promise.resolve(undefined)
  }

  async #attempt(
    { event, workingDir, workplaceKey, systemPrompt, steered, signal }: PreparedTurn,
    session: SessionRecord | undefined,
    listener: TurnListener,
  ): Promise<Omit<TurnOutcome, 'notes'>> {
    if (!session && compactionOf(event)) return answerTurn(NOTHING_TO_COMPACT, listener, this.now())
    const { channelId, prompt, wasInterrupted, session: use, sessionIdleMs: _, compose, ...passedOn } = event
    const isResumedWork = wasInterrupted === true && session !== undefined
    let asked: Pick<AgentRequest, 'prompt' | 'command'>
    try {
      asked = compose?.(session?.sessionId) ?? { prompt }
      asked = { ...asked, prompt: joinedPrompt(asked.prompt, steered) }
    } catch (error) {
      return failTurn({ reason: 'refused', message: messageOf(error) }, listener, this.now())
    }
    const request: AgentRequest = {
      ...passedOn,
      ...asked,
      ...(isResumedWork && { prompt: interruptedPrompt('The gateway was restarted', 'the restart', asked.prompt) }),
      systemPrompt,
      workingDir,
      // No warm process for a session that nobody will continue.
      ...(use === 'own' && { mode: 'oneshot' }),
      idleTimeoutMs: this.config.idleTimeoutMs,
      ...(session && { sessionId: session.sessionId }),
      ...(session?.usage && { sessionUsage: session.usage }),
      ...(listener.onSteerable && { onSteerable: (steer) => listener.onSteerable?.(recordTaken(steer, steered)) }),
    }
    const sessionOf = (sessionId: string): Session => ({
      conversationId: channelId,
      backend: this.#backend.name(),
      sessionId,
      directory: workplaceKey,
    })

    let result: AgentResult | undefined
    for await (const agentEvent of this.#backend.run(request, signal)) {
      if (agentEvent.type === 'complete') result = agentEvent.result
      if (agentEvent.type === 'started' && agentEvent.sessionId !== undefined && !session && !use) {
        await listener.keepSession(sessionOf(agentEvent.sessionId))
      }
      listener.onEvent(agentEvent)
    }
    if (result === undefined) throw new Error('A run ended without its complete event')
    const { sessionId, sessionUsage } = result
    // A turn nobody asked for must not become the conversation's session, nor keep it alive.
    if (sessionId === undefined || (use && !session)) return { result }
    const usedAt = use && session?.usedAt
    return {
      result,
      session: {
        ...sessionOf(sessionId),
        ...(sessionUsage && { usage: sessionUsage }),
        ...(usedAt !== undefined && { usedAt }),
      },
    }
  }
}

/** Answers in place of an agent, with the usual events. */
export function answerTurn(text: string, { onEvent }: Pick<TurnListener, 'onEvent'>, timestamp: number): TurnOutcome {
  const result: AgentResult = { isError: false, finalOutput: text, durationMs: 0 }
  onEvent({ type: 'output', content: text, stream: 'stdout', timestamp })
  onEvent({ type: 'complete', result, timestamp })
  return { result, notes: [] }
}

/** Ends a turn that no agent has ended, with the usual events. */
export function failTurn(
  failure: Omit<AgentFailure, 'report'>,
  { onEvent }: Pick<TurnListener, 'onEvent'>,
  timestamp: number,
  durationMs = 0,
): TurnOutcome {
  const { reason, message } = failure
  const result = { isError: true, durationMs, failure: failureOf(failure) }
  onEvent({ type: 'error', content: message, reason, timestamp })
  onEvent({ type: 'complete', result, timestamp })
  return { result, notes: [] }
}

export function toEventResult(result: BackendEventResult, targetChannelId: string): EventResult {
  const { isError, responseText, sessionId } = result
  if (isError) return { targetChannelId, ...(responseText !== undefined && { error: responseText }) }
  return {
    targetChannelId,
    ...(responseText !== undefined && { responseText }),
    ...(sessionId !== undefined && { sessionId }),
  }
}

/** People see the agent's own message for a failure. */
function toBackendResult({ isError, finalOutput, failure, sessionId }: AgentResult): BackendEventResult {
  const responseText = failure?.message ?? finalOutput
  return {
    isError,
    ...(responseText !== undefined && { responseText }),
    ...(sessionId !== undefined && { sessionId }),
  }
}

/** Passes the events of one attempt on as part of the whole turn. */
function inTurn(
  attempts: AttemptStream,
  listener: TurnListener,
  isLost: (end: AgentEvent) => boolean = () => false,
): TurnListener {
  const onEvent = (event: AgentEvent): void => {
    for (const passed of attempts.pass(event, isLost)) listener.onEvent(passed)
  }
  return { ...listener, onEvent }
}
