import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AgentEvent, AgentResult } from '../../src/backends/types.js'
import type { NumberedEvent } from '../../src/streams/numbered-event.js'
import { StreamHub } from '../../src/streams/stream-hub.js'
import type { EventStore } from '../../src/streams/stream-reader.js'
import { openTestStore } from '../kit/engines.js'
import type { Ending, Writer } from './interleaving.js'
import { createQueueWriter } from './queue-writer.js'

/** Polls must not find what should be pushed. */
const NEVER_MS = 1_000_000
const ANSWER: AgentResult = { isError: false, finalOutput: 'Done', sessionId: 'session', exitCode: 0, durationMs: 7 }

class Stage {
  readonly hub: StreamHub
  readonly #seqs = new Map<string, number>()

  constructor(
    readonly writer: Writer,
    pollMs = NEVER_MS,
    store: EventStore = writer.store,
  ) {
    this.hub = new StreamHub(store, () => 0, pollMs)
  }

  async begin(runId = 'run'): Promise<void> {
    await this.writer.claim()
    await this.writer.begin(runId)
  }

  async record(events: AgentEvent[], runId = 'run', hub = this.hub): Promise<void> {
    const seq = this.#seqs.get(runId) ?? 0
    this.#seqs.set(runId, seq + events.length)
    const recorded = events.map((event, index) => ({ seq: seq + index + 1, event }))
    await this.writer.record(runId, recorded)
    hub.push(this.writer.messageId, runId, recorded)
  }

  async settle(ending: Ending, result = ANSWER, runId = 'run'): Promise<void> {
    if (ending !== 'handed-back') await this.record([{ type: 'complete', result, timestamp: 0 }], runId)
    await this.writer.settle(runId, ending, result)
    this.hub.settled(this.writer.messageId)
  }

  follow(after = 0): AsyncGenerator<NumberedEvent[], void> {
    const leave = new AbortController()
    onTestFinished(() => leave.abort())
    return this.hub.follow(this.writer.messageId, after, leave.signal)
  }

  async all(after = 0): Promise<NumberedEvent[]> {
    return (await collect(this.follow(after))).flat()
  }
}

async function setup(pollMs?: number): Promise<Stage> {
  return new Stage(await createQueueWriter(await openTestStore({ file: ':memory:' })), pollMs)
}

async function collect(stream: AsyncIterable<NumberedEvent[]>): Promise<NumberedEvent[][]> {
  const batches: NumberedEvent[][] = []
  for await (const batch of stream) batches.push(batch)
  return batches
}

function outputs(count: number, content = 'text'): AgentEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    type: 'output',
    content: `${content} ${index}`,
    stream: 'stdout',
    timestamp: 0,
  }))
}

function numbersFrom(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

describe('following a message', () => {
  it('shows pushed events at once', async () => {
    const stage = await setup()
    await stage.begin()
    const stream = stage.follow()
    const first = stream.next()
    // By now it has found nothing in the store, and waits.
    await sleep(50)
    const [event] = outputs(1)
    if (event) await stage.record([event])
    expect(await first).toEqual({ done: false, value: [{ number: 1, event }] })
  })

  it('does not miss events pushed between its reading and its waiting', async () => {
    const { writer } = await setup()
    let afterRead = async (): Promise<void> => {}
    const { inbox, runs, events } = writer.store
    const page: EventStore['events']['page'] = async (...range) => {
      const read = await events.page(...range)
      const then = afterRead
      afterRead = async () => {}
      await then()
      return read
    }
    const ofMessage: EventStore['runs']['ofMessage'] = (id) => runs.ofMessage(id)
    const latest: EventStore['runs']['latest'] = (id) => runs.latest(id)
    const stage = new Stage(writer, NEVER_MS, { inbox, runs: { ofMessage, latest }, events: { page } })
    await stage.begin()
    afterRead = () => stage.record(outputs(1))
    const { value } = await stage.follow().next()
    expect(value?.map(({ number }) => number)).toEqual([1])
  })

  it('delivers all of a long stream, in bounded batches', async () => {
    const stage = await setup()
    await stage.begin()
    await stage.record(outputs(3_000))
    await stage.record(outputs(30, 'x'.repeat(30_000)))
    await stage.settle('answered')
    const batches = await collect(stage.follow())
    expect({
      numbers: batches.flat().map(({ number }) => number),
      isBounded: batches.every((batch) => batch.length === 1 || JSON.stringify(batch).length < 100_000),
    }).toEqual({ numbers: numbersFrom(1, 3_032), isBounded: true })
  })

  it('reads each event from the store once for all simultaneous followers, however large', async () => {
    const { writer } = await setup()
    const { inbox, runs, events } = writer.store
    const read: number[] = []
    const page: EventStore['events']['page'] = async (runId, after, limits) => {
      const found = await events.page(runId, after, limits)
      if (limits.events > 1) read.push(...found.events.map(({ seq }) => seq))
      return found
    }
    const ofMessage: EventStore['runs']['ofMessage'] = (id) => runs.ofMessage(id)
    const latest: EventStore['runs']['latest'] = (id) => runs.latest(id)
    const stage = new Stage(writer, NEVER_MS, { inbox, runs: { ofMessage, latest }, events: { page } })
    await stage.begin()
    await stage.record(outputs(12, 'x'.repeat(300_000)))
    await stage.settle('answered')
    const followed = await Promise.all([stage.all(), stage.all(), stage.all()])
    expect([followed.map((events) => events.length), read]).toEqual([[14, 14, 14], numbersFrom(1, 13)])
  })

  it('lets a follower that was idle for long continue where it was, and others not wait for it', async () => {
    const stage = await setup()
    await stage.begin()
    const [slow, fast] = [stage.follow(), stage.all()]
    const first = slow.next()
    await sleep(50)
    for (let round = 0; round < 50; round += 1) await stage.record(outputs(100))
    await stage.settle('answered')
    const whole = numbersFrom(1, 5_002)
    expect((await fast).map(({ number }) => number)).toEqual(whole)
    const beginning = (await first).value
    const rest = (await collect(slow)).flat()
    expect([...(beginning ?? []), ...rest].map(({ number }) => number)).toEqual(whole)
  })

  it('gives followers at the same place the same batch', async () => {
    const stage = await setup()
    await stage.begin()
    const [one, other] = [stage.follow(), stage.follow()]
    // What they read before both waited is not shared.
    for (let isSame = false; !isSame;) {
      const next = Promise.all([one.next(), other.next()])
      await sleep(10)
      await stage.record(outputs(1))
      const [{ value }, { value: otherValue }] = await next
      expect(value).toEqual(otherValue)
      isSame = value === otherValue
    }
  })

  it('finds what another gateway does', async () => {
    const stage = await setup(5)
    const elsewhere = new StreamHub(stage.writer.store, () => 0)
    const followed = stage.all()
    await sleep(50)
    await stage.begin()
    await stage.record(outputs(2), 'run', elsewhere)
    await stage.writer.settle('run', 'answered', ANSWER)
    expect((await followed).map(({ event }) => event.type)).toEqual(['output', 'output', 'final'])
  })

  it('continues when the store answers again', async () => {
    const { writer } = await setup()
    let isAway = false
    const { inbox, runs, events } = writer.store
    const answered = async <T>(read: () => Promise<T>): Promise<T> => {
      if (isAway) throw new Error('The store is away')
      return read()
    }
    const stage = new Stage(writer, 5, {
      inbox,
      runs: {
        ofMessage: (id) => answered(() => runs.ofMessage(id)),
        latest: (id) => answered(() => runs.latest(id)),
      },
      events: { page: (...range) => answered(() => events.page(...range)) },
    })
    await stage.begin()
    const followed = stage.all()
    await sleep(50)
    isAway = true
    await stage.record(outputs(3))
    await sleep(50)
    isAway = false
    await stage.settle('answered')
    expect((await followed).map(({ number }) => number)).toEqual([1, 2, 3, 4, 5])
  })

  it('ends at the signal', async () => {
    const { hub, writer } = await setup()
    const leave = new AbortController()
    const next = hub.follow(writer.messageId, 0, leave.signal).next()
    await sleep(20)
    leave.abort()
    expect(await next).toEqual({ done: true, value: undefined })
  })

  it('refuses a message that is not there', async () => {
    const { hub } = await setup()
    const next = hub.follow('nowhere', 0, new AbortController().signal).next()
    await expect(next).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('the numbers of a message', () => {
  it('continue from run to run, and the end of an earlier one is a notice', async () => {
    const stage = await setup()
    const failure = { reason: 'rate_limit' as const, message: 'Too many requests', report: '' }
    await stage.begin('first')
    await stage.record(outputs(1), 'first')
    await stage.settle('retry', { isError: true, durationMs: 1, failure }, 'first')
    await stage.begin('second')
    await stage.settle('answered', ANSWER, 'second')
    const content = 'This attempt ended (rate_limit: Too many requests). Another one follows.'
    const final = { type: 'final', status: 'answered', exitCode: 0, durationMs: 7, sessionId: 'session' }
    expect(await stage.all()).toEqual([
      { number: 1, event: outputs(1)[0] },
      { number: 2, event: { type: 'notice', content, timestamp: 0 } },
      { number: 3, event: { type: 'complete', result: ANSWER, timestamp: 0 } },
      { number: 4, event: { ...final, backend: 'claude', timestamp: expect.any(Number) } },
    ])
  })

  it('leave out what a gateway wrote after another had taken over', async () => {
    const stage = await setup()
    await stage.begin('first')
    await stage.record(outputs(2, 'first'), 'first')
    await stage.begin('second')
    await stage.record(outputs(1, 'too late'), 'first')
    await stage.record(outputs(1, 'second'), 'second')
    await stage.settle('answered', ANSWER, 'second')
    const events = (await stage.all()).map(({ event }) => (event.type === 'output' ? event.content : event.type))
    expect(events).toEqual(['first 0', 'first 1', 'second 0', 'complete', 'final'])
  })

  it('continue after the end of a message that is retried, and that end is a notice', async () => {
    const stage = await setup()
    const failure = { reason: 'exit' as const, message: 'It broke', report: '' }
    await stage.begin('first')
    await stage.settle('failed', { isError: true, durationMs: 1, failure }, 'first')
    const before = await stage.all()
    await stage.writer.retry()
    const resumed = stage.all(2)
    await stage.begin('second')
    await stage.record(outputs(1), 'second')
    await stage.settle('answered', ANSWER, 'second')
    const kindsOf = (events: NumberedEvent[]): string[] => events.map(({ number, event }) => `${number} ${event.type}`)
    expect([kindsOf(before), kindsOf(await resumed), kindsOf(await stage.all())]).toEqual([
      ['1 complete', '2 final'],
      ['3 output', '4 complete', '5 final'],
      ['1 notice', '2 notice', '3 output', '4 complete', '5 final'],
    ])
  })

  it('continue after each end of a message that nobody could work on, however often it is retried', async () => {
    const stage = await setup()
    const kinds: string[][] = []
    for (const after of [0, 1, 2]) {
      if (after > 0) await stage.writer.retry()
      await stage.writer.claim()
      await stage.writer.fail()
      const over = await stage.hub.isOver(stage.writer.messageId, after + 1)
      kinds.push([...(await stage.all(after)).map(({ number, event }) => `${number} ${event.type}`), String(over)])
    }
    kinds.push((await stage.all()).map(({ number, event }) => `${number} ${event.type}`))
    expect(kinds).toEqual([
      ['1 final', 'true'],
      ['2 final', 'true'],
      ['3 final', 'true'],
      ['1 notice', '2 notice', '3 final'],
    ])
  })

  it('hold the end of a run back until it is the end of the message', async () => {
    const stage = await setup()
    await stage.begin()
    await stage.record([...outputs(1), { type: 'complete', result: ANSWER, timestamp: 0 }])
    const stream = stage.follow()
    const first = await stream.next()
    const second = stream.next()
    await sleep(50)
    await stage.writer.settle('run', 'answered', ANSWER)
    stage.hub.settled(stage.writer.messageId)
    const numbers = [first, await second].map(({ value }) => value?.map(({ number }) => number))
    expect(numbers).toEqual([[1], [2, 3]])
  })

  it('are a single one if nobody worked on a message', async () => {
    const stage = await setup()
    await stage.writer.drop()
    const error = 'It was removed from the queue before it was finished.'
    const event = { type: 'final', status: 'dropped', exitCode: 1, durationMs: 0, timestamp: expect.any(Number), error }
    expect(await stage.all()).toEqual([{ number: 1, event }])
  })

  it('never say 0 for the exit of what failed, and say why it did', async () => {
    const stage = await setup()
    await stage.begin()
    await stage.settle('failed', { isError: true, durationMs: 3, exitCode: 0 })
    const final = { type: 'final', status: 'failed', exitCode: 1, durationMs: 3, backend: 'claude' }
    const about = { timestamp: expect.any(Number), error: 'exit: It broke.' }
    expect((await stage.all(1))[0]?.event).toEqual({ ...final, ...about })
  })
})

describe('a number that is not of any event', () => {
  it('gives nothing when the message has ended', async () => {
    const stage = await setup()
    await stage.begin()
    await stage.settle('answered')
    expect(await Promise.all([stage.all(2), stage.all(99)])).toEqual([[], []])
  })

  it('delivers what comes after it later', async () => {
    const stage = await setup()
    await stage.begin()
    const followed = stage.all(3)
    await sleep(50)
    for (let round = 0; round < 5; round += 1) await stage.record(outputs(1))
    await stage.settle('answered')
    expect((await followed).map(({ number }) => number)).toEqual([4, 5, 6, 7])
  })

  it('is distinguished from one after which something comes', async () => {
    const stage = await setup()
    const isOver = (after: number): Promise<boolean> => stage.hub.isOver(stage.writer.messageId, after)
    await stage.begin()
    await stage.record(outputs(1))
    const whileOpen = await isOver(9)
    await stage.settle('answered')
    expect([whileOpen, await isOver(0), await isOver(2), await isOver(3)]).toEqual([false, false, false, true])
  })
})
