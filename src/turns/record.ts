import { setImmediate as nextTurn } from 'node:timers/promises'
import { joinText } from '../backends/engine/join-text.js'
import type { AgentEvent } from '../backends/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { RecordedEvent } from '../store/events.js'

/** Times the last write, within limits: each write has a price of its own. Where more comes in every pause, the shortest
 *  one doubles. */
const PAUSE_PER_WRITE = 3
const SHORTEST_PAUSE_MS = 15
const LONGEST_PAUSE_MS = 50
const AFTER_FAILURE_MS = 1_000
/** That it has begun is not worth a write of its own: what the agent says follows soon. */
const LONGEST_START_MS = 200

/** Of one write, at most: SQLite writes within the process, where nothing else happens meanwhile. */
const MOST_EVENTS = 1_000
const MOST_CHARACTERS = 1_000_000

/**
 * Whether the run is still ours.
 *
 * Contract: may be repeated with the same events, and more, when it has failed before it called `onCommitted`. After that call
 * more may be written, which is not safe before these are; where it is not called, after the end.
 */
export type WriteEvents = (events: RecordedEvent[], onCommitted: () => void) => Promise<boolean>

export interface EventListener {
  /** Contract: gets each event once, before it is written. */
  onShown(events: RecordedEvent[]): void
  /** They are safe. Of a run that has gone to somebody else, only the end. */
  onRecorded(events: RecordedEvent[]): void
}

/**
 * Numbers the events of one run without gaps, shows them and writes them down.
 *
 * An event goes at once, but for the first one; what comes while it is written and in the pause after that goes together, and text that
 * belongs together becomes one event. Where that is much, it goes piece by piece, and others have their turn in between. The
 * agent is never made to wait.
 */
export class EventRecorder {
  #waiting: AgentEvent[] = []
  /** Numbered and shown. */
  #unwritten: RecordedEvent[] = []
  #seq = 0
  #timer: NodeJS.Timeout | undefined
  /** Whether the timer waits for company, and not for the pause to end. */
  #isPatient = false
  /** Settles when the next may be written. */
  #writing: Promise<void>
  /** Settles when all that was written so far is safe, or known not to be. */
  #safe: Promise<void> = Promise.resolve()
  #isWriting = false
  #isClosed = false
  #hasFailed = false
  #notBefore = 0
  #shortestPauseMs = SHORTEST_PAUSE_MS

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
    this.#writeSoon(event.type === 'started' ? LONGEST_START_MS : 0)
  }

  /** Contract: when it settles, everything pushed before is written, the last of it by `write`; a rejection has lost nothing. */
  flush(write: WriteEvents = this.write): Promise<void> {
    const before = this.#writing
    let letNext = (): void => {}
    this.#writing = new Promise((resolve) => {
      letNext = resolve
    })
    const earlier = this.#safe
    const written = before.then(() => this.#writePieces(write, letNext, earlier)).finally(letNext)
    this.#safe = Promise.allSettled([earlier, written]).then(() => {})
    return written
  }

  /** Nothing is pushed after it. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #writeSoon(patienceMs = 0): void {
    if ((this.#timer && !this.#isPatient) || this.#isWriting || this.#isClosed) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isPatient = patienceMs > 0
    const restMs = this.#notBefore - performance.now()
    this.#shortestPauseMs = restMs > 0 ? Math.min(LONGEST_PAUSE_MS, 2 * this.#shortestPauseMs) : SHORTEST_PAUSE_MS
    const pauseMs = Math.max(patienceMs, restMs)
    if (pauseMs <= 0) void this.#writeAll()
    else this.#timer = setTimeout(() => void this.#writeAll(), pauseMs)
  }

  async #writeAll(): Promise<void> {
    this.#timer = undefined
    this.#isWriting = true
    try {
      await this.flush()
    } catch (error) {
      this.#tellOnce(error)
    }
    this.#isWriting = false
    if (this.#waiting.length + this.#unwritten.length > 0) this.#writeSoon()
  }

  async #writePieces(write: WriteEvents, letNext: () => void, earlier: Promise<void>): Promise<void> {
    for (let piece = this.#nextPiece(); piece < this.#waiting.length; piece = this.#nextPiece()) {
      await this.#write(piece, this.write, () => {}, earlier)
      await nextTurn()
    }
    await this.#write(this.#waiting.length, write, letNext, earlier)
  }

  /** How many of what waits one write takes. */
  #nextPiece(): number {
    let characters = 0
    const most = Math.max(0, MOST_EVENTS - this.#unwritten.length)
    const end = this.#waiting.findIndex((event, index) => {
      characters += sizeOf(event)
      return index >= most || characters > MOST_CHARACTERS
    })
    return end === -1 ? this.#waiting.length : Math.max(1, end)
  }

  async #write(piece: number, write: WriteEvents, letNext: () => void, earlier: Promise<void>): Promise<void> {
    const { onShown, onRecorded } = this.listener
    const fresh = this.#waiting.splice(0, piece).map((event) => ({ seq: (this.#seq += 1), event }))
    const events = [...this.#unwritten, ...fresh]
    this.#unwritten = events
    // Before the write, for which somebody who looks on need not wait.
    if (fresh.length > 0) onShown(fresh)
    let isOurs: boolean
    const startedAt = performance.now()
    let isCommitted = false
    const onCommitted = (): void => {
      if (isCommitted) return
      isCommitted = true
      this.#unwritten = []
      letNext()
    }
    try {
      isOurs = await write(events, onCommitted)
    } catch (error) {
      this.#notBefore = performance.now() + AFTER_FAILURE_MS
      throw error
    }
    onCommitted()
    await earlier
    const endedAt = performance.now()
    const pauseMs = Math.max(this.#shortestPauseMs, PAUSE_PER_WRITE * (endedAt - startedAt))
    // The first words are waited for: they do not wait because it was told just before that it has begun.
    const hasOnlyBegun = events.every(({ event }) => event.type === 'started')
    this.#notBefore = hasOnlyBegun ? 0 : endedAt + Math.min(LONGEST_PAUSE_MS, pauseMs)
    if (events.length > 0) onRecorded(isOurs ? events : events.filter(({ event }) => event.type === 'complete'))
  }

  #tellOnce(error: unknown): void {
    if (!this.#hasFailed) this.log.warn('events.not-written', { runId: this.runId, error: messageOf(error) })
    this.#hasFailed = true
  }
}

/** About how long it is as text. */
function sizeOf(event: AgentEvent): number {
  if ('content' in event) return event.content.length
  return event.type === 'tool_use' ? JSON.stringify(event.toolInput).length : 0
}
