import type { AgentEvent, AgentEventBody, AgentResult } from './types.js'

/**
 * Carries the events of one run from the process to whoever iterates, and holds the order of the contract whatever a
 * CLI prints: `started` first and once, every tool closed, `complete` once and last.
 *
 * It never makes the sender wait. It is iterated once.
 */
export class EventQueue implements AsyncIterable<AgentEvent> {
  #events: AgentEvent[] = []
  /** How many of them the consumer has. */
  #taken = 0
  #wake: (() => void) | undefined
  #isComplete = false
  /** Whether an event of the agent has been sent. */
  #hasBegun = false
  /** Notices that came before the agent's first event, which may still be `started`. */
  #held: AgentEventBody[] = []
  /** Names by id. */
  #openTools = new Map<string, string>()
  #closedTools = new Set<string>()

  constructor(private readonly now: () => number) {}

  push(body: AgentEventBody): void {
    switch (body.type) {
      case 'started':
        if (!this.#hasBegun) this.#begin(body)
        return
      case 'notice':
        if (this.#hasBegun) this.#send(body)
        else this.#held.push(body)
        return
      case 'tool_use':
        if (this.#openTools.has(body.toolId)) return
        this.#closedTools.delete(body.toolId)
        this.#openTools.set(body.toolId, body.toolName)
        break
      case 'tool_result': {
        if (this.#closedTools.has(body.toolId)) return
        const toolName = this.#openTools.get(body.toolId) ?? body.toolName
        this.#openTools.delete(body.toolId)
        this.#closedTools.add(body.toolId)
        this.#begin({ ...body, toolName })
        return
      }
      default:
        break
    }
    this.#begin(body)
  }

  complete(result: AgentResult): void {
    for (const [toolId, toolName] of this.#openTools) {
      this.push({ type: 'tool_result', toolId, toolName, content: 'The run ended before the tool did.', isError: true })
    }
    const { failure } = result
    if (failure) this.#begin({ type: 'error', content: failure.message, reason: failure.reason })
    this.#begin({ type: 'complete', result })
    this.#isComplete = true
    this.#wake?.()
  }

  /** Not a generator: those take several turns of the microtask queue for each of many thousand events. */
  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    return { next: () => this.#next() }
  }

  #next(): Promise<IteratorResult<AgentEvent, undefined>> {
    const next = this.#take()
    if (next) return Promise.resolve(next)
    return new Promise((resolve) => {
      this.#wake = () => {
        const later = this.#take()
        if (!later) return
        this.#wake = undefined
        resolve(later)
      }
    })
  }

  /** Undefined when one is still to come. */
  #take(): IteratorResult<AgentEvent, undefined> | undefined {
    const event = this.#events[this.#taken]
    if (event) {
      this.#taken += 1
      return { value: event, done: false }
    }
    this.#events = []
    this.#taken = 0
    return this.#isComplete ? { value: undefined, done: true } : undefined
  }

  #begin(body: AgentEventBody): void {
    this.#hasBegun = true
    const held = this.#held
    this.#held = []
    if (body.type === 'started') this.#send(body)
    for (const notice of held) this.#send(notice)
    if (body.type !== 'started') this.#send(body)
  }

  #send(body: AgentEventBody): void {
    this.#events.push({ ...body, timestamp: this.now() })
    this.#wake?.()
  }
}
