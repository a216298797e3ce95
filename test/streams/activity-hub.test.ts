import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AgentEvent, AgentResult } from '../../src/backends/types.js'
import { type Activity, ActivityHub, type WatchOptions } from '../../src/streams/activity-hub.js'
import { Funnel } from '../../src/streams/funnel.js'
import { StreamHub } from '../../src/streams/stream-hub.js'
import type { Store } from '../../src/store/store.js'
import { describeEngines } from '../kit/engines.js'
import { createQueueWriter } from './queue-writer.js'
import { until } from '../kit/waiting.js'

const RESULT = { isError: false, durationMs: 1 } as AgentResult
/** Later than the queue's own times. */
const NOW = 2_000

describeEngines('whoever watches', (engine) => {
  it('learns everything that other gateways do, only by polling', async () => {
    const store = await engine.createStore()
    const writer = await createQueueWriter(store)
    const { told } = watch(store)
    await until(() => told.length === 1)
    expect(told[0]).toMatchObject({ type: 'snapshot', conversations: [{ state: 'waiting' }] })
    await writer.claim()
    await writer.begin('run-1')
    await writer.record('run-1', [1, 2].map(output))
    await until(() => numbersOf(told).length === 2)
    await writer.record('run-1', [3].map(output))
    await writer.settle('run-1', 'answered', RESULT)
    await until(() => numbersOf(told).length === 4)
    await until(() => told.some((next) => next.type === 'conversation' && next.conversation.state === 'idle'))
    expect(numbersOf(told)).toEqual([1, 2, 3, 4])
  })

  it('learns where the events of a run continue, and gets no event twice', async () => {
    const store = await engine.createStore()
    const writer = await createQueueWriter(store)
    await writer.claim()
    await writer.begin('run-1')
    await writer.record('run-1', [1, 2].map(output))
    const first = watch(store)
    await until(() => first.told.length > 0)
    const second = watch(store, new Map([[writer.messageId, 1]]))
    await until(() => numbersOf(second.told).length === 1)
    await writer.record('run-1', [3].map(output))
    await writer.settle('run-1', 'failed', RESULT)
    await until(() => [first, second].every(({ told }) => numbersOf(told).includes(4)))
    await writer.retry()
    await writer.claim()
    await writer.begin('run-2')
    await writer.record('run-2', [1].map(output))
    await until(() => [first, second].every(({ told }) => numbersOf(told).includes(5)))
    expect([positionsOf(first.told), numbersOf(first.told).slice(0, 2)]).toEqual([[[writer.messageId, 2]], [3, 4]])
    expect([positionsOf(second.told), numbersOf(second.told).slice(0, 3)]).toEqual([[[writer.messageId, 1]], [2, 3, 4]])
  })

  it('learns that a conversation is gone, if they could see it', async () => {
    const store = await engine.createStore()
    const gone = { id: 'a', channel: 'chat', address: 'a', isPrivate: false }
    const others = { id: 'b', channel: 'chat', address: 'b', isPrivate: true }
    for (const { id, channel, address } of [gone, others]) {
      await store.conversations.enter({ channel, address }, id, NOW)
    }
    const all = watch(store)
    const some = watch(store, new Map(), (conversation) => !conversation.isPrivate)
    await until(() => all.told.length > 0 && some.told.length > 0)
    for (const conversation of [others, gone]) await store.conversations.delete(conversation, Date.now())
    const deletedIn = (told: Activity[]) =>
      told.flatMap((next) => (next.type === 'deleted' ? [next.conversationId] : [])).toSorted()
    await until(() => deletedIn(all.told).length === 2 && deletedIn(some.told).length === 1)
    expect([deletedIn(all.told), deletedIn(some.told)]).toEqual([['a', 'b'], ['a']])
  })

  it('that takes its time misses nothing', async () => {
    const store = await engine.createStore()
    const writer = await createQueueWriter(store)
    await writer.claim()
    await writer.begin('run-1')
    const ending = new AbortController()
    onTestFinished(() => ending.abort())
    const hub = new ActivityHub(store, new StreamHub(store, Date.now, 5), () => NOW, 5)
    const numbers: number[] = []
    for await (const next of hub.watch({ positions: new Map(), canSee: () => true }, ending.signal)) {
      // More than is kept for followers.
      if (next.type === 'snapshot')
        await writer.record(
          'run-1',
          Array.from({ length: 3000 }, (_, i) => output(i + 1)),
        )
      if (next.type === 'events') numbers.push(...next.events.map(({ number }) => number))
      if (numbers.length >= 3000) break
    }
    expect(numbers).toEqual(Array.from({ length: 3000 }, (_, index) => index + 1))
  })

  it('is let go when it takes too long, to come back to a new snapshot', async () => {
    const store = await engine.createStore()
    await createQueueWriter(store)
    const clock = { now: NOW }
    const hub = new ActivityHub(store, new StreamHub(store, Date.now, 5), () => clock.now, 5)
    const told: string[] = []
    const options = { positions: new Map<string, number>(), canSee: () => true }
    for await (const { type } of hub.watch(options, new AbortController().signal)) {
      told.push(type)
      clock.now += 60_000
    }
    expect(told).toEqual(['snapshot'])
  })

  it('gets no more than it may see', async () => {
    const store = await engine.createStore()
    const writer = await createQueueWriter(store)
    const { told } = watch(store, new Map(), () => false)
    await writer.claim()
    await writer.begin('run-1')
    await writer.record('run-1', [1].map(output))
    await writer.settle('run-1', 'answered', RESULT)
    const other = watch(store)
    await until(() => other.told.length > 0)
    expect(told).toEqual([{ type: 'snapshot', conversations: [], positions: new Map() }])
  })

  it('is ended when it may no longer see what it follows, and gets nothing more of it', async () => {
    const store = await engine.createStore()
    const writer = await createQueueWriter(store)
    await writer.claim()
    await writer.begin('run-1')
    const hub = new ActivityHub(store, new StreamHub(store, Date.now, 5), Date.now, 5)
    const told: string[] = []
    const positions = new Map([[writer.messageId, 0]])
    const canSee = ({ projectId }: { projectId?: string }): boolean => projectId === undefined
    for await (const next of hub.watch({ positions, canSee }, new AbortController().signal)) {
      told.push(next.type)
      if (next.type !== 'snapshot') continue
      const [conversation] = next.conversations
      await store.conversations.configure(conversation?.id ?? '', { projectId: 'other' })
    }
    await writer.record('run-1', [1].map(output))
    const again = hub.watch({ positions, canSee }, new AbortController().signal)
    const { value: first } = await again.next()
    await again.return()
    expect([told, first]).toEqual([['snapshot'], { type: 'snapshot', conversations: [], positions: new Map() }])
  })

  it('continues without a gap when the store was unavailable', async () => {
    const store = await engine.createStore()
    const writer = await createQueueWriter(store)
    await writer.claim()
    await writer.begin('run-1')
    const away = { isAway: false }
    const { told } = watch(failing(store, away))
    await until(() => told.length > 0)
    await writer.record('run-1', [1].map(output))
    await until(() => numbersOf(told).length === 1)
    away.isAway = true
    await writer.record('run-1', [2, 3].map(output))
    await sleep(100)
    away.isAway = false
    await writer.settle('run-1', 'answered', RESULT)
    await until(() => numbersOf(told).includes(4))
    expect(numbersOf(told)).toEqual([1, 2, 3, 4])
  })
})

describe('sources in a funnel', () => {
  it('wait until their value is taken, and end when the loop is left', async () => {
    const made: string[] = []
    const ended: string[] = []
    const funnel = new Funnel<string>()
    const source = async function* (name: string): AsyncGenerator<string, void> {
      try {
        for (let count = 1; ; count++) {
          made.push(`${name}${count}`)
          yield `${name}${count}`
        }
      } finally {
        ended.push(name)
      }
    }
    const adding = Promise.all([funnel.add(source('a')), funnel.add(source('b'))])
    const taken: string[] = []
    for await (const value of funnel.values(new AbortController().signal)) {
      taken.push(value)
      if (taken.length === 5) break
      await sleep(1)
    }
    await adding
    expect([taken, made.length <= 8, ended.toSorted()]).toEqual([['a1', 'b1', 'a2', 'b2', 'a3'], true, ['a', 'b']])
  })
})

function watch(
  store: Store,
  positions: ReadonlyMap<string, number> = new Map(),
  canSee: WatchOptions['canSee'] = () => true,
) {
  const ending = new AbortController()
  onTestFinished(() => ending.abort())
  const hub = new ActivityHub(store, new StreamHub(store, Date.now, 5), Date.now, 5)
  const told: Activity[] = []
  void (async () => {
    const options = { positions, canSee }
    for await (const next of hub.watch(options, ending.signal)) told.push(next)
  })()
  return { told, hub }
}

/** Reads of it fail while it is away. */
function failing(store: Store, state: { isAway: boolean }): Store {
  const check = <T extends object>(table: T): T =>
    new Proxy(table, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...given: unknown[]) =>
          state.isAway ? Promise.reject(new Error('away')) : Reflect.apply(value, target, given)
      },
    })
  const { runs, events, inbox, conversationViews } = store
  return {
    ...store,
    runs: check(runs),
    events: check(events),
    inbox: check(inbox),
    conversationViews: check(conversationViews),
  }
}

function output(seq: number): { seq: number; event: AgentEvent } {
  return { seq, event: { type: 'output', content: `text ${seq}`, stream: 'stdout', timestamp: seq } }
}

function numbersOf(told: Activity[]): number[] {
  return told.flatMap((next) => (next.type === 'events' ? next.events.map(({ number }) => number) : []))
}

function positionsOf([first]: Activity[]): Array<[string, number]> {
  return first?.type === 'snapshot' ? [...first.positions] : []
}
