import type { AgentEvent, AgentEventBody, AgentResult } from '../types.js'

/** Even a short event has a cost at every step, so text that arrives within this time is combined. Screens refresh no
 *  faster, and models pause longer between words. */
const TEXT_EVERY_MS = 16

/**
 * Carries the events of one run from the process to its consumer, and enforces the order of the contract whatever the CLI
 * prints: `started` first and once, every tool closed, `complete` once and last.
 *
 * It never makes the sender wait, and can be iterated once. Text not yet consumed may be combined into one event.
 */
export class EventQueue implements AsyncIterable<AgentEvent> {
  #events: AgentEvent[] = []
  /** How many of them the consumer has taken. */
  #taken = 0
  #resolve: ((next: IteratorResult<AgentEvent, undefined>) => void) | undefined
  #timer: NodeJS.Timeout | undefined
  #textDueAt = 0
  #isComplete = false
  #hasBegun = false
  /** Notices from before the agent's first event, which may turn out to be `started`. */
  #held: AgentEventBody[] = []
  /** Tool names by tool id. */
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
    this.#deliver()
  }

  /** Not a generator: that takes several microtasks for each of thousands of events. */
  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    return { next: () => this.#next() }
  }

  #next(): Promise<IteratorResult<AgentEvent, undefined>> {
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#deliver()
    })
  }

  #deliver(): void {
    if (!this.#resolve) return
    const event = this.#events[this.#taken]
    if (event && this.#isEarly(event)) {
      this.#timer ??= setTimeout(() => {
        this.#textDueAt = 0
        this.#timer = undefined
        this.#deliver()
      }, this.#textDueAt - performance.now())
    } else if (event) {
      this.#taken += 1
      this.#settle({ value: event, done: false })
    } else {
      this.#events = []
      this.#taken = 0
      if (this.#isComplete) this.#settle({ value: undefined, done: true })
    }
  }

  #settle(next: IteratorResult<AgentEvent, undefined>): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const resolve = this.#resolve
    this.#resolve = undefined
    resolve?.(next)
  }

  /** Whether to wait for more text to combine it with. */
  #isEarly({ type }: AgentEvent): boolean {
    if (type !== 'output' && type !== 'thinking') return false
    const now = performance.now()
    const hasNext = this.#taken < this.#events.length - 1
    if (!hasNext && now < this.#textDueAt) return true
    this.#textDueAt = now + TEXT_EVERY_MS
    return false
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
    const last = this.#events.length - 1
    const waiting = last < this.#taken ? undefined : this.#events[last]
    if (!waiting || !joinText(waiting, body)) this.#events.push({ ...body, timestamp: this.now() })
    this.#deliver()
  }
}

/** Followers receive each event whole, so events must not grow without bound. */
const MAX_JOINED_CHARACTERS = 65_536

/** Appends the later text to the earlier event, unless they must stay separate. Contract: nobody else holds the earlier
 *  one. */
export function joinText(earlier: AgentEventBody, later: AgentEventBody): boolean {
  if (earlier.type !== 'output' && earlier.type !== 'thinking') return false
  if (later.type !== earlier.type || earlier.metadata || later.metadata) return false
  if (earlier.content.length + later.content.length > MAX_JOINED_CHARACTERS) return false
  earlier.content += later.content
  return true
}
