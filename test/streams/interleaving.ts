// One message, run by two gateways that crash, come back too late and restart, and clients that come and go.
// Everything random follows from one seed.

import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentEvent, AgentResult } from '../../src/backends/types.js'
import type { RecordedEvent } from '../../src/store/events.js'
import type { NumberedEvent } from '../../src/streams/numbered-event.js'
import { StreamHub } from '../../src/streams/stream-hub.js'
import type { EventStore } from '../../src/streams/stream-reader.js'

export type Ending = 'answered' | 'failed' | 'cancelled' | 'retry' | 'handed-back'

/** What gateways do to a message, as the queue would. */
export interface Writer {
  store: EventStore
  messageId: string
  /** Claims it, even from a gateway that has not finished. */
  claim(): Promise<void>
  begin(runId: string): Promise<void>
  record(runId: string, events: RecordedEvent[]): Promise<boolean>
  settle(runId: string, ending: Ending, result: AgentResult): Promise<void>
  /** Contract: it is not claimed. */
  drop(): Promise<void>
  /** Ends it without a run. Contract: it is claimed. */
  fail(): Promise<void>
  /** Retries it. Contract: it has failed. */
  retry(): Promise<void>
}

/** What every client must have seen, and what each has: a line for each event. */
export interface Seen {
  expected: string[]
  clients: string[][]
}

export interface Random {
  below(limit: number): number
  isOnceIn(count: number): boolean
}

const MAX_ATTEMPTS = 5
const POLL_MS = 1

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const below = (limit: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
  return { below, isOnceIn: (count) => below(count) === 0 }
}

/** Yields to a few others; rarely, to timers and sockets too. */
export function createPause(random: Random): () => Promise<void> {
  return async () => {
    for (let turns = random.below(4); turns > 0; turns -= 1) await Promise.resolve()
    if (random.isOnceIn(12)) await sleep(random.below(2))
  }
}

export async function interleave(writer: Writer, random: Random): Promise<Seen> {
  const pause = createPause(random)
  let clock = 0
  const createHub = (): StreamHub => new StreamHub(writer.store, () => (clock += 300), POLL_MS)
  const gateways = [0, 1].map(() => ({ hub: createHub(), stop: new AbortController() }))
  const pick = () => gateways[random.below(gateways.length)] ?? { hub: createHub(), stop: new AbortController() }

  const restart = (): void => {
    const gateway = pick()
    gateway.stop.abort()
    gateway.hub = createHub()
    gateway.stop = new AbortController()
  }

  const follow = async (): Promise<NumberedEvent[]> => {
    const seen: NumberedEvent[] = []
    for (;;) {
      const { hub, stop } = pick()
      // A follower that has seen an end comes back while a retry is possible.
      const hasEnd = seen.at(-1)?.event.type === 'final'
      if (hasEnd && work.isOver && (await hub.isOver(writer.messageId, seen.length))) return seen
      const leave = new AbortController()
      const signal = AbortSignal.any([stop.signal, leave.signal])
      let patience = 1 + random.below(8)
      if (random.isOnceIn(4)) void pause().then(() => leave.abort())
      for await (const batch of hub.follow(writer.messageId, seen.at(-1)?.number ?? 0, signal)) {
        seen.push(...batch)
        patience -= 1
        if (patience === 0) break
        await pause()
        if (random.isOnceIn(6)) await sleep(1)
      }
      await pause()
    }
  }

  const work = new Work(writer, random, pause, pick, restart)
  const clients = Array.from({ length: 1 + random.below(4) }, follow)
  const expected = await work.run()
  const seen = await Promise.all(clients)
  return { expected, clients: seen.map(withOneEnd) }
}

interface Run {
  id: string
  hub: () => StreamHub
  events: AgentEvent[]
}

class Work {
  /** Whether it has come to an end for good. */
  isOver = false
  readonly #runs: Run[] = []

  constructor(
    private readonly writer: Writer,
    private readonly random: Random,
    private readonly pause: () => Promise<void>,
    private readonly pick: () => { hub: StreamHub },
    private readonly restart: () => void,
  ) {}

  /** Returns the whole stream, assembled from the final state of the runs. */
  async run(): Promise<string[]> {
    const { writer, random, pause } = this
    const zombies: Array<Promise<void>> = []
    for (let attempt = 1; ; attempt += 1) {
      await writer.claim()
      if (random.isOnceIn(10)) {
        await writer.fail()
        await this.#retry()
        await writer.claim()
      }
      const run = await this.#begin(attempt)
      for (let batches = random.below(5); batches > 0; batches -= 1) {
        await this.#record(run, 1 + random.below(3))
        if (random.isOnceIn(10)) this.restart()
      }
      const isLast = attempt === MAX_ATTEMPTS
      const fate = random.below(isLast ? 3 : 8)
      const ending = (['answered', 'failed', 'cancelled', 'retry', 'retry', 'handed-back'] as const)[fate]
      if (ending === undefined) {
        // Somebody else claims it, and it continues for a while without noticing.
        zombies.push(this.#record(run, random.below(3)).then(() => this.#record(run, random.below(3))))
        continue
      }
      const result = resultOf(ending)
      if (ending !== 'handed-back') await this.#write(run, [{ type: 'complete', result, timestamp: attempt }])
      await pause()
      await writer.settle(run.id, ending, result)
      await pause()
      run.hub().settled(writer.messageId)
      if (ending === 'retry' || ending === 'handed-back') {
        await pause()
        if (!random.isOnceIn(8)) continue
        await Promise.all(zombies)
        await writer.drop()
        return this.#whole('dropped')
      }
      if (ending === 'failed' && !isLast && random.isOnceIn(2)) {
        await this.#retry()
        continue
      }
      await Promise.all(zombies)
      return this.#whole(ending)
    }
  }

  async #retry(): Promise<void> {
    await this.pause()
    this.pick().hub.settled(this.writer.messageId)
    await this.pause()
    await this.writer.retry()
  }

  async #begin(attempt: number): Promise<Run> {
    const gateway = this.pick()
    const run: Run = { id: `${this.writer.messageId} run ${attempt}`, hub: () => gateway.hub, events: [] }
    await this.writer.begin(run.id)
    this.#runs.push(run)
    return run
  }

  async #record(run: Run, count: number): Promise<void> {
    const events: AgentEvent[] = Array.from({ length: count }, (_, index) => ({
      type: 'output',
      content: `${run.id}, ${run.events.length + index + 1}`,
      stream: 'stdout',
      timestamp: 0,
    }))
    if (count > 0) await this.#write(run, events)
  }

  async #write(run: Run, events: AgentEvent[]): Promise<void> {
    const recorded = events.map((event, index) => ({ seq: run.events.length + index + 1, event }))
    if (await this.writer.record(run.id, recorded)) run.events.push(...events)
    await this.pause()
    run.hub().push(this.writer.messageId, run.id, recorded)
    await this.pause()
  }

  async #whole(status: string): Promise<string[]> {
    this.isOver = true
    const records = await this.writer.store.runs.ofMessage(this.writer.messageId)
    const lines: string[] = []
    for (const [index, { id, firstSeq }] of records.entries()) {
      // Ends that were not the last.
      while (lines.length < firstSeq) lines.push('notice')
      const all = (this.#runs.find((run) => run.id === id)?.events ?? []).map(summaryOf)
      const isLast = index === records.length - 1
      lines.push(...all.map((line) => (line === 'complete' && !isLast ? 'notice' : line)))
    }
    return [...lines, `final ${status}`].map((line, index) => `${index + 1} ${line}`)
  }
}

/** As a new follower would see it: an earlier end, with the end of its run, is a notice. */
function withOneEnd(events: NumberedEvent[]): string[] {
  return events.map(({ number, event }, index) => {
    const isLast = index === events.length - 1
    const wasEnd = event.type === 'final' && !isLast
    const following = events[index + 1]?.event.type
    const wasEndOfRun = event.type === 'complete' && following === 'final' && index + 1 < events.length - 1
    return `${number} ${wasEnd || wasEndOfRun ? 'notice' : summaryOf(event)}`
  })
}

function summaryOf(event: NumberedEvent['event']): string {
  if (event.type === 'output') return event.content
  return event.type === 'final' ? `final ${event.status}` : event.type
}

function resultOf(ending: Ending): AgentResult {
  if (ending === 'answered') return { isError: false, durationMs: 1, exitCode: 0 }
  const failure = { reason: 'exit' as const, message: 'It broke.', report: 'It broke.' }
  return { isError: true, durationMs: 1, exitCode: 1, failure }
}
