import { Changes } from './changes.js'
import { EventRing } from './event-ring.js'
import type { NumberedEvent } from './numbered-event.js'
import type { PushedEvents, StreamReader } from './stream-reader.js'

/** A run in this gateway pushes its events; after this long without any, another gateway may have taken over. */
const SILENCE_MS = 2_000
/** Beyond this, events are read from the store. */
const MAX_PUSHED = 1_000

/** One message's stream, shared by its followers. */
export class FollowedStream {
  followers = 0
  /** Starts where the first follower found nothing more in the store. */
  #ring: EventRing | undefined
  /** Reads in progress by cursor, shared by followers at the same position. */
  readonly #reads = new Map<number, Promise<NumberedEvent[]>>()
  #pushed: PushedEvents | undefined
  #pushedAt = -Infinity
  #isReading = false
  #isStale = false
  #isOver = false
  readonly #changes = new Changes()

  constructor(
    readonly messageId: string,
    private readonly reader: StreamReader,
    private readonly now: () => number,
    private readonly onOver: (stream: FollowedStream) => void,
  ) {}

  push(pushed: PushedEvents): void {
    this.#pushedAt = this.now()
    if (!this.#ring) return
    const earlier = this.#pushed?.runId === pushed.runId ? this.#pushed.events : []
    const events = [...earlier, ...pushed.events]
    this.#pushed = events.length > MAX_PUSHED ? undefined : { runId: pushed.runId, events }
    void this.#refresh()
  }

  settled(): void {
    this.#pushedAt = -Infinity
    void this.#refresh()
  }

  /** For events written by other gateways. */
  poll(): void {
    if (this.now() - this.#pushedAt >= SILENCE_MS) void this.#refresh()
  }

  async *follow(after: number, signal: AbortSignal): AsyncGenerator<NumberedEvent[], void> {
    let cursor = await this.reader.position(this.messageId, after)
    while (!signal.aborted) {
      const { version } = this.#changes
      const batch = this.#ring?.after(cursor) ?? (await this.#readStored(cursor))
      const last = batch.at(-1)
      if (!last) {
        // Only a retry of the ended message can leave nothing here. A client that reconnects finds the new stream.
        if (this.#isOver) return
        await this.#changes.since(version, signal)
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
    // Events may have arrived since that read began.
    if (shared && shared.length > 0) return shared
    const read = this.reader.read(this.messageId, cursor)
    this.#reads.set(cursor, read)
    const batch = await read.finally(() => {
      if (this.#reads.get(cursor) === read) this.#reads.delete(cursor)
    })
    if (batch.length === 0 && !this.#ring) {
      this.#ring = new EventRing(cursor)
      // Events may have been pushed before there was a ring.
      void this.#refresh()
    }
    return batch
  }

  async #refresh(): Promise<void> {
    this.#isStale = true
    if (this.#isReading || this.#isOver || !this.#ring) return
    this.#isReading = true
    try {
      while (this.#isStale && !this.#isOver) {
        this.#isStale = false
        await this.#readNext(this.#ring)
      }
    } catch {
      // The store is unavailable. Nothing is lost: the next poll continues from the same number.
      this.#pushedAt = -Infinity
    } finally {
      this.#isReading = false
    }
  }

  async #readNext(ring: EventRing): Promise<void> {
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
    this.#changes.tell()
  }
}
