import type { NumberedEvent } from './numbered-event.js'

const MAX_EVENTS = 2_000
const MAX_CHARACTERS = 1_000_000
const BATCH_EVENTS = 200
const BATCH_CHARACTERS = 65_536

/** The newest events of one stream, without gaps; older ones are evicted. */
export class EventRing {
  readonly #events: NumberedEvent[] = []
  readonly #sizes: number[] = []
  #characters = 0
  /** Most readers are at the same position and get the same array, so work on it can be shared too. */
  #latest: { after: number; head: number; batch: NumberedEvent[] } | undefined

  /** `head` is the number of the last event appended. */
  constructor(public head: number) {}

  append(events: NumberedEvent[]): void {
    for (const numbered of events) {
      const size = JSON.stringify(numbered.event).length
      this.#events.push(numbered)
      this.#sizes.push(size)
      this.#characters += size
      this.head = numbered.number
    }
    while (this.#events.length > MAX_EVENTS || (this.#characters > MAX_CHARACTERS && this.#events.length > 1)) {
      this.#events.shift()
      this.#characters -= this.#sizes.shift() ?? 0
    }
  }

  /** The next events after a number; empty if it is the newest, undefined if they have been evicted. */
  after(number: number): NumberedEvent[] | undefined {
    const start = this.#events.length - (this.head - number)
    if (start < 0) return undefined
    if (this.#latest?.after === number && this.#latest.head === this.head) return this.#latest.batch
    const batch = this.#events.slice(start, this.#endOfBatch(start))
    this.#latest = { after: number, head: this.head, batch }
    return batch
  }

  #endOfBatch(start: number): number {
    let end = start
    let characters = 0
    while (end < this.#events.length && end - start < BATCH_EVENTS) {
      characters += this.#sizes[end] ?? 0
      if (characters > BATCH_CHARACTERS && end > start) break
      end += 1
    }
    return end
  }
}
