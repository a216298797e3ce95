// Reads the events of a message from the store, as one stream.
//
// Invariants, whoever reads and however often:
// - An event's number is its run's `firstSeq` plus its own `seq`. Nobody writes events of a run after its message was
//   claimed again, so the next run has counted everything that can be read.
// - Whether the message has ended is checked before its events are read: then they are complete.
// - A run's `complete` is held back while the message is open: if another run follows, it becomes a notice.
// - A message's end keeps its number when the message is retried, and becomes a notice: a client that has seen it
//   continues after it, and a new client sees one end.

import type { AgentEvent } from '../backends/types.js'
import { GatewayError } from '../errors.js'
import type { EventPage, Events, RecordedEvent } from '../store/events.js'
import type { Inbox, Message } from '../store/inbox.js'
import type { RunRecord, Runs } from '../store/runs.js'
import { DROPPED, type FinalEvent, type NumberedEvent } from './numbered-event.js'

/** The part of a store that streams are read from. */
export interface EventStore {
  inbox: Pick<Inbox, 'get'>
  runs: Pick<Runs, 'ofMessage' | 'latest'>
  events: Pick<Events, 'page'>
}

/** Events of one run that have just been written. */
export interface PushedEvents {
  runId: string
  events: RecordedEvent[]
}

/** Limits of one page, which may exceed them by one event. */
const PAGE = { events: 100, bytes: 65_536 }
const NOTHING: EventPage = { events: [], isLast: true }

export class StreamReader {
  constructor(private readonly store: EventStore) {}

  /** The position to continue from: `after`, or an earlier number if there is no such event. */
  async position(messageId: string, after: number): Promise<number> {
    const { retriedAfter = 0 } = await this.#message(messageId)
    const runs = await this.store.runs.ofMessage(messageId)
    const index = indexOfRun(runs, after)
    const run = runs[index]
    const last = Math.max(run?.firstSeq ?? 0, retriedAfter)
    if (after <= last || index < runs.length - 1) return after
    if (!run) return last
    const { events } = await this.store.events.page(run.id, after - run.firstSeq - 1, { events: 1, bytes: 1 })
    return events.length > 0 ? after : last
  }

  /** Whether the message has ended and nothing follows this number. */
  async isOver(messageId: string, after: number): Promise<boolean> {
    const { state } = await this.#message(messageId)
    return state !== 'open' && (await this.position(messageId, after)) < after
  }

  /** The next events; empty if there are no more for now. Contract: `after` is a `position`, or was read before. */
  async read(messageId: string, after: number): Promise<NumberedEvent[]> {
    const message = await this.#message(messageId)
    const runs = await this.store.runs.ofMessage(messageId)
    const index = indexOfRun(runs, after)
    const run = runs[index]
    const page = run ? await this.store.events.page(run.id, after - run.firstSeq, PAGE) : NOTHING
    const events = page.events.map(({ event }, index) => ({ number: after + index + 1, event }))
    const end = after + events.length
    const next = runs[index + 1]
    const continuesAfter = next?.firstSeq ?? message.retriedAfter ?? 0
    if (next || end < continuesAfter) {
      const ends = page.isLast ? earlierEnds(end, continuesAfter, run?.endedAt ?? message.receivedAt) : []
      return [...events.map(asEarlierAttempt), ...ends]
    }
    if (message.state === 'open') return events.filter(isShownWhileOpen)
    return [...events, ...(page.isLast ? [finalOf(message, message.state, run, end + 1)] : [])]
  }

  /** Like `read`, for pushed events; undefined if they are not the next ones. */
  async number(messageId: string, after: number, pushed: PushedEvents): Promise<NumberedEvent[] | undefined> {
    const run = await this.store.runs.latest(messageId)
    if (run?.id !== pushed.runId || run.state !== 'running') return undefined
    const events = pushed.events
      .map(({ seq, event }) => ({ number: run.firstSeq + seq, event }))
      .filter(({ number }) => number > after)
    if (events[0] && events[0].number !== after + 1) return undefined
    return events.filter(isShownWhileOpen)
  }

  async #message(messageId: string): Promise<Message> {
    const message = await this.store.inbox.get(messageId)
    if (message) return message
    throw new GatewayError(
      'not_found',
      `There is no message ${messageId}. List the commands of its project to find it.`,
    )
  }
}

/** If several runs begin at the same number, only the last can have events that count. */
function indexOfRun(runs: RunRecord[], after: number): number {
  return runs.findLastIndex(({ firstSeq }) => firstSeq <= after)
}

function isShownWhileOpen({ event }: { event: AgentEvent }): boolean {
  return event.type !== 'complete'
}

function asEarlierAttempt({ number, event }: { number: number; event: AgentEvent }): NumberedEvent {
  if (event.type !== 'complete') return { number, event }
  const { failure } = event.result
  const content = `This attempt ended${failure ? ` (${failure.reason}: ${failure.message})` : ''}. Another one follows.`
  return { number, event: { type: 'notice', content, timestamp: event.timestamp } }
}

/** More than one if a retry failed before it had a run. */
function earlierEnds(after: number, last: number, timestamp: number): NumberedEvent[] {
  const content = 'This attempt failed, and was retried.'
  return Array.from({ length: last - after }, (_, index) => ({
    number: after + index + 1,
    event: { type: 'notice', content, timestamp },
  }))
}

function finalOf(
  message: Message,
  status: FinalEvent['status'],
  run: RunRecord | undefined,
  number: number,
): NumberedEvent {
  const { exitCode, durationMs, sessionId = run?.sessionId, failure } = run?.result ?? {}
  const isDone = status === 'answered' && !failure
  const error = message.problem ?? (status === 'dropped' ? DROPPED : undefined)
  const event: FinalEvent = {
    type: 'final',
    timestamp: message.finishedAt ?? message.receivedAt,
    status,
    exitCode: isDone ? (exitCode ?? 0) : exitCode || 1,
    durationMs: durationMs ?? (run?.endedAt === undefined ? 0 : run.endedAt - run.startedAt),
    sessionId,
    backend: run?.backend,
    error,
    reason: failure?.reason,
  }
  return { number, event }
}
