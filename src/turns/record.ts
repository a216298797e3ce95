import { setImmediate as nextTurn } from 'node:timers/promises'
import { joinText } from '../backends/engine/event-queue.js'
import type { AgentEvent } from '../backends/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { RecordedEvent } from '../store/events.js'

/**
 * Each write has a fixed cost, so the pause is a multiple of the last write, within limits. While events keep arriving
 * during the pause, the minimum doubles.
 */
const PAUSE_PER_WRITE = 3
const MIN_PAUSE_MS = 15
const MAX_PAUSE_MS = 50
const RETRY_AFTER_FAILURE_MS = 1_000
/** `started` by itself is not worth a write: the agent's first words follow soon. */
const MAX_START_DELAY_MS = 200

/** Limits of one write: SQLite writes in this process and blocks it meanwhile. */
const MAX_EVENTS = 1_000
const MAX_CHARACTERS = 1_000_000

/**
 * Returns whether the run is still ours.
 *
 * Contract: may be repeated with the same events, and more, if it failed before it called `onCommitted`. After that
 * call further writes may begin, which become durable only after these; without it, they begin when this settles.
 */
export type WriteEvents = (events: RecordedEvent[], onCommitted: () => void) => Promise<boolean>

export interface EventListener {
  /** Contract: called once per event, before it is written. */
  onShown(events: RecordedEvent[]): void
  /** The events are durable. For a run that was lost to another gateway, only the final event. */
  onRecorded(events: RecordedEvent[]): void
}

/**
 * Numbers the events of one run without gaps, shows them and writes them.
 *
 * An event is written at once, except the first. Events that arrive during a write and the pause after it are written
 * together, and consecutive text becomes one event. Large batches are written in pieces that yield to other work. The
 * agent never waits.
 */
export class EventRecorder {
  #waiting: AgentEvent[] = []
  /** Numbered and shown, not yet written. */
  #unwritten: RecordedEvent[] = []
  #seq = 0
  #timer: NodeJS.Timeout | undefined
  /** Whether the timer waits for more events rather than for the pause to end. */
  #isBatching = false
  /** Settles when the next write may begin. */
  #writing: Promise<void>
  /** Settles when everything written so far is durable or has failed. */
  #safe: Promise<void> = Promise.resolve()
  #isWriting = false
  #isClosed = false
  #hasFailed = false
  #notBefore = 0
  #minPauseMs = MIN_PAUSE_MS

  constructor(
    private readonly runId: string,
    private readonly write: WriteEvents,
    private readonly listener: EventListener,
    private readonly log: Log,
    /** Settles when the first event may be shown. Contract: never rejects. */
    mayBegin: Promise<void> = Promise.resolve(),
  ) {
    this.#writing = mayBegin
  }

  push(event: AgentEvent): void {
    const last = this.#waiting.at(-1)
    if (!last || !joinText(last, event)) this.#waiting.push({ ...event })
    this.#writeSoon(event.type === 'started' ? MAX_START_DELAY_MS : 0)
  }

  /**
   * Contract: when it settles, everything pushed before is written, the last piece by `write`; if it rejects, nothing
   * is lost.
   */
  flush(write: WriteEvents = this.write): Promise<void> {
    const before = this.#writing
    let releaseNext = (): void => {}
    this.#writing = new Promise((resolve) => {
      releaseNext = resolve
    })
    const earlier = this.#safe
    const written = before.then(() => this.#writePieces(write, releaseNext, earlier)).finally(releaseNext)
    this.#safe = Promise.allSettled([earlier, written]).then(() => {})
    return written
  }

  /** Contract: nothing is pushed afterwards. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #writeSoon(batchMs = 0): void {
    if ((this.#timer && !this.#isBatching) || this.#isWriting || this.#isClosed) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isBatching = batchMs > 0
    const restMs = this.#notBefore - performance.now()
    this.#minPauseMs = restMs > 0 ? Math.min(MAX_PAUSE_MS, 2 * this.#minPauseMs) : MIN_PAUSE_MS
    const pauseMs = Math.max(batchMs, restMs)
    if (pauseMs <= 0) void this.#writeAll()
    else this.#timer = setTimeout(() => void this.#writeAll(), pauseMs)
  }

  async #writeAll(): Promise<void> {
    this.#timer = undefined
    this.#isWriting = true
    try {
      await this.flush()
    } catch (error) {
      this.#warnOnce(error)
    }
    this.#isWriting = false
    if (this.#waiting.length + this.#unwritten.length > 0) this.#writeSoon()
  }

  async #writePieces(write: WriteEvents, releaseNext: () => void, earlier: Promise<void>): Promise<void> {
    for (let piece = this.#nextPiece(); piece < this.#waiting.length; piece = this.#nextPiece()) {
      await this.#write(piece, this.write, () => {}, earlier)
      await nextTurn()
    }
    await this.#write(this.#waiting.length, write, releaseNext, earlier)
  }

  /** How many waiting events fit into one write. */
  #nextPiece(): number {
    let characters = 0
    const most = Math.max(0, MAX_EVENTS - this.#unwritten.length)
    const end = this.#waiting.findIndex((event, index) => {
      characters += sizeOf(event)
      return index >= most || characters > MAX_CHARACTERS
    })
    return end === -1 ? this.#waiting.length : Math.max(1, end)
  }

  async #write(piece: number, write: WriteEvents, releaseNext: () => void, earlier: Promise<void>): Promise<void> {
    const { onShown, onRecorded } = this.listener
    const fresh = this.#waiting.splice(0, piece).map((event) => ({ seq: (this.#seq += 1), event }))
    const events = [...this.#unwritten, ...fresh]
    this.#unwritten = events
    // Viewers need not wait for the write.
    if (fresh.length > 0) onShown(fresh)
    let isOurs: boolean
    const startedAt = performance.now()
    let isCommitted = false
    const onCommitted = (): void => {
      if (isCommitted) return
      isCommitted = true
      this.#unwritten = []
      releaseNext()
    }
    try {
      isOurs = await write(events, onCommitted)
    } catch (error) {
      this.#notBefore = performance.now() + RETRY_AFTER_FAILURE_MS
      throw error
    }
    onCommitted()
    await earlier
    const endedAt = performance.now()
    const pauseMs = Math.max(this.#minPauseMs, PAUSE_PER_WRITE * (endedAt - startedAt))
    // No pause if only `started` was written: people are waiting for the first words.
    const hasOnlyBegun = events.every(({ event }) => event.type === 'started')
    this.#notBefore = hasOnlyBegun ? 0 : endedAt + Math.min(MAX_PAUSE_MS, pauseMs)
    if (events.length > 0) onRecorded(isOurs ? events : events.filter(({ event }) => event.type === 'complete'))
  }

  #warnOnce(error: unknown): void {
    if (!this.#hasFailed) this.log.warn('events.not-written', { runId: this.runId, error: messageOf(error) })
    this.#hasFailed = true
  }
}

/** Approximate length as text. */
function sizeOf(event: AgentEvent): number {
  if ('content' in event) return event.content.length
  return event.type === 'tool_use' ? JSON.stringify(event.toolInput).length : 0
}
