import type { AgentEvent } from '../../types.js'

/**
 * Merges the attempts at one turn into a single stream: `started` once and first, one `complete`, and a notice between
 * attempts.
 *
 * Contract: `error` and `complete` are passed only from the last attempt.
 */
export class AttemptStream {
  #hasBegun = false
  #hasOutput = false
  /** Held until `started` has had its chance to come first. */
  #notices: string[] = []
  #attempts = 1
  #isNewPart = false

  /** `startedAt` is the start of the first attempt. */
  constructor(private readonly startedAt: number) {}

  pass(event: AgentEvent): AgentEvent[] {
    if (event.type === 'started') {
      const isFirst = !this.#hasBegun
      this.#hasBegun = true
      return [...(isFirst ? [event] : []), ...this.#flushNotices(event.timestamp)]
    }
    this.#hasBegun = true
    return [...this.#flushNotices(event.timestamp), this.#asOneTurn(event)]
  }

  nextAttempt(content: string, timestamp: number): AgentEvent[] {
    this.#attempts += 1
    this.#isNewPart = true
    this.#notices.push(content)
    return this.#hasBegun ? this.#flushNotices(timestamp) : []
  }

  #flushNotices(timestamp: number): AgentEvent[] {
    return this.#notices.splice(0).map((content) => ({ type: 'notice', content, timestamp }))
  }

  #asOneTurn(event: AgentEvent): AgentEvent {
    if (event.type === 'output') return this.#separate(event)
    if (event.type !== 'complete' || this.#attempts === 1) return event
    return { ...event, result: { ...event.result, durationMs: event.timestamp - this.startedAt } }
  }

  #separate(event: Extract<AgentEvent, { type: 'output' }>): AgentEvent {
    const isSeparate = this.#isNewPart && this.#hasOutput
    this.#isNewPart = false
    this.#hasOutput = true
    return isSeparate ? { ...event, content: `\n\n${event.content}` } : event
  }
}
