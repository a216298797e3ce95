import type { AgentEvent } from '../backends/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { RecordedEvent, Runs } from '../store/runs.js'

/** Times the last write, within limits: while SQLite writes, nothing else happens, and each write has a price of its own. */
const PAUSE_PER_WRITE = 3
const SHORTEST_PAUSE_MS = 15
const LONGEST_PAUSE_MS = 50
const AFTER_FAILURE_MS = 1_000
/** That it has begun is not worth a write of its own: what the agent says follows soon. */
const LONGEST_START_MS = 50
/** Of text that was joined: who follows gets an event whole. */
const LONGEST_JOINED = 65_536

/**
 * Writes the events of one run down and passes them on, numbered without gaps, once they are safe.
 *
 * An event goes at once, but for the first one; what comes while it is written and in the pause after that goes together, and text that
 * belongs together becomes one event. The agent is never made to wait. Of a run that has gone to somebody
 * else only the end is passed on.
 */
export class EventRecorder {
  #waiting: AgentEvent[] = []
  #seq = 0
  #timer: NodeJS.Timeout | undefined
  /** Whether the timer waits for company, and not for the pause to end. */
  #isPatient = false
  #writing: Promise<void> = Promise.resolve()
  #isWriting = false
  #isClosed = false
  #hasFailed = false
  #notBefore = 0

  constructor(
    private readonly runId: string,
    private readonly runs: Pick<Runs, 'record'>,
    private readonly onRecorded: (events: RecordedEvent[]) => void,
    private readonly log: Log,
  ) {}

  push(event: AgentEvent): void {
    const last = this.#waiting.at(-1)
    const joined = last && join(last, event)
    if (joined) this.#waiting[this.#waiting.length - 1] = joined
    else this.#waiting.push(event)
    this.#writeSoon(event.type === 'started' ? LONGEST_START_MS : 0)
  }

  /** Contract: when it settles, everything pushed before is written; a rejection has lost nothing. */
  flush(): Promise<void> {
    const written = this.#writing.then(() => this.#write())
    this.#writing = written.catch(() => {})
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
    const pauseMs = Math.max(patienceMs, this.#notBefore - performance.now())
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
    if (this.#waiting.length > 0) this.#writeSoon()
  }

  async #write(): Promise<void> {
    const events = this.#waiting.map((event, index) => ({ seq: this.#seq + index + 1, event }))
    if (events.length === 0) return
    this.#waiting = []
    let isOurs: boolean
    const startedAt = performance.now()
    try {
      isOurs = await this.runs.record(this.runId, events)
    } catch (error) {
      this.#waiting = [...events.map(({ event }) => event), ...this.#waiting]
      this.#notBefore = performance.now() + AFTER_FAILURE_MS
      throw error
    }
    const endedAt = performance.now()
    const pauseMs = Math.max(SHORTEST_PAUSE_MS, PAUSE_PER_WRITE * (endedAt - startedAt))
    this.#notBefore = endedAt + Math.min(LONGEST_PAUSE_MS, pauseMs)
    this.#seq += events.length
    this.onRecorded(isOurs ? events : events.filter(({ event }) => event.type === 'complete'))
  }

  #tellOnce(error: unknown): void {
    if (!this.#hasFailed) this.log.warn('events.not-written', { runId: this.runId, error: messageOf(error) })
    this.#hasFailed = true
  }
}

function join(earlier: AgentEvent, later: AgentEvent): AgentEvent | undefined {
  if (earlier.metadata || later.metadata) return undefined
  if (earlier.type === 'output' && later.type === 'output') return withText(earlier, later.content)
  if (earlier.type === 'thinking' && later.type === 'thinking') return withText(earlier, later.content)
  return undefined
}

function withText<T extends AgentEvent & { content: string }>(event: T, text: string): T | undefined {
  if (event.content.length + text.length > LONGEST_JOINED) return undefined
  return { ...event, content: event.content + text }
}
