// The events of messages, for whoever follows them, from any number on and as they come.
//
// What must stay true:
// - The store is the truth; what is pushed only saves reading it. A follower is nothing but a number, so that it cannot
//   miss or repeat what falls between reading and waiting, after a restart, or in another gateway.
// - All who follow a message share one bounded ring of its newest events. Whoever falls behind it reads from the store,
//   at its own pace: who does not take what comes costs nothing but its number.
// - Nobody who follows makes the agent wait: `push` and `settled` never fail and return at once.

import type { RecordedEvent } from '../store/events.js'
import { LiveStream } from './live-stream.js'
import type { NumberedEvent } from './numbered-event.js'
import { type EventStore, StreamReader } from './stream-reader.js'

const POLL_MS = 250

export class StreamHub {
  readonly #reader: StreamReader
  readonly #streams = new Map<string, LiveStream>()
  #timer: NodeJS.Timeout | undefined

  constructor(
    store: EventStore,
    private readonly now: () => number,
    private readonly pollMs = POLL_MS,
  ) {
    this.#reader = new StreamReader(store)
  }

  /** Events that have just been written. */
  push(messageId: string, runId: string, events: RecordedEvent[]): void {
    this.#streams.get(messageId)?.push({ runId, events })
  }

  /** The message may have come to its end, or waits for another attempt. */
  settled(messageId: string): void {
    this.#streams.get(messageId)?.settled()
  }

  /**
   * Everything that comes after a number, in batches.
   *
   * Contract: each number once, in order, without gaps; the one of type `final` is the last, and then it ends. Without
   * that it ends only at the signal, or, rarely, to be followed again from the last number. Batches are shared: nobody
   * changes them. Throws `not_found` for an unknown message, and what the store throws while it is caught up with.
   * A dead letter that is taken up again goes on after its `final`, which is a notice from then on.
   */
  async *follow(messageId: string, after: number, signal: AbortSignal): AsyncGenerator<NumberedEvent[], void> {
    const stream = this.#join(messageId)
    try {
      yield* stream.follow(after, signal)
    } finally {
      this.#leave(stream)
    }
  }

  /** Whether nothing can come after this number: the client has seen the last one. Contract: throws as `follow` does. */
  isOver(messageId: string, after: number): Promise<boolean> {
    return this.#reader.isOver(messageId, after)
  }

  #join(messageId: string): LiveStream {
    const stream =
      this.#streams.get(messageId) ?? new LiveStream(messageId, this.#reader, this.now, (over) => this.#forget(over))
    this.#streams.set(messageId, stream)
    stream.followers += 1
    this.#timer ??= setInterval(() => {
      for (const followed of this.#streams.values()) followed.poll()
    }, this.pollMs).unref()
    return stream
  }

  #leave(stream: LiveStream): void {
    stream.followers -= 1
    if (stream.followers === 0) this.#forget(stream)
  }

  #forget(stream: LiveStream): void {
    if (this.#streams.get(stream.messageId) === stream) this.#streams.delete(stream.messageId)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
