import { resolve } from 'node:path'
import { interruptedPrompt } from '../backends/engine/interrupted.js'
import { joinedPrompt, noting } from '../backends/engine/joined-prompt.js'
import type {
  AgentEvent,
  AgentMode,
  AgentRequest,
  AgentResult,
  Approve,
  BackendAdapter,
  BackendEventResult,
  SecretFile,
  Steer,
} from '../backends/types.js'
import type { GatewayConfig } from '../config.js'
import type { MarkdownConfig } from '../prompt/markdown-config-loader.js'
import type { PromptContext } from '../prompt/system-prompt-assembler.js'
import { EventScrubber } from '../credentials/event-scrubber.js'
import { createScrubber, type Scrubber } from '../credentials/scrubber.js'
import { messageOf } from '../errors.js'
import { type PodAddress, podDirectory } from '../kubernetes/types.js'
import type { Session, SessionRecord } from '../store/sessions.js'
import type { HookManager } from './hook-manager.js'
import { liftAdapter, type TurnBackend } from './lift-adapter.js'
import type { SessionManager } from './session-manager.js'

/** One message for an agent. What is left out comes from the configuration. */
export interface GatewayEvent {
  /** The conversation it belongs to, and where the answer goes. */
  channelId: string
  prompt: string
  kind?: PromptContext['kind']
  runId?: string
  /** Whether an earlier attempt was cut off, perhaps after the agent had begun. */
  wasInterrupted?: boolean
  /** Whether files can go with the answer. */
  canSendFiles?: boolean
  workingDir?: string
  /** The pod that has the working directory. */
  pod?: PodAddress
  mode?: AgentMode
  model?: string
  allowedTools?: string[]
  timeoutMs?: number
  maxTurns?: number
  isUntrusted?: boolean
  environment?: Record<string, string>
  secretFiles?: SecretFile[]
  metadata?: Record<string, string>
  /** Asked before each tool for which the agent wants to be allowed; left out, it need not ask. */
  approve?: Approve
  /** `own`: one for this turn alone; `idle`: the conversation's, without counting as a use of it. */
  session?: 'own' | 'idle'
  /** A conversation that was silent for so long begins a new session; left out, as the session manager has it. */
  sessionIdleMs?: number
  /** Says what is really asked, once it is known whether there is a session; left out, `prompt` as it is. Contract: throws
   *  `request_invalid` with a sentence for the person when it cannot be asked. */
  compose?(sessionId: string | undefined): Pick<AgentRequest, 'prompt' | 'command'>
}

export interface EventResult {
  responseText?: string
  targetChannelId?: string
  sessionId?: string
  error?: string
}

/** Who follows a turn while it runs. */
export interface TurnListener {
  /** Contract: gets the events in the order of the contract of `run`, also over a second attempt. */
  onEvent(event: AgentEvent): void
  /** Gets a new session as soon as it has an id: should we be killed in mid-turn, the next attempt goes on in it. */
  keepSession(session: Session): Promise<void>
  /** As of `AgentRequest`. */
  onSteerable?(steer: Steer): void
  /** Settles when the agent may be asked, and others may hear of the turn; left out, at once. Rejects where they may not. */
  mayBegin?: Promise<void>
}

/** What a turn came to. */
export interface TurnOutcome {
  result: AgentResult
  /** To tell the person beside the answer, a sentence each. */
  notes: string[]
  /** Where the conversation goes on. Absent when the agent named none, or the turn had one of its own. */
  session?: Session
  /** A failure is not tried again by itself: nobody knows what was done before it. */
  isFinal?: boolean
}

interface PreparedTurn {
  event: GatewayEvent
  workingDir: string
  /** Where a session of this turn is at home. */
  home: string
  systemPrompt: string
  /** What the agent was told while it worked: another attempt is told again. */
  steered: string[]
  signal: AbortSignal
}

type RuntimeConfig = Pick<GatewayConfig, 'idleTimeoutMs' | 'workingDir'>

const FRESH_SESSION_NOTE = 'The earlier session was lost; this answer begins a fresh one and knows nothing from before.'
const MOVED_NOTE = 'The working directory has changed; this answer begins a fresh session there.'

/** Takes an event through one turn of an agent: session, system prompt, hooks, run, session again. */
export class AgentRuntime {
  readonly #backend: TurnBackend

  constructor(
    private readonly config: RuntimeConfig,
    backend: BackendAdapter | TurnBackend,
    private readonly sessionManager: Pick<SessionManager, 'get' | 'peek' | 'set' | 'forget'>,
    private readonly markdownConfigLoader: { load(): Promise<MarkdownConfig> },
    private readonly systemPromptAssembler: { assemble(markdown: MarkdownConfig, context: PromptContext): string },
    private readonly hookManager: Pick<HookManager, 'fire'>,
    /** Knows the secrets that no event may hold. */
    private readonly scrubber: Scrubber = createScrubber(),
    private readonly now: () => number = Date.now,
  ) {
    this.#backend = liftAdapter(backend)
  }

  /** One turn whole. Contract: failures of the agent are an `EventResult` with `error`. */
  async process(event: GatewayEvent, signal: AbortSignal): Promise<EventResult> {
    const keepSession = (session: Session): Promise<void> => this.sessionManager.set(session)
    const { result, session } = await this.runTurn(event, signal, { onEvent: () => {}, keepSession })
    if (session) await this.sessionManager.set(session)
    return toEventResult(toBackendResult(result), event.channelId)
  }

  /** As `process`, for a caller that keeps the session itself, together with what else it has to keep. */
  async runTurn(event: GatewayEvent, signal: AbortSignal, listener: TurnListener): Promise<TurnOutcome> {
    const backend = this.#backend.name()
    const { channelId: conversationId, runId, metadata } = event
    const about = { conversationId, backend, ...(runId !== undefined && { runId }), ...(metadata && { metadata }) }
    // Beside what is waited for.
    const preparing = Promise.all([this.#knownSession(event), this.markdownConfigLoader.load()])
    await Promise.all([listener.mayBegin, preparing])
    this.hookManager.fire('run-started', about)
    const outcome = await this.#runWithSession(event, ...(await preparing), signal, listener)
    const { failure, durationMs } = outcome.result
    // Who stops a turn wants no alarm.
    if (failure && failure.reason !== 'cancelled') {
      this.hookManager.fire('error', { ...about, reason: failure.reason, message: failure.message })
    } else this.hookManager.fire('run-finished', { ...about, durationMs, isCancelled: failure !== undefined })
    return outcome
  }

  async #runWithSession(
    event: GatewayEvent,
    known: SessionRecord | undefined,
    markdown: MarkdownConfig,
    signal: AbortSignal,
    listener: TurnListener,
  ): Promise<TurnOutcome> {
    const workingDir = resolve(event.workingDir ?? this.config.workingDir)
    const home = event.pod ? podDirectory(event.pod, workingDir) : workingDir
    const systemPrompt = this.systemPromptAssembler.assemble(markdown, {
      kind: event.kind ?? 'message',
      canSendFiles: event.canSendFiles ?? false,
    })
    const turn: PreparedTurn = { event, workingDir, home, systemPrompt, steered: [], signal }
    // Most agents find a session only where it began, and some hang when it is not there.
    const isHere = known?.directory === home
    // Who is no user of the session does not take its place either.
    const notes = known && !isHere && event.session === undefined ? [MOVED_NOTE] : []
    const session = isHere ? known : undefined

    if (!session) return { ...(await this.#attempt(turn, undefined, listener)), notes }

    const events = new TwoAttempts(listener)
    const first = await this.#attempt(turn, session, events.first)
    if (first.result.failure?.reason !== 'session_lost') return { ...first, notes }
    await this.sessionManager.forget(session)
    const second = await this.#attempt(turn, undefined, events.second)
    return { ...second, notes: [FRESH_SESSION_NOTE] }
  }

  #knownSession({ channelId, session, sessionIdleMs }: GatewayEvent): Promise<SessionRecord | undefined> {
    const backend = this.#backend.name()
    if (session === undefined) return this.sessionManager.get(channelId, backend, sessionIdleMs)
    return session === 'idle' ? this.sessionManager.peek(channelId, backend, sessionIdleMs) : Promise.resolve(undefined)
  }

  async #attempt(
    { event, workingDir, home, systemPrompt, steered, signal }: PreparedTurn,
    session: SessionRecord | undefined,
    listener: TurnListener,
  ): Promise<Omit<TurnOutcome, 'notes'>> {
    const { channelId, wasInterrupted, runId, model, allowedTools, timeoutMs, maxTurns } = event
    const { isUntrusted, environment, secretFiles, metadata, pod, approve } = event
    // No process need stay for a session that nobody goes on with.
    const mode = event.session === 'own' ? 'oneshot' : event.mode
    const isResumedWork = wasInterrupted === true && session !== undefined
    let asked: Pick<AgentRequest, 'prompt' | 'command'>
    try {
      asked = event.compose?.(session?.sessionId) ?? { prompt: event.prompt }
      asked = { ...asked, prompt: joinedPrompt(asked.prompt, steered) }
    } catch (error) {
      return { result: this.#refuse(messageOf(error), listener) }
    }
    const request: AgentRequest = {
      ...asked,
      ...(isResumedWork && { prompt: interruptedPrompt('The gateway was restarted', 'the restart', asked.prompt) }),
      systemPrompt,
      workingDir,
      ...(pod && { pod }),
      ...(mode && { mode }),
      idleTimeoutMs: this.config.idleTimeoutMs,
      ...(session && { sessionId: session.sessionId }),
      ...(session?.usage && { sessionUsage: session.usage }),
      ...(runId !== undefined && { runId }),
      ...(model !== undefined && { model }),
      ...(allowedTools && { allowedTools }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(maxTurns !== undefined && { maxTurns }),
      ...(isUntrusted !== undefined && { isUntrusted }),
      ...(environment && { environment }),
      ...(secretFiles && { secretFiles }),
      ...(metadata && { metadata }),
      ...(approve && { approve }),
      ...(listener.onSteerable && { onSteerable: (steer) => listener.onSteerable?.(noting(steer, steered)) }),
    }
    const sessionOf = (sessionId: string): Session => ({
      conversationId: channelId,
      backend: this.#backend.name(),
      sessionId,
      directory: home,
    })

    let result: AgentResult | undefined
    const events = new EventScrubber(this.scrubber)
    for await (const raw of this.#backend.run(request, signal)) {
      for (const agentEvent of events.scrub(raw)) {
        if (agentEvent.type === 'complete') result = agentEvent.result
        if (agentEvent.type === 'started' && agentEvent.sessionId !== undefined && !session && !event.session) {
          await listener.keepSession(sessionOf(agentEvent.sessionId))
        }
        listener.onEvent(agentEvent)
      }
    }
    if (result === undefined) throw new Error('A run ended without its complete event')
    const { sessionId, sessionUsage } = result
    // What nobody asked for must not become where the conversation goes on, nor keep that alive.
    if (sessionId === undefined || (event.session && !session)) return { result }
    const usedAt = event.session && session?.usedAt
    return {
      result,
      session: {
        ...sessionOf(sessionId),
        ...(sessionUsage && { usage: sessionUsage }),
        ...(usedAt !== undefined && { usedAt }),
      },
    }
  }

  /** A turn that cannot be asked ends as any other, without having begun. */
  #refuse(message: string, listener: TurnListener): AgentResult {
    const reason = 'refused' as const
    const result = { isError: true, durationMs: 0, failure: { reason, message, report: message } }
    const timestamp = this.now()
    listener.onEvent({ type: 'error', content: message, reason, timestamp })
    listener.onEvent({ type: 'complete', result, timestamp })
    return result
  }
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

/** What people are shown of a failure is the agent's own message. */
function toBackendResult({ isError, finalOutput, failure, sessionId }: AgentResult): BackendEventResult {
  const responseText = failure?.message ?? finalOutput
  return {
    isError,
    ...(responseText !== undefined && { responseText }),
    ...(sessionId !== undefined && { sessionId }),
  }
}

/** Makes one stream of two attempts: of a first one that finds its session lost, nobody should see the end. */
class TwoAttempts {
  #hasStarted = false
  #held: AgentEvent[] = []
  readonly first: TurnListener
  readonly second: TurnListener

  constructor({ onEvent, ...listener }: TurnListener) {
    this.first = { ...listener, onEvent: (event) => this.#passFirst(event, onEvent) }
    this.second = { ...listener, onEvent: (event) => this.#passSecond(event, onEvent) }
  }

  #passFirst(event: AgentEvent, onEvent: TurnListener['onEvent']): void {
    if (event.type === 'complete' && event.result.failure?.reason === 'session_lost') {
      const note: AgentEvent = { type: 'notice', content: FRESH_SESSION_NOTE, timestamp: event.timestamp }
      this.#held = [...this.#held.filter(({ type }) => type !== 'error'), note]
      return
    }
    this.#held.push(event)
    // An error may be that end; and nothing must stand before `started`, which may yet come from the second attempt.
    if (event.type === 'error' || (event.type === 'notice' && !this.#hasStarted)) return
    if (event.type === 'started') this.#hasStarted = true
    this.#release(onEvent)
  }

  #passSecond(event: AgentEvent, onEvent: TurnListener['onEvent']): void {
    if (event.type === 'started' && !this.#hasStarted) onEvent(event)
    this.#release(onEvent)
    if (event.type !== 'started') onEvent(event)
  }

  #release(onEvent: TurnListener['onEvent']): void {
    for (const event of this.#held) onEvent(event)
    this.#held = []
  }
}
