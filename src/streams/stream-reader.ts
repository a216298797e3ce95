// The events of a message as one stream, read from the store.
//
// What must stay true, whoever reads and however often:
// - An event has the number `firstSeq` of its run + its own `seq`. Of a run that another one follows, only what comes
//   before the next `firstSeq` counts: a gateway that lost its claim may go on writing for a while.
// - So the last run of an open message is looked at once more after its events were read. When it still is `running`,
//   nobody has claimed the message anew, and whoever does will count what was read. When it is `interrupted`, only the
//   next run can tell how much of it counts.
// - Whether the message has ended is asked before its events are read: then they are all there are.
// - A run's `complete` is held back while the message is open: another run may follow, which makes it a notice.

import type { AgentEvent } from '../backends/types.js'
import { GatewayError } from '../errors.js'
import type { Inbox, Message } from '../store/inbox.js'
import type { RecordedEvent, RunRecord, Runs } from '../store/runs.js'
import type { FinalEvent, NumberedEvent } from './numbered-event.js'

/** The part of a store that streams are read from. */
export interface EventStore {
  inbox: Pick<Inbox, 'get'>
  runs: Pick<Runs, 'ofMessage' | 'latest' | 'events'>
}

/** Events of one run that have just been written. */
export interface PushedEvents {
  runId: string
  events: RecordedEvent[]
}

const PAGE_EVENTS = 100
const PAGE_CHARACTERS = 65_536

export class StreamReader {
  constructor(private readonly store: EventStore) {}

  /** Where to read on from: `after`, or a number before it when there is no such event. */
  async position(messageId: string, after: number): Promise<number> {
    const runs = await this.store.runs.ofMessage(messageId)
    const index = indexOfRun(runs, after)
    const run = runs[index]
    if (!run) return 0
    if (after === run.firstSeq || index < runs.length - 1) return after
    const [event] = await this.store.runs.events(run.id, after - run.firstSeq - 1, 1)
    return event ? after : run.firstSeq
  }

  /** Whether the message has ended, and nothing comes after this number. */
  async isOver(messageId: string, after: number): Promise<boolean> {
    const { state } = await this.#message(messageId)
    return state !== 'open' && (await this.position(messageId, after)) < after
  }

  /** The next events; none when there are no more for now. Contract: `after` is a `position`, or was read before. */
  async read(messageId: string, after: number): Promise<NumberedEvent[]> {
    const message = await this.#message(messageId)
    const runs = await this.store.runs.ofMessage(messageId)
    const index = indexOfRun(runs, after)
    const run = runs[index]
    if (!run) return message.state === 'open' ? [] : [finalOf(message, message.state, undefined, after + 1)]

    const recorded = await this.store.runs.events(run.id, after - run.firstSeq, PAGE_EVENTS)
    const events = recorded.map(({ seq, event }) => ({ number: run.firstSeq + seq, event }))
    const next = runs[index + 1]
    if (next) return firstOf(events.filter(({ number }) => number <= next.firstSeq).map(asEarlier))
    if (message.state !== 'open') {
      const isWhole = recorded.length < PAGE_EVENTS
      const last = isWhole ? [finalOf(message, message.state, run, after + recorded.length + 1)] : []
      return firstOf([...events, ...last])
    }
    const latest = await this.store.runs.latest(messageId)
    if (latest?.id !== run.id) return this.read(messageId, after)
    return latest.state === 'interrupted' ? [] : firstOf(events.filter(isShownLive))
  }

  /** As `read`, of events that are at hand; undefined when they are not what comes next. */
  async number(messageId: string, after: number, pushed: PushedEvents): Promise<NumberedEvent[] | undefined> {
    const run = await this.store.runs.latest(messageId)
    if (run?.id !== pushed.runId || run.state !== 'running') return undefined
    const events = pushed.events
      .map(({ seq, event }) => ({ number: run.firstSeq + seq, event }))
      .filter(({ number }) => number > after)
    if (events[0] && events[0].number !== after + 1) return undefined
    return events.filter(isShownLive)
  }

  async #message(messageId: string): Promise<Message> {
    const message = await this.store.inbox.get(messageId)
    if (message) return message
    throw new GatewayError('not_found', `There is no message ${messageId}. Look for it among those of its project.`)
  }
}

/** Of several runs that begin there only the last can have events that count. */
function indexOfRun(runs: RunRecord[], after: number): number {
  return runs.findLastIndex(({ firstSeq }) => firstSeq <= after)
}

function isShownLive({ event }: { event: AgentEvent }): boolean {
  return event.type !== 'complete'
}

function asEarlier({ number, event }: { number: number; event: AgentEvent }): NumberedEvent {
  if (event.type !== 'complete') return { number, event }
  const { failure } = event.result
  const content = `This attempt has ended${failure ? ` (${failure.reason}: ${failure.message})` : ''}; another one follows.`
  return { number, event: { type: 'notice', content, timestamp: event.timestamp } }
}

function finalOf(
  message: Message,
  status: FinalEvent['status'],
  run: RunRecord | undefined,
  number: number,
): NumberedEvent {
  const { exitCode, durationMs, sessionId = run?.sessionId } = run?.result ?? {}
  const event: FinalEvent = {
    type: 'final',
    timestamp: message.finishedAt ?? message.receivedAt,
    status,
    exitCode: status === 'answered' ? (exitCode ?? 0) : exitCode || 1,
    durationMs: durationMs ?? (run?.endedAt === undefined ? 0 : run.endedAt - run.startedAt),
    ...(sessionId !== undefined && { sessionId }),
    ...(run && { backend: run.backend }),
    ...(message.problem !== undefined && { error: message.problem }),
  }
  return { number, event }
}

/** As many as one reader should hold at once, and at least one. */
function firstOf(events: NumberedEvent[]): NumberedEvent[] {
  let characters = 0
  const end = events.findIndex(({ event }) => (characters += JSON.stringify(event).length) > PAGE_CHARACTERS)
  return end === -1 ? events : events.slice(0, Math.max(1, end))
}
