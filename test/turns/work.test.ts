import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AgentEvent, AgentResult, BackendEventResult } from '../../src/backends/types.js'
import type { MessageOptions, QueueMode } from '../../src/channels/types.js'
import { GatewayError } from '../../src/errors.js'
import { Queue } from '../../src/turns/queue.js'
import type { Work } from '../../src/turns/types.js'
import { type WorkerOptions } from '../../src/turns/work.js'
import { AgentRuntime, type TurnListener, type TurnOutcome } from '../../src/runtime/agent-runtime.js'
import { explainFailure } from '../../src/runtime/explain-failure.js'
import { SessionManager } from '../../src/runtime/session-manager.js'
import type { Delivery, Outbox } from '../../src/store/outbox.js'
import type { Store } from '../../src/store/store.js'
import { awaitAdmission } from '../../src/turns/plan.js'
import { openTestStore } from '../kit/engines.js'
import { failed, succeeded } from '../kit/scripted-backend.js'
import { recordingLog } from '../kit/log.js'
import { queueOn } from '../kit/queue.js'
import { createWorker } from '../kit/worker.js'

const CHANNEL = 'test'
const START = Date.UTC(2026, 0, 2, 3, 4, 5)
const SECRET = 'sk-0123456789'

/** A turn that runs until the test ends it or it is stopped. */
interface OpenTurn {
  work: Work
  runId: string
  signal: AbortSignal
  listener: TurnListener
  finish(result: AgentResult, more?: Partial<TurnOutcome>): void
}

interface SetupOptions extends Partial<WorkerOptions> {
  /** Whether turns ignore being stopped. */
  isDeaf?: boolean
  /** Whether the channel takes files. */
  canSendFiles?: boolean
  /** Whether turns prepare before they may begin. */
  preparesEarly?: boolean
  mode?: QueueMode
  wrapStore?: (store: Store) => Store
  wrapQueue?: (queue: Queue) => Queue
}

async function setup(setupOptions: SetupOptions = {}) {
  const { isDeaf = false, canSendFiles = false, preparesEarly = false, mode, ...others } = setupOptions
  const { wrapStore = same, wrapQueue = same, ...options } = others
  const plainStore = await openTestStore({ file: ':memory:' })
  const store = wrapStore(plainStore)
  const clock = { now: START }
  let ids = 0
  const now = () => clock.now
  const newId = () => `id-${(ids += 1)}`
  const { leaseMs = 30_000 } = options
  const queueOf = (gatewayId: string) =>
    queueOn(store, { gatewayId, leaseMs, now, newId, ...(mode && { config: { queueMode: mode } }) })
  const queue = queueOf('g1')
  const turns: OpenTurn[] = []
  const log = recordingLog()
  const steps: string[] = []

  const workerOf = (gatewayId = 'g1') =>
    createWorker({
      channels: [CHANNEL],
      leaseMs,
      queue: gatewayId === 'g1' ? wrapQueue(queue) : queueOf(gatewayId),
      store,
      plan: (work) => ({
        backend: 'claude',
        directory: '/srv/site',
        canSendFiles,
        run: async ({ runId }, signal, listener) => {
          if (!preparesEarly) await awaitAdmission(signal, listener)
          return new Promise((resolve) => {
            const finish: OpenTurn['finish'] = (result, more) => resolve({ result, notes: [], ...more })
            if (!isDeaf) signal.addEventListener('abort', () => finish(failed('cancelled', 'It was stopped.')))
            turns.push({ work, runId, signal, listener, finish })
          })
        },
      }),
      onStep: (step) => steps.push(step),
      scrub: (text) => text.replaceAll(SECRET, '[secret]'),
      log,
      now,
      newId,
      ...options,
    })
  const worker = workerOf()

  return {
    store: plainStore,
    clock,
    queue,
    queueOf,
    worker,
    workerOf,
    turns,
    logged: log.warned,
    steps,
    /** Accepts a message elsewhere, without notifying the worker. */
    leave: (address: string, text: string) =>
      queue.accept({ channel: CHANNEL, address, platformId: newId(), author: 'ann', text }),
    say: async (address: string, text: string) => {
      const author = 'ann'
      const { messageId } = await worker.accept({ channel: CHANNEL, address, platformId: newId(), author, text })
      return messageId
    },
    /** The turn with this number, from 1, once it has begun. */
    turn: async (number: number): Promise<OpenTurn> => {
      await expect.poll(() => turns.length).toBeGreaterThanOrEqual(number)
      const turn = turns[number - 1]
      if (!turn) throw new Error(`There is no turn ${number}`)
      return turn
    },
    idle: async () => {
      await expect.poll(() => worker.active(), { interval: 2 }).toEqual([])
    },
    replies: async () => (await plainStore.outbox.list('pending', 100)).map(({ reply }) => reply),
    waiting: async () =>
      (await plainStore.inbox.listOpen(100)).map(({ state, dueAt, failures }) => ({
        state,
        inMs: dueAt - clock.now,
        failures,
      })),
    stateOf: async (messageId: string) => (await plainStore.inbox.get(messageId))?.state,
  }
}

function same<T>(value: T): T {
  return value
}

const answer = (text: string, notes: string[] = []) => ({ text, notes, isError: false })

/** The reply to a message that has finally failed. */
const failure = (text: string, notes: string[] = []) => ({ text, notes, isError: true, canRetry: true })

describe('what an adapter answers', () => {
  const anyResult: fc.Arbitrary<BackendEventResult> = fc.record(
    { isError: fc.boolean(), responseText: fc.string(), sessionId: fc.string({ minLength: 1 }) },
    { requiredKeys: ['isError'] },
  )

  // Feature: multi-cli-backend, Property 9: EventResult mapping preserves semantics
  // Feature: multi-cli-backend, Property 10: Session ID storage after backend execution
  it('reaches the channel that asked, as an answer or as an error, and its session is kept', async () => {
    let result: BackendEventResult = { isError: false }
    const runtimes: AgentRuntime[] = []
    const { store, say, idle } = await setup({
      plan: ({ conversation, message: { text: prompt } }) => ({
        backend: 'claude',
        directory: '/srv/site',
        canSendFiles: false,
        run: async (_request, signal, listener) => {
          const event = { channelId: conversation.id, prompt, workingDir: '/srv/site' }
          const outcome = await runtimes[0]?.runTurn(event, signal, listener)
          if (!outcome) throw new Error('There is no runtime')
          // Without a retry, so that the person gets the first failure.
          return { ...outcome, isFinal: true }
        },
      }),
    })
    const adapter = { name: () => 'claude', execute: async () => result, validate: async () => true }
    const sessions = new SessionManager(store.sessions, { idleMs: 0, now: () => START })
    runtimes.push(
      new AgentRuntime(
        { idleTimeoutMs: 0, workingDir: '/srv/site' },
        adapter,
        sessions,
        { load: async () => ({ skills: [] }) },
        { assemble: () => '' },
        { fire() {} },
      ),
    )
    let count = 0
    await fc.assert(
      fc.asyncProperty(anyResult, async (answered) => {
        result = answered
        const address = `room-${(count += 1)}`
        const messageId = await say(address, 'hello')
        await idle()
        const { isError, responseText = '', sessionId } = answered
        const deliveries = (await store.outbox.list('pending', 1_000)).filter((one) => one.messageId === messageId)
        const session = await store.sessions.get(deliveries[0]?.conversationId ?? '')
        const problem = { reason: 'exit', message: responseText || 'The agent failed.', report: '' } as const
        expect({
          to: deliveries.map(({ channel, address: place }) => [channel, place]),
          replies: deliveries.map(({ reply }) => reply),
          session: session?.sessionId,
        }).toEqual({
          to: [[CHANNEL, address]],
          replies: [isError ? failure(explainFailure(problem, 'claude', START)) : answer(responseText)],
          session: sessionId,
        })
      }),
      { numRuns: 100 },
    )
  })
})

describe('a message that comes in', () => {
  it('is worked on at once, from the same step in which it is taken', async () => {
    const { waiting, say, turn, steps } = await setup()
    await say('a', 'hello')
    const states = await waiting()
    const { work } = await turn(1)
    expect([states, work.claim.fence, work.message.text, steps]).toEqual([
      [{ state: 'active', inMs: 30_000, failures: 0 }],
      1,
      'hello',
      ['claimed'],
    ])
  })

  it.each(['an answer', 'nothing but a problem'])(
    'is told to be taken before anybody hears what comes of it, which is prepared meanwhile: %s',
    async (outcome) => {
      const order: string[] = []
      const gate = new Gate()
      const { worker, turn, idle } = await setup({
        preparesEarly: true,
        wrapQueue: (queue) => gate.after(queue, 'take'),
        onEvents: () => order.push('shown'),
        replies: { claim: async () => undefined, send() {}, wake: () => order.push('replied') },
        ...(outcome !== 'an answer' && {
          plan: () => {
            throw new GatewayError('not_found', 'It is not there.')
          },
        }),
      })
      const taken = worker
        .accept({ channel: CHANNEL, address: 'a', platformId: 'p1', author: 'ann', text: 'hello' })
        .then(async (acceptance) => acceptance.status)
        .then((status) => order.push(status))
      await gate.reached()
      if (outcome === 'an answer') {
        const { listener, finish } = await turn(1)
        void listener.mayBegin?.then(() => order.push('may begin'))
        listener.onEvent({ type: 'output', content: 'Hi', stream: 'stdout', timestamp: START })
        finish(succeeded('Hi'))
      }
      for (let step = 0; step < 20; step += 1) await nextTurn()
      const before = [...order]
      gate.open()
      await taken
      await idle()
      const told = outcome === 'an answer' ? ['accepted', 'may begin', 'shown', 'replied'] : ['accepted', 'replied']
      expect([before, order]).toEqual([[], told])
    },
  )

  it('does not begin before it is accepted', async () => {
    const gate = new Gate()
    const { say, turn, turns } = await setup({ wrapQueue: (queue) => gate.after(queue, 'take') })
    const taken = say('a', 'hello')
    await gate.reached()
    for (let step = 0; step < 20; step += 1) await nextTurn()
    const begunBefore = turns.length
    gate.open()
    await taken
    expect([begunBefore, (await turn(1)).work.message.text]).toEqual([0, 'hello'])
  })

  it('is neither worked on nor reported if it could not be written to disk', async () => {
    const shown: string[] = []
    const settled: string[] = []
    const { worker, say, turn } = await setup({
      preparesEarly: true,
      onEvents: (_, runId) => shown.push(runId),
      wrapQueue: (queue) =>
        Object.assign(queue, {
          take: async (...args: Parameters<Queue['take']>) => {
            await Queue.prototype.take.apply(queue, args)
            throw new GatewayError('store_unavailable', 'The latest changes may not be on disk.')
          },
          settle: async ({ message }: Work) => {
            settled.push(message.id)
            throw new GatewayError('store_unavailable', 'The latest changes may not be on disk.')
          },
        }),
    })
    const problem = await say('a', 'hello').catch((error: GatewayError) => error.code)
    const { signal, listener, runId } = await turn(1)
    listener.onEvent({ type: 'output', content: 'Hi', stream: 'stdout', timestamp: START })
    const refusal = await listener.mayBegin?.catch((error: GatewayError) => error.code)
    await expect.poll(() => worker.active()).toEqual([])
    // The retry is shown.
    const isShown = shown.includes(runId)
    expect([problem, refusal, signal.aborted, isShown, settled]).toEqual([
      'store_unavailable',
      'store_unavailable',
      true,
      false,
      [],
    ])
  })

  it('waits while as many are worked on as may be', async () => {
    const { say, turn, waiting, turns } = await setup({ maxConcurrentQueries: 2 })
    await Promise.all([say('a', 'one'), say('b', 'two'), say('c', 'three')])
    const { finish } = await turn(2)
    const states = (await waiting()).map(({ state }) => state).toSorted()
    const countBefore = turns.length
    finish(succeeded('done'))
    await turn(3)
    expect([states, countBefore]).toEqual([['active', 'active', 'ready'], 2])
  })

  it('waits behind earlier messages that nobody works on yet', async () => {
    const { leave, say, turn } = await setup({ maxConcurrentQueries: 1 })
    await say('a', 'first')
    await leave('b', 'second')
    const third = say('c', 'third')
    ;(await turn(1)).finish(succeeded('done'))
    await third
    const { work, finish } = await turn(2)
    finish(succeeded('done'))
    await turn(3)
    expect(work.message.text).toEqual('second')
  })

  it('is left alone if another gateway serves its channel', async () => {
    const { worker, waiting } = await setup()
    await worker.accept({ channel: 'elsewhere', address: 'a', platformId: 'p1', author: 'ann', text: 'hello' })
    expect([await waiting(), worker.active()]).toEqual([[{ state: 'ready', inMs: 0, failures: 0 }], []])
  })

  it('is left for the next start while the worker stops', async () => {
    const { say, worker, waiting } = await setup()
    await worker.stop(0)
    await say('a', 'hello')
    expect(await waiting()).toEqual([{ state: 'ready', inMs: 0, failures: 0 }])
  })

  it('begins once the ended turn before it is settled', async () => {
    const gate = new Gate()
    const { say, turn, turns, worker, idle, stateOf } = await setup({
      wrapQueue: (queue) => gate.after(queue, 'settle'),
    })
    await say('a', 'one')
    const { work, finish } = await turn(1)
    finish(succeeded('done'))
    await gate.reached()
    const second = await say('a', 'two')
    await nextTurn()
    const countBefore = turns.length
    gate.open()
    await turn(2)
    const active = worker.active()
    await worker.cancel(work.claim.conversationId)
    await idle()
    expect([countBefore, active, await stateOf(second)]).toEqual([1, [work.claim.conversationId], 'cancelled'])
  })

  it.each(['cancel', 'endMessage'] as const)('can be ended by %s before its turn has begun', async (way) => {
    const gate = new Gate()
    const { say, store, worker, stateOf } = await setup({ wrapQueue: (queue) => gate.after(queue, 'take') })
    const said = say('a', 'hello')
    await gate.reached()
    const [open] = await store.inbox.listOpen(1)
    if (!open) throw new Error('There is no message')
    const ended = way === 'cancel' ? worker.cancel(open.conversationId) : worker.endMessage(open.id)
    gate.open()
    await said
    await ended
    await expect.poll(() => stateOf(open.id)).toEqual('cancelled')
  })

  it('that was known already leaves its slot to waiting messages', async () => {
    const gate = new Gate()
    const { worker, turn, say, idle } = await setup({
      maxConcurrentQueries: 1,
      pollMs: 1_000_000,
      wrapQueue: (queue) => gate.after(queue, 'take', 2),
    })
    const known = { channel: CHANNEL, address: 'a', platformId: 'p1', author: 'ann', text: 'hello' }
    await worker.accept(known)
    ;(await turn(1)).finish(succeeded('done'))
    await idle()
    const repeated = worker.accept(known)
    await gate.reached()
    await say('b', 'next')
    gate.open()
    await repeated
    expect((await turn(2)).work.message.text).toEqual('next')
  })
})

/** Holds back the result of a step of the queue until it is opened. */
class Gate {
  #reached = (): void => {}
  #open = (): void => {}
  readonly #isReached = new Promise<void>((resolve) => {
    this.#reached = resolve
  })
  readonly #isOpen = new Promise<void>((resolve) => {
    this.#open = resolve
  })

  /** On the first call, or a later one. */
  after(queue: Queue, name: 'take' | 'settle', time = 1): Queue {
    const step = queue[name].bind(queue) as (...args: unknown[]) => Promise<unknown>
    let times = 0
    return Object.assign(queue, {
      [name]: async (...args: unknown[]) => {
        const outcome = await step(...args)
        times += 1
        if (times !== time) return outcome
        this.#reached()
        await this.#isOpen
        return outcome
      },
    })
  }

  reached(): Promise<void> {
    return this.#isReached
  }

  open(): void {
    this.#open()
  }
}

describe('a turn', () => {
  it('becomes a reply with its notes, keeps the session and goes through the steps in order', async () => {
    const { store, say, turn, idle, replies, stateOf, steps } = await setup()
    const messageId = await say('a', 'hello')
    const { runId, work, listener, finish } = await turn(1)
    const { conversationId } = work.claim
    listener.onEvent({ type: 'output', content: 'hi', stream: 'stdout', timestamp: 1 })
    const session = { conversationId, backend: 'claude', sessionId: 's1', directory: '/projects/here' }
    finish(succeeded('hi'), { notes: ['A note.'], session })
    await idle()
    const run = await store.runs.get(runId)
    expect([await replies(), await stateOf(messageId), run?.state, steps]).toEqual([
      [answer('hi', ['A note.'])],
      'answered',
      'answered',
      ['claimed', 'streaming', 'finished', 'committed'],
    ])
    expect(await store.sessions.get(conversationId)).toMatchObject(session)
  })

  it('takes its reply to be sent in the step that makes it', async () => {
    const sent: Delivery[] = []
    const replies: WorkerOptions['replies'] = {
      claim: ({ outbox }) => outbox.claim('g1', [CHANNEL], START, 1_000),
      send: (delivery) => sent.push(delivery),
      wake: () => {},
    }
    const { store, say, turn, idle } = await setup({ replies })
    await say('a', 'hello')
    const { finish } = await turn(1)
    finish(succeeded('hi'))
    await idle()
    expect([
      sent.map(({ reply, attempts }) => [reply, attempts]),
      await store.outbox.claim('g2', [CHANNEL], START, 1),
    ]).toEqual([[[answer('hi'), 1]], undefined])
  })

  it('looks for its reply when another one went first, be it about the same message', async () => {
    const woken: string[] = []
    const { say, turn, idle } = await setup({
      replies: {
        claim: async () => ({ id: 'earlier', messageId: 'id-3' }) as Delivery,
        send: ({ id }) => woken.push(`sent ${id}`),
        wake: () => woken.push('woken'),
      },
    })
    await say('a', 'hello')
    const { finish } = await turn(1)
    finish(succeeded('hi'))
    await idle()
    expect(woken).toEqual(['sent earlier', 'woken'])
  })

  it('has its events shown and on record, with their numbers', async () => {
    const passedOn: unknown[] = []
    const passOn: WorkerOptions['onEvents'] = (work, runId, events) => passedOn.push([work.message.text, runId, events])
    const { store, say, turn, idle } = await setup({ onEvents: passOn, onRecorded: passOn })
    await say('a', 'hello')
    const { runId, listener, finish } = await turn(1)
    const events: AgentEvent[] = [
      { type: 'started', sessionId: 's1', timestamp: 1 },
      { type: 'output', content: 'hi', stream: 'stdout', timestamp: 2 },
      { type: 'complete', result: succeeded('hi'), timestamp: 3 },
    ]
    for (const event of events) listener.onEvent(event)
    finish(succeeded('hi'))
    await idle()
    const recorded = events.map((event, index) => ({ seq: index + 1, event }))
    expect([await store.events.list(runId), passedOn]).toEqual([
      recorded,
      [
        ['hello', runId, recorded],
        ['hello', runId, recorded],
      ],
    ])
  })

  it('keeps a new session before it has ended', async () => {
    const { store, say, turn } = await setup()
    await say('a', 'hello')
    const { work, listener } = await turn(1)
    const { conversationId } = work.claim
    await listener.keepSession({ conversationId, backend: 'claude', sessionId: 's1', directory: '/projects/here' })
    expect((await store.sessions.get(conversationId))?.sessionId).toEqual('s1')
  })

  it('does not restore a session that the person gave up in the meantime', async () => {
    const { store, clock, say, turn, idle } = await setup()
    await say('a', 'hello')
    const { work, finish } = await turn(1)
    const { conversationId } = work.claim
    clock.now += 1
    await store.sessions.reset(conversationId, clock.now)
    clock.now += 1
    const session = { conversationId, backend: 'claude', sessionId: 's1', directory: '/projects/here' }
    finish(succeeded('hi'), { session })
    await idle()
    expect(await store.sessions.get(conversationId)).toBeUndefined()
  })

  it('sends the files that its answer names if the channel takes files', async () => {
    const { say, turn, idle, replies } = await setup({ canSendFiles: true })
    await say('a', 'draw it')
    const { finish } = await turn(1)
    finish(
      succeeded(
        'Here it is.\n\nMEDIA:out/plot.png\nMEDIA: "/srv/site/two words.pdf"\nMEDIA:https://a.example/b\n\nAnything else?',
      ),
    )
    await idle()
    await say('b', 'hello')
    const other = await turn(2)
    other.finish(succeeded('No MEDIA:file here.'))
    await idle()
    const paths = ['out/plot.png', '/srv/site/two words.pdf'].map((path) => ({ path, directory: '/srv/site' }))
    const files = [...paths, { url: 'https://a.example/b' }]
    expect(await replies()).toEqual([
      { ...answer('Here it is.\n\nAnything else?'), files },
      answer('No MEDIA:file here.'),
    ])
  })

  it('keeps the lines that name files if the channel takes none', async () => {
    const { say, turn, idle, replies } = await setup()
    await say('a', 'draw it')
    const { finish } = await turn(1)
    finish(succeeded('Here it is.\n\nMEDIA:out/plot.png'))
    await idle()
    expect(await replies()).toEqual([answer('Here it is.\n\nMEDIA:out/plot.png')])
  })

  it('is on record with its agent, model and directory', async () => {
    const plan: WorkerOptions['plan'] = () => ({
      backend: 'codex',
      model: 'large',
      directory: '/projects/here',
      canSendFiles: false,
      run: async () => ({ result: succeeded('hi', { sessionId: 's1' }), notes: [] }),
    })
    const { store, say, replies } = await setup({ plan })
    await say('a', 'hello')
    await expect.poll(replies).toEqual([answer('hi')])
    const [run] = await store.runs.list(1)
    expect([run?.backend, run?.model, run?.directory, run?.sessionId]).toEqual([
      'codex',
      'large',
      '/projects/here',
      's1',
    ])
  })

  it('that cannot be planned is a dead letter, and the person reads why', async () => {
    const problem = 'The project x of this conversation is not configured any more.'
    const plan = () => {
      throw new GatewayError('not_found', problem)
    }
    const { store, say, replies } = await setup({ plan })
    const messageId = await say('a', 'hello')
    await expect.poll(async () => (await store.inbox.get(messageId))?.state).toEqual('failed')
    expect([await replies(), (await store.inbox.get(messageId))?.problem]).toEqual([[failure(problem)], problem])
  })

  it('that cannot be planned tells no secret', async () => {
    const plan = () => {
      throw new Error(`It broke at ${SECRET}.`)
    }
    const { store, say, replies } = await setup({ plan })
    const messageId = await say('a', 'hello')
    await expect.poll(async () => (await store.inbox.get(messageId))?.state).toEqual('failed')
    const text = 'It broke at [secret].'
    expect([await replies(), (await store.inbox.get(messageId))?.problem]).toEqual([[failure(text)], text])
  })

  it('that breaks counts as a failed attempt, and is tried again', async () => {
    let calls = 0
    const plan: WorkerOptions['plan'] = () => ({
      backend: 'claude',
      directory: '/srv/site',
      canSendFiles: false,
      run: async () => {
        calls += 1
        if (calls === 1) throw new Error('A bug')
        return { result: succeeded('hi'), notes: [] }
      },
    })
    const { clock, worker, say, idle, replies, waiting } = await setup({ plan })
    await say('a', 'hello')
    await expect.poll(waiting).toEqual([{ state: 'ready', inMs: 5_000, failures: 1 }])
    await idle()
    clock.now += 5_000
    worker.wake()
    await expect.poll(replies).toEqual([answer('hi')])
  })
})

describe('a turn that must not begin', () => {
  it('is over when its message was cancelled before, and the next one comes', async () => {
    let cancel = async (_messageId: string): Promise<void> => {}
    const wrapStore = (store: Store): Store => {
      cancel = (messageId) => store.jobs.requestCancel(messageId)
      return store
    }
    const { queue, worker, turns, turn, idle, stateOf, say } = await setup({ wrapStore })
    const about = { channel: CHANNEL, address: 'a', platformId: 'first', author: 'ann' }
    const { messageId: first } = await queue.accept({ ...about, text: 'one' })
    await cancel(first)
    const second = await say('a', 'two')
    const { work, finish } = await turn(1)
    finish(succeeded('hi'))
    await idle()
    worker.wake()
    expect([await stateOf(first), await stateOf(second), work.message.id, turns.length]).toEqual([
      'cancelled',
      'answered',
      second,
      1,
    ])
  })

  it('is given back when the gateway slept past its lease while the turn was prepared', async () => {
    let sleepMs = 30_000
    const { clock, say, turn, idle, replies } = await setup({
      preparesEarly: true,
      onStep: (step) => {
        if (step !== 'claimed') return
        clock.now += sleepMs
        sleepMs = 0
      },
    })
    await say('a', 'hello')
    const { listener, signal } = await turn(1)
    const isRefused = await listener.mayBegin?.then(
      () => false,
      () => true,
    )
    const { work, finish } = await turn(2)
    finish(succeeded('hi'))
    await idle()
    expect([isRefused, signal.aborted, work.claim.interruptions, await replies()]).toEqual([
      true,
      true,
      0,
      [answer('hi')],
    ])
  })

  it.each(['claim', 'take'] as const)(
    'is given back when the gateway slept past its lease right after its %s',
    async (name) => {
      const { clock, worker, leave, say, turn, turns, idle, replies } = await setup({
        wrapQueue: (queue) => {
          let hasSlept = false
          const sleep = (): void => {
            if (!hasSlept) clock.now += 30_000
            hasSlept = true
          }
          const [take, claim] = [queue.take.bind(queue), queue.claim.bind(queue)]
          const sleeping: Pick<Queue, 'take' | 'claim'> = {
            take: (incoming, options, runOf, onTaken) =>
              take(incoming, options, runOf, (taken) => {
                sleep()
                onTaken?.(taken)
              }),
            claim: async (...args) => {
              const work = await claim(...args)
              if (work) sleep()
              return work
            },
          }
          return Object.assign(queue, { [name]: sleeping[name] })
        },
      })
      if (name === 'take') await say('a', 'hello')
      else await leave('a', 'hello').then(() => worker.wake())
      const { work, finish } = await turn(1)
      finish(succeeded('hi'))
      await idle()
      expect([turns.length, work.claim.fence, await replies()]).toEqual([1, 3, [answer('hi')]])
    },
  )

  it('does not begin a second time if the whole gateway slept past its own lease', async () => {
    const { clock, worker, say, turn, turns, idle, replies } = await setup()
    await say('a', 'hello')
    const { finish } = await turn(1)
    clock.now += 3_600_000
    worker.wake()
    await say('b', 'elsewhere')
    const other = await turn(2)
    finish(succeeded('hi'))
    other.finish(succeeded('there'))
    await idle()
    expect([turns.map(({ work }) => work.message.text), await replies()]).toEqual([
      ['hello', 'elsewhere'],
      [answer('hi'), answer('there')],
    ])
  })
})

describe('a worker for one conversation', () => {
  it('leaves the others to a gateway that keeps running', async () => {
    const { say, turn, turns, idle, waiting } = await setup({ address: 'b' })
    await say('a', 'one')
    await say('b', 'two')
    const { finish } = await turn(1)
    finish(succeeded('hi'))
    await idle()
    expect([turns.map(({ work }) => work.message.text), (await waiting()).map(({ state }) => state)]).toEqual([
      ['two'],
      ['ready'],
    ])
  })
})

describe('several turns', () => {
  it('run at once in different conversations, up to the limit', async () => {
    const { worker, queue, say, turn, turns, idle, replies } = await setup({ maxConcurrentQueries: 3 })
    for (const address of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await say(address, address)
    await turn(3)
    const most: number[] = []
    for (let number = 1; number <= 7; number += 1) {
      const { work, finish } = await turn(number)
      most.push(worker.active().length)
      finish(succeeded(work.message.text))
    }
    await idle()
    expect([Math.max(...most), turns.length, (await replies()).length, await queue.claim([CHANNEL])]).toEqual([
      3,
      7,
      7,
      undefined,
    ])
  })

  it('run one after the other and in order within a conversation, whoever ends first elsewhere', async () => {
    const { say, turn, turns, idle, replies } = await setup()
    for (const [address, text] of [
      ['a', 'a1'],
      ['a', 'a2'],
      ['b', 'b1'],
      ['a', 'a3'],
    ] as const)
      await say(address, text)
    const seen: string[][] = []
    const begun = () => turns.map(({ work }) => work.message.text)
    const end = async (number: number) => {
      const { work, finish } = await turn(number)
      seen.push(begun())
      finish(succeeded(`to ${work.message.text}`))
    }
    await turn(2)
    await end(2)
    await end(1)
    await end(3)
    await end(4)
    await idle()
    expect([seen, await replies()]).toEqual([
      [
        ['a1', 'b1'],
        ['a1', 'b1'],
        ['a1', 'b1', 'a2'],
        ['a1', 'b1', 'a2', 'a3'],
      ],
      expect.arrayContaining([answer('to b1'), answer('to a1'), answer('to a2'), answer('to a3')]),
    ])
  })
})

describe('a turn that fails', () => {
  it('for a while is tried again after 5, 10 and 20 s, and is then a dead letter with a reply', async () => {
    const { store, clock, worker, queue, say, turn, idle, replies, waiting, stateOf } = await setup()
    const messageId = await say('a', 'hello')
    const waits = []
    const replyCounts = []
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const { finish } = await turn(attempt)
      finish(failed('exit', 'Overloaded'))
      await idle()
      const [job] = await waiting()
      waits.push(job)
      replyCounts.push((await replies()).length)
      clock.now += (job?.inMs ?? 0) - 1
      expect(await queue.claim([CHANNEL])).toBeUndefined()
      clock.now += 1
      worker.wake()
    }
    const last = await turn(4)
    last.finish(failed('exit', 'Overloaded'))
    await idle()
    expect({
      waits,
      replyCounts,
      replies: await replies(),
      waiting: await waiting(),
      state: await stateOf(messageId),
      deadLetters: (await store.inbox.listFailed(10)).map(({ id, problem }) => ({ id, problem })),
    }).toEqual({
      waits: [
        { state: 'ready', inMs: 5_000, failures: 1 },
        { state: 'ready', inMs: 10_000, failures: 2 },
        { state: 'ready', inMs: 20_000, failures: 3 },
      ],
      replyCounts: [0, 0, 0],
      replies: [failure(explainFailure({ reason: 'exit', message: 'Overloaded', report: '' }, 'claude', START))],
      waiting: [],
      state: 'failed',
      deadLetters: [{ id: messageId, problem: 'exit: Overloaded' }],
    })
  })

  it('for good is a dead letter at once, and the next message comes', async () => {
    const { say, turn, idle, replies, stateOf } = await setup()
    const messageId = await say('a', 'hello')
    await say('a', 'again')
    const first = await turn(1)
    first.finish(failed('auth', 'Not logged in'), { notes: ['A note.'] })
    const second = await turn(2)
    second.finish(succeeded('hi'))
    await idle()
    const text = explainFailure({ reason: 'auth', message: 'Not logged in', report: '' }, 'claude', START)
    expect([await stateOf(messageId), await replies()]).toEqual(['failed', [failure(text, ['A note.']), answer('hi')]])
  })

  it('by a limit again and again is a dead letter that says until when', async () => {
    const { clock, worker, say, turn, idle, replies, waiting } = await setup()
    await say('a', 'hello')
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      const { finish } = await turn(attempt)
      finish(failed('rate_limit', 'Slow down', clock.now + 59_000))
      await idle()
      clock.now += (await waiting())[0]?.inMs ?? 0
      worker.wake()
    }
    const text =
      'claude has reached its usage limit. Try again in 59 s, or choose another agent ' +
      'with /backend.\n\nIt said: Slow down'
    expect([clock.now - START, await replies()]).toEqual([3 * 59_000, [failure(text)]])
  })

  it('keeps the next message of its conversation waiting while it waits itself', async () => {
    const { queue, say, turn, idle, waiting } = await setup()
    await say('a', 'one')
    await say('a', 'two')
    const { finish } = await turn(1)
    finish(failed('exit'))
    await idle()
    expect([(await waiting()).map(({ state }) => state), await queue.claim([CHANNEL])]).toEqual([
      ['ready', 'queued'],
      undefined,
    ])
  })

  it('by a limit with a time waits for that, says so once and counts no attempt', async () => {
    const { clock, worker, say, turn, idle, replies, waiting } = await setup()
    await say('a', 'hello')
    const limited = await turn(1)
    limited.finish(failed('rate_limit', 'Limit reached', START + 3_600_000))
    await idle()
    const wait = await waiting()
    worker.wake()
    clock.now += 3_605_000
    worker.wake()
    const answered = await turn(2)
    answered.finish(succeeded('hi'))
    await idle()
    const note = 'claude has reached its usage limit. Your message is waiting and will be retried at 04:04 UTC.'
    expect([wait, answered.work.claim.failures, await replies()]).toEqual([
      [{ state: 'ready', inMs: 3_605_000, failures: 0 }],
      0,
      [{ ...answer(note), waitsUntil: START + 3_605_000 }, answer('hi')],
    ])
  })
})

describe('a lease', () => {
  it('is kept while the turn runs', async () => {
    const { clock, queueOf, say, turn, waiting } = await setup({ leaseMs: 60 })
    await say('a', 'hello')
    await turn(1)
    const other = queueOf('g2')
    const theirs: unknown[] = []
    for (let round = 0; round < 3; round += 1) {
      clock.now += 59
      theirs.push(await other.claim([CHANNEL]))
      await expect.poll(waiting).toEqual([{ state: 'active', inMs: 60, failures: 0 }])
    }
    expect(theirs).toEqual([undefined, undefined, undefined])
  })

  it.each([
    ['stops', false],
    ['answers all the same', true],
  ])('that went to another gateway ends the turn, which writes nothing even if it %s', async (_, isDeaf) => {
    const cancelled: Work[] = []
    const { store, clock, queueOf, say, turn, idle, replies, stateOf } = await setup({
      leaseMs: 60,
      isDeaf,
      onCancelled: (work) => cancelled.push(work),
    })
    const messageId = await say('a', 'hello')
    const { signal, runId, work, finish } = await turn(1)
    const other = queueOf('g2')
    let theirs: Work | undefined
    await expect
      .poll(async () => {
        clock.now += 61
        return (theirs = await other.claim([CHANNEL]))
      })
      .toBeDefined()
    await expect.poll(() => signal.aborted).toEqual(true)
    const { conversationId } = work.claim
    const session = { conversationId, backend: 'claude', sessionId: 's1', directory: '/projects/here' }
    finish(succeeded('too late'), { session })
    await idle()
    expect({
      replies: await replies(),
      message: await stateOf(messageId),
      run: (await store.runs.get(runId))?.state,
      session: await store.sessions.get(conversationId),
      theirs: theirs && (await other.renew(theirs)),
      wasInterrupted: theirs?.wasInterrupted,
      cancelled,
    }).toEqual({
      replies: [],
      message: 'open',
      run: 'interrupted',
      session: undefined,
      theirs: 'held',
      wasInterrupted: true,
      cancelled: [],
    })
  })

  it('that went to another gateway ends the display of the turn here', async () => {
    const shown: string[] = []
    const { store, clock, queueOf, say, turn, idle } = await setup({
      leaseMs: 60,
      onEvents: (_work, _runId, events) => {
        shown.push(...events.map(({ event }) => event.type))
      },
    })
    await say('a', 'hello')
    const { runId, signal, listener } = await turn(1)
    signal.addEventListener('abort', () => {
      // At once, so that the last one is still waiting to be written.
      listener.onEvent({ type: 'thinking', content: 'Hm', timestamp: 1 })
      listener.onEvent({ type: 'complete', result: failed('cancelled', 'It was stopped.'), timestamp: 2 })
    })
    await expect
      .poll(() => {
        clock.now += 61
        return queueOf('g2').claim([CHANNEL])
      })
      .toBeDefined()
    await expect.poll(() => signal.aborted).toEqual(true)
    await idle()
    expect([shown, (await store.runs.get(runId))?.state]).toEqual([['complete'], 'interrupted'])
  })

  it('that cannot be renewed before it ends stops the turn, which is then done again', async () => {
    const wrapQueue = (queue: Queue) =>
      Object.assign(queue, { renew: async () => Promise.reject(new Error('No connection')) })
    const { store, clock, say, turn, logged, replies } = await setup({ leaseMs: 60, wrapQueue })
    await say('a', 'hello')
    const { runId, signal } = await turn(1)
    await expect.poll(() => logged.length).toBeGreaterThan(1)
    const wasStoppedEarly = signal.aborted
    clock.now += 60
    const again = await turn(2)
    expect({
      wasStoppedEarly,
      isStopped: signal.aborted,
      run: (await store.runs.get(runId))?.state,
      replies: await replies(),
      isAgain: again.work.wasInterrupted,
      logged: new Set(logged),
    }).toEqual({
      wasStoppedEarly: false,
      isStopped: true,
      run: 'interrupted',
      replies: [],
      isAgain: true,
      logged: new Set(['lease.not-renewed']),
    })
  })

  it('that ended more than 10 times with its gateway is a dead letter with a reply', async () => {
    const { clock, queue, queueOf, worker, turns, replies } = await setup()
    const message = { channel: CHANNEL, address: 'a', platformId: 'p1', author: 'ann', text: 'crash me' }
    await queue.accept(message)
    const crashing = queueOf('g2')
    for (let death = 1; death <= 11; death += 1) {
      expect(await crashing.claim([CHANNEL])).toBeDefined()
      clock.now += 30_000
    }
    worker.wake()
    const text = 'The gateway stopped 11 times while working on this.'
    await expect.poll(replies).toEqual([failure(text)])
    expect(turns).toEqual([])
  })
})

describe('cancelling', () => {
  it('ends the turn of its conversation without a reply, says what was stopped and lets the next message run', async () => {
    const { clock, worker, say, turn, idle, replies, stateOf } = await setup()
    const messageId = await say('a', 'hello')
    await say('a', 'again')
    await say('b', 'elsewhere')
    await turn(2)
    clock.now += 1_500
    const stopped = await worker.cancel((await turn(1)).work.claim.conversationId)
    const [next, elsewhere] = [await turn(3), await turn(2)]
    next.finish(succeeded('hi'))
    const wasLeftAlone = !elsewhere.signal.aborted
    elsewhere.finish(succeeded('ho'))
    await idle()
    expect([stopped, await stateOf(messageId), wasLeftAlone, await replies()]).toEqual([
      { messageId, backend: 'claude', durationMs: 1_500 },
      'cancelled',
      true,
      [answer('hi'), answer('ho')],
    ])
  })

  it('of one message ends its turn, and leaves that of another message alone', async () => {
    const { worker, say, turn, replies, stateOf, idle } = await setup()
    const messageId = await say('a', 'one')
    const nextId = await say('a', 'two')
    const { conversationId } = (await turn(1)).work.claim
    const early = await worker.cancel(conversationId, nextId)
    const stateBefore = await stateOf(messageId)
    const stopped = await worker.cancel(conversationId, messageId)
    const { signal, finish } = await turn(2)
    const late = await worker.cancel(conversationId, messageId)
    const wasLeftAlone = !signal.aborted
    finish(succeeded('hi'))
    await idle()
    expect({ early, stateBefore, stopped, late, wasLeftAlone, replies: await replies() }).toEqual({
      early: undefined,
      stateBefore: 'open',
      stopped: { messageId, backend: 'claude', durationMs: 0 },
      late: undefined,
      wasLeftAlone: true,
      replies: [answer('hi')],
    })
  })

  it('keeps an answer that came first, and does not say that it was stopped', async () => {
    const { worker, say, turn, replies } = await setup({ isDeaf: true })
    await say('a', 'hello')
    const { work, finish } = await turn(1)
    const cancelled = worker.cancel(work.claim.conversationId)
    finish(succeeded('hi'))
    expect([await cancelled, await replies()]).toEqual([undefined, [answer('hi')]])
  })

  it('reports nothing if nothing runs', async () => {
    const { worker } = await setup()
    expect(await worker.cancel('nowhere')).toBeUndefined()
  })

  it('may be asked for by another gateway', async () => {
    const { store, say, turn, idle, replies, stateOf } = await setup({ leaseMs: 60 })
    const messageId = await say('a', 'hello')
    await turn(1)
    await store.jobs.requestCancel(messageId)
    await idle()
    expect([await stateOf(messageId), await replies()]).toEqual(['cancelled', []])
  })

  it('hears of those that were stopped by hand, and of no others', async () => {
    const cancelled: string[] = []
    const onCancelled = ({ message }: Work) => {
      cancelled.push(message.text)
    }
    const { worker, say, turn, turns } = await setup({ onCancelled })
    for (const text of ['stopped', 'answered', 'failed', 'handed back']) await say(text, text)
    await turn(4)
    const find = (text: string) => turns.find(({ work }) => work.message.text === text)
    await worker.cancel(find('stopped')?.work.claim.conversationId ?? '')
    find('answered')?.finish(succeeded('hi'))
    find('failed')?.finish(failed('auth', 'Not logged in'))
    await worker.stop(0)
    expect([cancelled, find('handed back')?.signal.aborted]).toEqual([['stopped'], true])
  })
})

describe('stopping', () => {
  it('lets the turns finish and takes nothing more', async () => {
    const { worker, say, turn, turns, replies, waiting } = await setup()
    await say('a', 'one')
    await say('a', 'two')
    const { finish } = await turn(1)
    const stopped = worker.stop(60_000)
    finish(succeeded('hi'))
    await stopped
    expect([turns.length, await replies(), await waiting()]).toEqual([
      1,
      [answer('hi')],
      [{ state: 'ready', inMs: 0, failures: 0 }],
    ])
  })

  it('releases unfinished work at the deadline, for the next gateway to continue', async () => {
    const { store, worker, workerOf, say, turn, turns, waiting, replies } = await setup()
    await say('a', 'hello')
    const { runId, listener } = await turn(1)
    listener.onEvent({ type: 'started', sessionId: 's1', timestamp: 1 })
    await worker.stop(0)
    const state = [await waiting(), (await store.runs.get(runId))?.state, await replies()]
    workerOf('g2').wake()
    const { work, finish } = await turn(2)
    finish(succeeded('hi'))
    await expect.poll(replies).toEqual([answer('hi')])
    expect([state, turns.length, work.wasInterrupted, work.claim.interruptions, work.claim.failures]).toEqual([
      [[{ state: 'ready', inMs: 0, failures: 0 }], 'interrupted', []],
      2,
      true,
      0,
      0,
    ])
  })
})

describe('a store that fails', () => {
  function breakable() {
    const trouble = { failures: 0 }
    const wrapStore = (store: Store): Store => ({
      ...store,
      transaction: async (work) => {
        if (trouble.failures === 0) return store.transaction(work)
        trouble.failures -= 1
        throw new GatewayError('store_full', 'The disk is full.')
      },
    })
    return { trouble, wrapStore }
  }

  it('gets a result again until all of it is written, with one warning', async () => {
    let failures = 0
    const wrapStore = (store: Store): Store => ({
      ...store,
      transaction: (work) =>
        store.transaction((tables) => {
          const add: Outbox['add'] = async (delivery, now) => {
            if (failures === 0) return tables.outbox.add(delivery, now)
            failures -= 1
            throw new GatewayError('store_full', 'The disk is full.')
          }
          const outbox = Object.assign(Object.create(tables.outbox) as Outbox, { add })
          return work(Object.create(tables, { outbox: { value: outbox } }) as typeof tables)
        }),
    })
    const { store, say, turn, turns, idle, replies, stateOf, logged } = await setup({ wrapStore })
    const messageId = await say('a', 'hello')
    const { runId, finish } = await turn(1)
    failures = 2
    finish(succeeded('hi'))
    await expect.poll(() => logged).toEqual(['turn.not-written'])
    const meanwhile = [await stateOf(messageId), (await store.runs.get(runId))?.state]
    await idle()
    expect([meanwhile, await replies(), await stateOf(messageId), turns.length, logged]).toEqual([
      ['open', 'running'],
      [answer('hi')],
      'answered',
      1,
      ['turn.not-written'],
    ])
  })

  it('until the gateway stops leaves the message to its lease, and the next gateway does it again', async () => {
    const { trouble, wrapStore } = breakable()
    const { clock, worker, workerOf, say, turn, replies } = await setup({ wrapStore })
    await say('a', 'hello')
    const { finish } = await turn(1)
    trouble.failures = Infinity
    finish(succeeded('hi'))
    await worker.stop(0)
    trouble.failures = 0
    clock.now += 30_000
    workerOf('g2').wake()
    const again = await turn(2)
    again.finish(succeeded('hi again'))
    await expect.poll(replies).toEqual([answer('hi again')])
    expect([again.work.claim.interruptions, again.work.wasInterrupted]).toEqual([1, true])
  })

  it('is asked again for a message, with one warning', async () => {
    const { trouble, wrapStore } = breakable()
    const { worker, say, turn, logged } = await setup({ wrapStore })
    await say('a', 'one')
    await turn(1)
    await say('b', 'two')
    await turn(2)
    trouble.failures = 3
    for (let round = 0; round < 3; round += 1) {
      worker.wake()
      await expect.poll(() => trouble.failures).toEqual(2 - round)
    }
    await say('c', 'three')
    await turn(3)
    expect(logged).toEqual(['queue.claim-failed'])
  })
})

describe('a heartbeat', () => {
  const beat = async (result: AgentResult, options: MessageOptions = {}, setupOptions: SetupOptions = {}) => {
    const { queue, worker, turn, idle, replies, stateOf, waiting } = await setup(setupOptions)
    const about = { channel: CHANNEL, address: 'a', platformId: 'b1', author: 'heartbeat', kind: 'heartbeat' as const }
    const { messageId } = await queue.accept({ ...about, text: 'Look', options })
    worker.wake()
    const { finish } = await turn(1)
    finish(result, { notes: ['A note.'] })
    await idle()
    return { replies: await replies(), state: await stateOf(messageId), waiting: await waiting() }
  }

  it('that finds nothing is answered without a reply', async () => {
    expect(await beat(succeeded('HEARTBEAT_OK'))).toEqual({ replies: [], state: 'answered', waiting: [] })
  })

  it('that finds something reports it, without the word for nothing', async () => {
    const told = 'x'.repeat(400)
    expect((await beat(succeeded(`${told}\n\nHEARTBEAT_OK`))).replies).toEqual([answer(told, ['A note.'])])
  })

  it('with a file is delivered', async () => {
    const { replies } = await beat(succeeded('HEARTBEAT_OK\nMEDIA:plot.png'), {}, { canSendFiles: true })
    expect(replies).toEqual([{ ...answer('', ['A note.']), files: [{ path: 'plot.png', directory: '/srv/site' }] }])
  })

  it('that fails is not tried again, since the next one comes anyway', async () => {
    const outcome = await beat(failed('timeout', 'It took too long.'))
    expect([outcome.state, outcome.waiting, outcome.replies.length]).toEqual(['failed', [], 1])
  })

  it('that has used up its turns is told about, and not as something to continue', async () => {
    const outcome = await beat(failed('max_turns', 'Reached the maximum number of turns (2).'))
    expect(outcome).toEqual({
      replies: [answer('Stopped after 2 steps, the limit for one message.', ['A note.'])],
      state: 'answered',
      waiting: [],
    })
  })

  it('that fails like the one before is not reported again', async () => {
    const outcome = await beat(failed('auth', 'Not logged in.'), { isKnownToFail: true })
    expect([outcome.state, outcome.replies]).toEqual(['failed', []])
  })
})

it('a cron job that has used up its turns is told about by its name', async () => {
  const { queue, worker, turn, idle, replies } = await setup()
  const about = { channel: CHANNEL, address: 'a', platformId: 'c1', author: 'cron:job', kind: 'cron' as const }
  await queue.accept({ ...about, text: 'Report', options: { job: 'report' } })
  worker.wake()
  const { listener, finish } = await turn(1)
  listener.onEvent({ type: 'output', content: 'So far.', stream: 'stdout', timestamp: START })
  finish(failed('max_turns', 'Reached the maximum number of turns (2).'))
  await idle()
  expect(await replies()).toEqual([
    answer('So far.', ['The job report: Stopped after 2 steps, the limit for one message.']),
  ])
})

describe('a command of a cron job', () => {
  const run = async (result: Partial<AgentResult>) => {
    const { queue, worker, turn, idle, replies } = await setup()
    const about = { channel: CHANNEL, address: 'a', platformId: 'c1', author: 'cron:job', kind: 'cron' as const }
    await queue.accept({ ...about, text: 'make', options: { job: 'build', command: ['make'] } })
    worker.wake()
    const { finish } = await turn(1)
    finish({ isError: false, durationMs: 1, ...result })
    await idle()
    return replies()
  }

  it('that has printed nothing says nothing', async () => {
    expect(await run({ exitCode: 0, finalOutput: '\n' })).toEqual([])
  })

  it('sends its output', async () => {
    expect(await run({ exitCode: 0, finalOutput: 'Done.\n' })).toEqual([answer('Done.\n')])
  })

  it.each([
    ['', ''],
    ['Oops.\n', '\n\nOops.\n'],
  ])('that has failed says which, before its output: %j', async (finalOutput, after) => {
    expect(await run({ isError: true, exitCode: 2, finalOutput })).toEqual([
      { text: `The job build failed. make ended with exit code 2.${after}`, notes: [], isError: true },
    ])
  })

  it('that could not be started says which, why and what to do', async () => {
    const message = 'make was not found, or is not executable. Install it where the gateway runs.'
    const failure = { reason: 'spawn', message, report: message, isLasting: true } as const
    expect(await run({ isError: true, exitCode: 127, failure })).toEqual([
      { text: `The job build failed. ${message}`, notes: [], isError: true, canRetry: true },
    ])
  })
})

describe('a plan', () => {
  it('has the last word on an answer', async () => {
    const plan: WorkerOptions['plan'] = ({ message }) => ({
      backend: 'claude',
      directory: '/srv/site',
      canSendFiles: false,
      run: async () => ({ result: succeeded('hi'), notes: [] }),
      finish: (reply) => (message.text === 'hush' ? undefined : { ...reply, text: `🤖 ${reply.text}` }),
    })
    const { say, stateOf, replies } = await setup({ plan })
    const [hushed, told] = [await say('a', 'hush'), await say('a', 'hello')]
    await expect.poll(() => stateOf(told)).toEqual('answered')
    expect([await stateOf(hushed), await replies()]).toEqual(['answered', [answer('🤖 hi')]])
  })
})

describe('messages that share a turn', () => {
  it('are answered by one reply, which says so', async () => {
    const { queue, worker, turn, idle, replies } = await setup({ mode: 'collect' })
    for (const text of ['one', 'two', 'three']) {
      await queue.accept({ channel: CHANNEL, address: 'a', platformId: text, author: 'ann', text })
    }
    worker.wake()
    const { finish } = await turn(1)
    finish(succeeded('All done'))
    await idle()
    expect(await replies()).toEqual([answer('All done', ['This also answers the 2 messages after it.'])])
  })

  it('go to the agent while it works, in order, and appear in the events', async () => {
    const events: string[] = []
    const { say, turn, idle, replies, stateOf } = await setup({
      mode: 'steer',
      onEvents: (_work, _runId, recorded) => {
        for (const { event } of recorded) events.push('content' in event ? event.content : event.type)
      },
    })
    const told: string[] = []
    const first = await say('a', 'one')
    const { listener, finish } = await turn(1)
    const second = await say('a', 'two')
    listener.onSteerable?.(async (text) => told.push(text) > 0)
    await expect.poll(() => told).toEqual(['two'])
    const third = await say('a', `use ${SECRET}`)
    await expect.poll(() => told).toEqual(['two', `use ${SECRET}`])
    finish(succeeded('All done'))
    await idle()
    const states = await Promise.all([first, second, third].map(stateOf))
    expect([states, await replies(), events]).toEqual([
      ['answered', 'answered', 'answered'],
      [answer('All done', ['This also answers the 2 messages after it.'])],
      ['Passed on to the running agent: two', 'Passed on to the running agent: use [secret]'],
    ])
  })

  it('wait for their own turn when the agent does not take them, and are not offered again', async () => {
    const { say, turn, idle, waiting } = await setup({ mode: 'steer' })
    const told: string[] = []
    await say('a', 'one')
    const { listener, finish } = await turn(1)
    listener.onSteerable?.(async (text) => told.push(text) < 0)
    await say('a', 'two')
    await expect.poll(() => told).toEqual(['two'])
    await say('a', 'three')
    await expect.poll(async () => (await waiting()).length).toBe(3)
    finish(succeeded('Done'))
    const second = await turn(2)
    second.finish(succeeded('Done'))
    const third = await turn(3)
    third.finish(succeeded('Done'))
    await idle()
    expect([told, second.work.message.text, third.work.message.text]).toEqual([['two'], 'two', 'three'])
  })

  it('run next when the turn ends while the agent is asked', async () => {
    const { say, turn, idle, stateOf, store } = await setup({ mode: 'steer' })
    await say('a', 'one')
    const { listener, finish } = await turn(1)
    const asked: string[] = []
    let answerOffer = (_isTaken: boolean): void => {}
    listener.onSteerable?.((text) => {
      asked.push(text)
      return new Promise((resolve) => (answerOffer = resolve))
    })
    const second = await say('a', 'two')
    await expect.poll(() => asked).toEqual(['two'])
    const during = (await store.inbox.get(second))?.mergedInto
    finish(succeeded('Done'))
    answerOffer(false)
    const next = await turn(2)
    next.finish(succeeded('Done'))
    await idle()
    expect([during, next.work.message.id, next.work.merged, await stateOf(second)]).toEqual([
      expect.any(String),
      second,
      [],
      'answered',
    ])
  })

  it('are with it when it was cut off', async () => {
    const { say, turn, worker, workerOf, stateOf } = await setup({ mode: 'steer' })
    await say('a', 'one')
    const { listener } = await turn(1)
    const told: string[] = []
    listener.onSteerable?.(async (text) => told.push(text) > 0)
    const second = await say('a', 'two')
    await expect.poll(() => told).toEqual(['two'])
    await worker.stop(0)
    workerOf('g2').wake()
    const again = await turn(2)
    again.finish(succeeded('Done'))
    await expect.poll(() => stateOf(second)).toBe('answered')
    expect([again.work.merged.map(({ text }) => text), again.work.wasInterrupted]).toEqual([['two'], true])
  })
})
