// The events of messages, for followers, from any number on and as they come.
//
// Invariants:
// - The store is authoritative; pushed events only save reads. A follower is only a cursor, so it can neither miss nor
//   repeat events between reading and waiting, after a restart or in another gateway.
// - All followers of a message share one bounded ring of its newest events. A follower that falls behind reads from the
//   store at its own pace; a stalled one costs only its cursor.
// - Followers never make the agent wait: `push` and `settled` never fail and return at once.

import type { RecordedEvent } from '../store/events.js'
import { FollowedStream } from './followed-stream.js'
import type { NumberedEvent } from './numbered-event.js'
import { type EventStore, StreamReader } from './stream-reader.js'

const POLL_MS = 250

export class StreamHub {
  readonly #reader: StreamReader
  readonly #streams = new Map<string, FollowedStream>()
  #timer: NodeJS.Timeout | undefined

  constructor(
    store: EventStore,
    private readonly now: () => number,
    private readonly pollMs = POLL_MS,
  ) {
    this.#reader = new StreamReader(store)
  }

  /** Called with events that have just been written. */
  push(messageId: string, runId: string, events: RecordedEvent[]): void {
    this.#streams.get(messageId)?.push({ runId, events })
  }

  /** Called when the message may have ended, or waits for another attempt. */
  settled(messageId: string): void {
    this.#streams.get(messageId)?.settled()
  }

  /**
   * Yields everything after a number, in batches.
   *
   * Contract: each number once, in order, without gaps. It ends after the event of type `final`; otherwise only at the
   * signal or, rarely, to be followed again from the last number. Batches are shared and must not be changed. Throws
   * `not_found` for an unknown message, and the store's errors while catching up. A retried dead letter continues after
   * its `final`, which is a notice from then on.
   */
  async *follow(messageId: string, after: number, signal: AbortSignal): AsyncGenerator<NumberedEvent[], void> {
    const stream = this.#join(messageId)
    try {
      yield* stream.follow(after, signal)
    } finally {
      this.#leave(stream)
    }
  }

  /** Whether the client has seen the last event. Contract: throws like `follow`. */
  isOver(messageId: string, after: number): Promise<boolean> {
    return this.#reader.isOver(messageId, after)
  }

  #join(messageId: string): FollowedStream {
    const stream =
      this.#streams.get(messageId) ??
      new FollowedStream(messageId, this.#reader, this.now, (over) => this.#forget(over))
    this.#streams.set(messageId, stream)
    stream.followers += 1
    this.#timer ??= setInterval(() => {
      for (const followed of this.#streams.values()) followed.poll()
    }, this.pollMs).unref()
    return stream
  }

  #leave(stream: FollowedStream): void {
    stream.followers -= 1
    if (stream.followers === 0) this.#forget(stream)
  }

  #forget(stream: FollowedStream): void {
    if (this.#streams.get(stream.messageId) === stream) this.#streams.delete(stream.messageId)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
