import { EventRing } from './event-ring.js'
import type { NumberedEvent } from './numbered-event.js'
import type { PushedEvents, StreamReader } from './stream-reader.js'

/** A run that this gateway works on tells by itself; after so long a silence it may have gone to another one. */
const SILENCE_MS = 2_000
/** More than may wait are left to the store. */
const MAX_PUSHED = 1_000

/** The stream of one message, for all who follow it. */
export class LiveStream {
  followers = 0
  /** Begins where the first follower has found nothing more in the store. */
  #ring: EventRing | undefined
  /** From the store, by the number after which they begin: who follows side by side is served by one of them. */
  readonly #reads = new Map<number, Promise<NumberedEvent[]>>()
  #pushed: PushedEvents | undefined
  #heardAt = -Infinity
  #isReading = false
  #isStale = false
  #isOver = false
  #version = 0
  readonly #waiting = new Set<() => void>()

  constructor(
    readonly messageId: string,
    private readonly reader: StreamReader,
    private readonly now: () => number,
    private readonly onOver: (stream: LiveStream) => void,
  ) {}

  push(pushed: PushedEvents): void {
    this.#heardAt = this.now()
    if (!this.#ring) return
    const earlier = this.#pushed?.runId === pushed.runId ? this.#pushed.events : []
    const events = [...earlier, ...pushed.events]
    this.#pushed = events.length > MAX_PUSHED ? undefined : { runId: pushed.runId, events }
    void this.#look()
  }

  settled(): void {
    this.#heardAt = -Infinity
    void this.#look()
  }

  /** For what happens in other gateways. */
  poll(): void {
    if (this.now() - this.#heardAt >= SILENCE_MS) void this.#look()
  }

  async *follow(after: number, signal: AbortSignal): AsyncGenerator<NumberedEvent[], void> {
    let cursor = await this.reader.position(this.messageId, after)
    while (!signal.aborted) {
      const version = this.#version
      const batch = this.#ring?.after(cursor) ?? (await this.#readStored(cursor))
      const last = batch.at(-1)
      if (!last) {
        // Only somebody who took up an ended message can have left nothing here. Who comes back finds the new stream.
        if (this.#isOver) return
        await this.#changeAfter(version, signal)
        continue
      }
      cursor = last.number
      const isKnown = (batch[0]?.number ?? 0) <= after
      const fresh = isKnown ? batch.filter(({ number }) => number > after) : batch
      if (fresh.length > 0) yield fresh
      if (last.event.type === 'final') return
    }
  }

  async #readStored(cursor: number): Promise<NumberedEvent[]> {
    const sameRead = this.#reads.get(cursor)
    const shared = sameRead && (await sameRead)
    // Something may have come since that read began.
    if (shared && shared.length > 0) return shared
    const read = this.reader.read(this.messageId, cursor)
    this.#reads.set(cursor, read)
    const batch = await read.finally(() => {
      if (this.#reads.get(cursor) === read) this.#reads.delete(cursor)
    })
    if (batch.length === 0 && !this.#ring) {
      this.#ring = new EventRing(cursor)
      // Something may have been pushed while nobody kept it.
      void this.#look()
    }
    return batch
  }

  async #look(): Promise<void> {
    this.#isStale = true
    if (this.#isReading || this.#isOver || !this.#ring) return
    this.#isReading = true
    try {
      while (this.#isStale && !this.#isOver) {
        this.#isStale = false
        await this.#readOn(this.#ring)
      }
    } catch {
      // The store does not answer now. Nothing is lost: the next poll goes on from the same number.
      this.#heardAt = -Infinity
    } finally {
      this.#isReading = false
    }
  }

  async #readOn(ring: EventRing): Promise<void> {
    const pushed = this.#pushed
    this.#pushed = undefined
    const known = pushed && (await this.reader.number(this.messageId, ring.head, pushed))
    if (known) {
      this.#append(ring, known)
      return
    }
    for (;;) {
      const events = await this.reader.read(this.messageId, ring.head)
      this.#append(ring, events)
      if (events.length === 0 || this.#isOver) return
    }
  }

  #append(ring: EventRing, events: NumberedEvent[]): void {
    const last = events.at(-1)
    if (!last) return
    ring.append(events)
    if (last.event.type === 'final') {
      this.#isOver = true
      this.onOver(this)
    }
    this.#version += 1
    for (const wake of this.#waiting) wake()
  }

  async #changeAfter(version: number, signal: AbortSignal): Promise<void> {
    if (version !== this.#version || signal.aborted) return
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake)
    })
  }
}
