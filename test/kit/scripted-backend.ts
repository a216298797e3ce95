import type { AgentEvent, AgentEventBody, AgentRequest, AgentResult, FailureReason } from '../../src/backends/types.js'
import type { TurnBackend } from '../../src/runtime/lift-adapter.js'

/** What happens in one run; an error is thrown, as if the gateway had ended there. */
export type Script = Array<AgentEventBody | Error>

/** A backend without a process: plays one script per run, repeating the last, and records the requests. */
export class ScriptedBackend implements TurnBackend {
  readonly requests: AgentRequest[] = []

  constructor(
    private readonly scripts: Script[],
    private readonly backendName = 'claude',
  ) {}

  name() {
    return this.backendName
  }

  async *run(request: AgentRequest): AsyncGenerator<AgentEvent, void, undefined> {
    this.requests.push(request)
    const script = this.scripts[Math.min(this.requests.length, this.scripts.length) - 1] ?? []
    for (const event of script) {
      if (event instanceof Error) throw event
      yield { ...event, timestamp: 0 }
    }
  }
}

export function succeeded(finalOutput: string, more: Partial<AgentResult> = {}): AgentResult {
  return { isError: false, durationMs: 1, finalOutput, ...more }
}

export function failed(reason: FailureReason, message = 'It failed', retryAt?: number): AgentResult {
  const failure = { reason, message, report: `Claude CLI error: ${message}`, ...(retryAt !== undefined && { retryAt }) }
  return { isError: true, durationMs: 1, failure }
}
