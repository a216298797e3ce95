import type { AgentBackend, AgentEvent, AgentEventBody, AgentRequest } from '../src/backends/types.js'

/** A backend without a process: yields the events it was given and remembers what it was asked. */
export class ScriptedBackend implements Pick<AgentBackend, 'name' | 'run'> {
  readonly requests: AgentRequest[] = []

  constructor(private readonly script: AgentEventBody[]) {}

  name() {
    return 'claude' as const
  }

  async *run(request: AgentRequest): AsyncGenerator<AgentEvent, void, undefined> {
    this.requests.push(request)
    for (const event of this.script) yield { ...event, timestamp: 0 }
  }
}
