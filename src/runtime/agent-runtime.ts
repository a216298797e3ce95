import type { AgentBackend, AgentResult, BackendEventResult } from '../backends/types.js'
import type { GatewayConfig } from '../config.js'
import type { SessionManager } from './session-manager.js'

/** One message for an agent. */
export interface GatewayEvent {
  /** The conversation it belongs to, and where the answer goes. */
  channelId: string
  prompt: string
}

export interface EventResult {
  responseText?: string
  targetChannelId?: string
  sessionId?: string
  error?: string
}

export type RuntimeConfig = Pick<GatewayConfig, 'idleTimeoutMs'>

/** Reads the operator's markdown files; fresh for each event. */
export interface MarkdownConfigLoader<MarkdownConfig> {
  load(): Promise<MarkdownConfig>
}

export interface SystemPromptAssembler<MarkdownConfig> {
  assemble(markdown: MarkdownConfig): string
}

export interface HookManager {
  /** Contract: never rejects; a failing hook is its own matter. */
  fire(hook: 'run-started' | 'run-finished' | 'error', payload: Record<string, unknown>): Promise<void>
}

/** Takes an event through one turn of an agent: session, system prompt, hooks, run, session again. */
export class AgentRuntime<MarkdownConfig> {
  constructor(
    private readonly config: RuntimeConfig,
    private readonly backend: Pick<AgentBackend, 'name' | 'run'>,
    private readonly sessionManager: SessionManager,
    private readonly markdownConfigLoader: MarkdownConfigLoader<MarkdownConfig>,
    private readonly systemPromptAssembler: SystemPromptAssembler<MarkdownConfig>,
    private readonly hookManager: HookManager,
  ) {}

  /** Contract: failures of the agent are an `EventResult` with `error`. */
  async process({ channelId, prompt }: GatewayEvent, signal: AbortSignal): Promise<EventResult> {
    const backend = this.backend.name()
    const sessionId = this.sessionManager.get(channelId, backend)
    const systemPrompt = this.systemPromptAssembler.assemble(await this.markdownConfigLoader.load())
    const { idleTimeoutMs } = this.config
    await this.hookManager.fire('run-started', { channelId, backend })

    let result: AgentResult | undefined
    const request = { prompt, systemPrompt, idleTimeoutMs, ...(sessionId !== undefined && { sessionId }) }
    for await (const event of this.backend.run(request, signal)) if (event.type === 'complete') result = event.result
    if (result === undefined) throw new Error('A run ended without its complete event')

    if (result.sessionId !== undefined) this.sessionManager.set(channelId, backend, result.sessionId)
    else if (result.failure?.reason === 'session_lost') this.sessionManager.delete(channelId)
    await this.hookManager.fire(result.isError ? 'error' : 'run-finished', { channelId, backend })
    return toEventResult(toBackendResult(result), channelId)
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
