import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AgentEvent, AgentEventBody } from '../../src/backends/types.js'
import { EventRecorder, type WriteEvents } from '../../src/turns/record.js'
import type { RecordedEvent } from '../../src/store/events.js'
import type { Store } from '../../src/store/store.js'
import { describeEngines, openTestStore } from '../kit/engines.js'
import { recordingLog, SILENT_LOG } from '../kit/log.js'

const output = (content: string): AgentEvent => ({ type: 'output', content, stream: 'stdout', timestamp: 1 })
const notice = (content: string): AgentEvent => ({ type: 'notice', content, timestamp: 1 })

/** Stores what is recorded, and fails as often as told. */
class Writer {
  readonly writes: RecordedEvent[][] = []
  failures = 0
  isLost = false
  begun = 0
  isReleased: Promise<void> = Promise.resolve()
  isSafe: Promise<void> = Promise.resolve()

  readonly write: WriteEvents = async (events, onCommitted) => {
    this.begun += 1
    await this.isReleased
    if (this.failures > 0) {
      this.failures -= 1
      throw new Error('The disk is full')
    }
    if (!this.isLost) this.writes.push(events)
    onCommitted()
    await this.isSafe
    return !this.isLost
  }
}

function setup() {
  const writer = new Writer()
  const shown: RecordedEvent[] = []
  const passedOn: RecordedEvent[] = []
  const log = recordingLog()
  const listener = {
    onShown: (events: RecordedEvent[]) => shown.push(...events),
    onRecorded: (events: RecordedEvent[]) => passedOn.push(...events),
  }
  const recorder = new EventRecorder('r1', writer.write, listener, log)
  onTestFinished(() => recorder.close())
  return { writer, shown, passedOn, warnings: log.warned, recorder }
}

/** After it, all pending promises have settled, but no timer has fired. */
async function allButTimers(): Promise<void> {
  for (let step = 0; step < 20; step += 1) await Promise.resolve()
}

describe('EventRecorder', () => {
  it('writes the first event at once and those soon after it together, with joined text', async () => {
    const { writer, passedOn, recorder } = setup()
    for (const event of [output('a'), output('b'), output('c'), notice('n'), output('d')]) recorder.push(event)
    await expect.poll(() => passedOn.length).toEqual(3)
    recorder.push(output('e'))
    recorder.push(output('f'))
    await expect.poll(() => passedOn.length).toEqual(4)
    expect([writer.writes.flat(), passedOn]).toEqual([
      passedOn,
      [
        { seq: 1, event: output('abc') },
        { seq: 2, event: notice('n') },
        { seq: 3, event: output('d') },
        { seq: 4, event: output('ef') },
      ],
    ])
  })

  it('writes the start of the agent together with its first text', async () => {
    const { writer, passedOn, recorder } = setup()
    const started: AgentEvent = { type: 'started', sessionId: 's1', timestamp: 1 }
    recorder.push(started)
    await allButTimers()
    recorder.push(output('a'))
    await expect.poll(() => passedOn.length).toBe(2)
    const silent = setup()
    silent.recorder.push(started)
    await expect.poll(() => silent.passedOn.length).toBe(1)
    expect([writer.writes, silent.writer.writes]).toEqual([
      [
        [
          { seq: 1, event: started },
          { seq: 2, event: output('a') },
        ],
      ],
      [[{ seq: 1, event: started }]],
    ])
  })

  it('shows the first words at once, also right after it was written that the agent has begun', async () => {
    const { shown, recorder } = setup()
    recorder.push({ type: 'started', sessionId: 's1', timestamp: 1 })
    await recorder.flush()
    recorder.push(output('a'))
    await allButTimers()
    expect(shown.at(-1)).toEqual({ seq: 2, event: output('a') })
  })

  it('waits longer and longer while more comes in every pause, and not at all after a quiet one', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { writer, recorder } = setup()
    const writtenAt: number[] = []
    const startedAt = performance.now()
    const tick = async (): Promise<void> => {
      await allButTimers()
      if (writer.writes.length > writtenAt.length) writtenAt.push(performance.now() - startedAt)
      await vi.advanceTimersByTimeAsync(1)
    }
    for (let ms = 0; ms < 200; ms += 1) {
      recorder.push(output('a'))
      await tick()
    }
    for (let ms = 0; ms < 200; ms += 1) await tick()
    for (let ms = 0; ms < 30; ms += 1) {
      recorder.push(output('b'))
      await tick()
    }
    expect(writtenAt).toEqual([0, 15, 45, 95, 145, 195, 245, 400, 415])
  })

  it('does not change its arguments', () => {
    const { recorder } = setup()
    const [first, second] = [output('a'), output('b')]
    for (const event of [first, first, second]) recorder.push(event)
    expect([first, second]).toEqual([output('a'), output('b')])
  })

  it('writes together what comes during a write, and never two at once', async () => {
    const { writer, passedOn, recorder } = setup()
    let release = (): void => {}
    writer.isReleased = new Promise((resolve) => {
      release = resolve
    })
    recorder.push(notice('one'))
    await expect.poll(() => writer.begun).toBe(1)
    recorder.push(output('a'))
    await nextTurn()
    recorder.push(output('b'))
    await nextTurn()
    const begunMeanwhile = writer.begun
    release()
    await expect.poll(() => passedOn.length).toBe(2)
    expect([begunMeanwhile, writer.writes]).toEqual([
      1,
      [[{ seq: 1, event: notice('one') }], [{ seq: 2, event: output('ab') }]],
    ])
  })

  it('lets the end be written before earlier events are on disk, and passes neither on until then', async () => {
    const { writer, passedOn, recorder } = setup()
    let release = (): void => {}
    writer.isSafe = new Promise((resolve) => {
      release = resolve
    })
    recorder.push(notice('one'))
    await expect.poll(() => writer.writes.length).toBe(1)
    writer.isSafe = Promise.resolve()
    recorder.push(notice('two'))
    recorder.close()
    const flushed = recorder.flush()
    await expect.poll(() => writer.writes.length).toBe(2)
    await allButTimers()
    const early = [...passedOn]
    release()
    await flushed
    const all = [
      { seq: 1, event: notice('one') },
      { seq: 2, event: notice('two') },
    ]
    expect([early, passedOn, writer.writes.flat()]).toEqual([[], all, all])
  })

  it('does not rewrite what was committed, even if it could not be flushed', async () => {
    const { writer, recorder } = setup()
    writer.isSafe = Promise.reject(new Error('The disk is broken'))
    recorder.push(notice('one'))
    await expect(recorder.flush()).rejects.toThrow('The disk is broken')
    writer.isSafe = Promise.resolve()
    recorder.push(notice('two'))
    await recorder.flush()
    expect(writer.writes.flat()).toEqual([
      { seq: 1, event: notice('one') },
      { seq: 2, event: notice('two') },
    ])
  })

  it('joins no more text than one event should hold', async () => {
    const { passedOn, recorder } = setup()
    const text = 'x'.repeat(30_000)
    for (const event of [output(text), output(text), output(text), output('y')]) recorder.push(event)
    await recorder.flush()
    expect(passedOn.map(({ event }) => event)).toEqual([output(text + text), output(`${text}y`)])
  })

  it('does not join events with more than text', async () => {
    const { passedOn, recorder } = setup()
    const marked: AgentEvent = { ...output('b'), metadata: { agent: 'helper' } }
    for (const event of [output('a'), marked, output('c')]) recorder.push(event)
    await recorder.flush()
    expect(passedOn.map(({ event }) => event)).toEqual([output('a'), marked, output('c')])
  })

  it('has written everything when a flush settles, even after it was closed', async () => {
    const { passedOn, recorder } = setup()
    recorder.push(notice('one'))
    recorder.push(notice('two'))
    recorder.close()
    await recorder.flush()
    expect(passedOn).toEqual([
      { seq: 1, event: notice('one') },
      { seq: 2, event: notice('two') },
    ])
  })

  it('retries, loses nothing and warns once', async () => {
    const { writer, passedOn, warnings, recorder } = setup()
    writer.failures = 3
    recorder.push(notice('one'))
    recorder.push(notice('two'))
    await expect.poll(() => passedOn.length).toEqual(2)
    expect([passedOn.map(({ seq }) => seq), warnings]).toEqual([[1, 2], ['events.not-written']])
  })

  it('shows an event before it is written, once, however often that fails', async () => {
    const { writer, shown, passedOn, recorder } = setup()
    writer.failures = 2
    recorder.push(output('a'))
    await expect(recorder.flush()).rejects.toThrow('The disk is full')
    const early = [[...shown], [...passedOn]]
    recorder.push(output('b'))
    await recorder.flush()
    const all = [
      { seq: 1, event: output('a') },
      { seq: 2, event: output('b') },
    ]
    expect([early, shown, passedOn]).toEqual([[[{ seq: 1, event: output('a') }], []], all, all])
  })

  it('lets a caller write the rest together with its own data', async () => {
    const { writer, passedOn, recorder } = setup()
    const started: AgentEvent = { type: 'started', timestamp: 1 }
    const left: RecordedEvent[][] = []
    const write: WriteEvents = async (events) => left.push(events) > 0
    recorder.push(started)
    await recorder.flush(write)
    await recorder.flush(write)
    const events = [{ seq: 1, event: started }]
    expect([writer.writes, left, passedOn]).toEqual([[], [events, []], events])
  })

  it.each([
    ['many', Array.from({ length: 2_500 }, (_, index) => notice(String(index))), [1_000, 1_000, 500]],
    ['long', Array.from({ length: 5 }, () => notice('x'.repeat(400_000))), [2, 2, 1]],
    ['too long', Array.from({ length: 2 }, () => notice('x'.repeat(2_000_000))), [1, 1]],
  ])('writes %s events in pieces, and lets others have their turn in between', async (_what, pushed, pieces) => {
    const { writer, shown, passedOn, recorder } = setup()
    const last: RecordedEvent[][] = []
    const seen: number[] = []
    recorder.close()
    for (const event of pushed) recorder.push(event)
    const flushed = recorder.flush(async (events, onCommitted) => {
      last.push(events)
      return writer.write(events, onCommitted)
    })
    while (passedOn.length < pushed.length) {
      await nextTurn()
      seen.push(writer.writes.length)
    }
    await flushed
    const numbered = pushed.map((event, index) => ({ seq: index + 1, event }))
    expect([writer.writes.map(({ length }) => length), last.length]).toEqual([pieces, 1])
    expect(new Set(seen)).toEqual(new Set(pieces.map((_, index) => index + 1)))
    expect([writer.writes.flat(), shown, passedOn]).toEqual([numbered, numbered, numbered])
    expect(last[0]).toBe(writer.writes.at(-1))
  })

  it('passes only the end on of a run that has gone to somebody else', async () => {
    const { writer, passedOn, recorder } = setup()
    recorder.push(notice('one'))
    await recorder.flush()
    writer.isLost = true
    const end: AgentEvent = { type: 'complete', result: { isError: false, durationMs: 1 }, timestamp: 1 }
    for (const event of [notice('two'), end]) recorder.push(event)
    await recorder.flush()
    expect([writer.writes.flat(), passedOn]).toEqual([
      [{ seq: 1, event: notice('one') }],
      [
        { seq: 1, event: notice('one') },
        { seq: 3, event: end },
      ],
    ])
  })

  it('numbers without gaps and loses no text, whatever fails when', async () => {
    const anyEvent: fc.Arbitrary<AgentEventBody> = fc.oneof(
      fc.record({ type: fc.constant('output'), content: fc.string(), stream: fc.constant('stdout') }),
      fc.record({ type: fc.constant('thinking'), content: fc.string() }),
      fc.record({ type: fc.constant('notice'), content: fc.string() }),
    )
    const anyStep = fc.oneof(anyEvent, fc.constant('flush' as const), fc.constant('fail' as const))
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 30 }), async (steps) => {
        const { writer, shown, passedOn, recorder } = setup()
        for (const step of steps) {
          if (step === 'fail') writer.failures = 1
          else if (step === 'flush') await recorder.flush().catch(() => {})
          else recorder.push({ ...step, timestamp: 1 })
        }
        recorder.close()
        writer.failures = 0
        await recorder.flush()
        const pushed = steps.flatMap((step) => (typeof step === 'string' ? [] : [step]))
        expect({
          shown,
          stored: writer.writes.flat(),
          numbers: passedOn.map(({ seq }) => seq),
          text: textOf(passedOn.map(({ event }) => event)),
        }).toEqual({
          shown: passedOn,
          stored: passedOn,
          numbers: passedOn.map((_, index) => index + 1),
          text: textOf(pushed),
        })
      }),
      { numRuns: 200 },
    )
  })
})

/** The text of each kind; where one event ends and the next begins does not matter. */
function textOf(events: AgentEventBody[]): Record<string, string> {
  const text: Record<string, string> = { output: '', thinking: '', notice: '' }
  for (const event of events) if ('content' in event) text[event.type] += event.content
  return text
}

describeEngines('Events', ({ createLocation }) => {
  it('are stored once if it was unknown that they had been written', async () => {
    const store = await openTestStore(await createLocation())
    const runId = await beginRun(store)
    let failures = 1
    const write: WriteEvents = async (events) => {
      const isOurs = await store.events.record(runId, events)
      if (failures > 0) throw new Error(`The connection was lost, ${(failures -= 1)} more times`)
      return isOurs
    }
    const log = SILENT_LOG
    const recorder = new EventRecorder(runId, write, { onShown() {}, onRecorded() {} }, log)
    recorder.push(notice('one'))
    recorder.push(output('a'))
    await expect(recorder.flush().catch(() => recorder.flush())).resolves.toBeUndefined()
    recorder.push(output('b'))
    recorder.close()
    await recorder.flush()
    expect(await store.events.list(runId)).toEqual([
      { seq: 1, event: notice('one') },
      { seq: 2, event: output('a') },
      { seq: 3, event: output('b') },
    ])
  })
})

async function beginRun(store: Store): Promise<string> {
  const { id: conversationId, seq } = await store.conversations.enter({ channel: 'test', address: 'a' }, 'c1', 1)
  const message = { id: 'm1', conversationId, channel: 'test', platformId: 'p1', seq, author: 'ann', text: 'hello' }
  await store.inbox.add({ ...message, kind: 'message' }, 'open', null, 1)
  await store.runs.begin({ id: 'r1', messageId: 'm1', conversationId, gatewayId: 'g1', backend: 'claude' }, 1)
  return 'r1'
}
