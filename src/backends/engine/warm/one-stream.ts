import type { AgentEvent } from '../../types.js'

/**
 * Makes one stream of the attempts at one turn: `started` once and first, one `complete`, and what happened between them as
 * a notice.
 *
 * Contract: of an attempt that is not the last, neither `error` nor `complete` is passed.
 */
export class OneStream {
  #hasBegun = false
  #hasOutput = false
  /** Told as soon as something may stand before it. */
  #notices: string[] = []
  #attempts = 1
  #isNewPart = false

  /** `startedAt` is when the first attempt began. */
  constructor(private readonly startedAt: number) {}

  pass(event: AgentEvent): AgentEvent[] {
    if (event.type === 'started') {
      const isFirst = !this.#hasBegun
      this.#hasBegun = true
      return [...(isFirst ? [event] : []), ...this.#told(event.timestamp)]
    }
    this.#hasBegun = true
    return [...this.#told(event.timestamp), this.#ofOneTurn(event)]
  }

  /** Another attempt follows. */
  again(content: string, timestamp: number): AgentEvent[] {
    this.#attempts += 1
    this.#isNewPart = true
    this.#notices.push(content)
    return this.#hasBegun ? this.#told(timestamp) : []
  }

  #told(timestamp: number): AgentEvent[] {
    return this.#notices.splice(0).map((content) => ({ type: 'notice', content, timestamp }))
  }

  #ofOneTurn(event: AgentEvent): AgentEvent {
    if (event.type === 'output') return this.#apart(event)
    if (event.type !== 'complete' || this.#attempts === 1) return event
    return { ...event, result: { ...event.result, durationMs: event.timestamp - this.startedAt } }
  }

  #apart(event: Extract<AgentEvent, { type: 'output' }>): AgentEvent {
    const isApart = this.#isNewPart && this.#hasOutput
    this.#isNewPart = false
    this.#hasOutput = true
    return isApart ? { ...event, content: `\n\n${event.content}` } : event
  }
}
