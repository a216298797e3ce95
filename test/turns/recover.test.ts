import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { endRunsInPods, recoverOrphans, deregister } from '../../src/turns/recover.js'
import { createLog } from '../../src/log.js'
import { RUN_MARKER } from '../../src/processes/process-owner.js'
import { findProcess, startTimeOf } from '../../src/processes/process-table.js'
import { thisProcess } from '../../src/processes/reaper.js'
import { afterEarlierAttempts, type StageDependencies } from '../../src/turns/plan.js'
import type { RunTurn, Work } from '../../src/turns/types.js'
import type { TurnListener } from '../../src/runtime/agent-runtime.js'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describeEngines, type TestEngine } from '../kit/engines.js'
import { FakePods } from '../kit/fake-pods.js'
import { succeeded } from '../kit/scripted-backend.js'
import { queueOn } from '../kit/queue.js'

const NOW = 1_800_000_000_000
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const POD = { namespace: 'agents', name: 'web-0' }
/** No pid is that high. */
const DEAD = { pid: 2 ** 22 + 1, startTime: 1 }

describeEngines('housekeeping', (engine) => {
  it('releases the work of a dead gateway at once, and ends its run in a pod as soon as the cluster answers', async () => {
    const { store, pods, take, claim, keep, endInPods, gateways, after } = await setup(engine)
    pods.answers = false
    const { runId, messageId } = await take('dead', { ...thisProcess(), ...DEAD })
    await keep()
    await endInPods()
    const claimed = (await claim('self'))?.message.id
    const unknown = [claimed, await gateways(), await onRecord(store, 'dead'), pods.ended.length]
    after(MINUTE_MS)
    pods.answers = true
    await keep()
    await endInPods()
    const ended = [await gateways(), await onRecord(store, 'dead'), pods.ended]
    await keep()
    expect([unknown, ended, await gateways()]).toEqual([
      [messageId, ['dead', 'self'], [runId], 0],
      [['dead', 'self'], [], [[POD, runId]]],
      ['self'],
    ])
  })

  it('ends what a gateway of another machine left in a pod, once that has not been seen for long', async () => {
    const { store, pods, take, keep, endInPods, gateways, after } = await setup(engine)
    const { runId } = await take('far', { ...thisProcess(), host: 'elsewhere', bootId: 'other' })
    const look = async () => {
      await keep()
      await endInPods()
      return [await onRecord(store, 'far'), pods.ended.length, await gateways()]
    }
    const first = await look()
    after(3 * MINUTE_MS)
    const silent = await look()
    after(DAY_MS)
    expect([first, silent, await look()]).toEqual([
      [[runId], 0, ['far', 'self']],
      [[], 1, ['far', 'self']],
      [[], 1, ['self']],
    ])
  })

  it('leaves the runs of a living gateway in pods alone', async () => {
    const { store, pods, take, keep, endInPods } = await setup(engine)
    const { runId } = await take('living', thisProcess())
    await keep()
    await endInPods()
    expect([await onRecord(store, 'living'), pods.ended]).toEqual([[runId], []])
  })

  it('ends what a turn of a living gateway left in a pod, as soon as the cluster answers', async () => {
    const { store, pods, take, endInPods } = await setup(engine)
    const { runId } = await take('living', thisProcess())
    await store.runs.end(runId, 'failed', undefined, NOW)
    await endInPods()
    expect([await onRecord(store, 'living'), pods.ended]).toEqual([[], [[POD, runId]]])
  })

  it('a gateway that stops keeps on record what it could not end in a pod', async () => {
    const { store, take, gateways } = await setup(engine)
    const { runId } = await take('stopping', thisProcess())
    await store.ledger.add({ ...thisProcess(), runId: 'local', ownerId: 'stopping' })
    await deregister('stopping', store)
    const left = [await onRecord(store, 'stopping'), await gateways()]
    await store.ledger.remove([runId])
    await deregister('stopping', store)
    expect([left, await gateways()]).toEqual([[[runId], ['stopping']], []])
  })

  it('gives up after a day, and says so', async () => {
    const { pods, take, keep, endInPods, gateways, after, logged } = await setup(engine)
    pods.answers = false
    await take('dead', { ...thisProcess(), ...DEAD })
    after(2 * DAY_MS)
    await keep()
    await endInPods()
    expect([await gateways(), logged.includes('pod.runs-left')]).toEqual([['self'], true])
  })

  it('a message is retried once nothing of an earlier attempt is left in a pod', async () => {
    const { store, pods, take, earlier } = await setup(engine)
    const { runId, messageId } = await take('dead', { ...thisProcess(), ...DEAD })
    const steps: string[] = []
    pods.endRun = async (_, id) => steps.push(`ended ${id}`) > 0
    let admit = (): void => {}
    const mayBegin = new Promise<void>((resolve) => {
      admit = () => {
        steps.push('admitted')
        resolve()
      }
    })
    const begun = begin(afterEarlier(runOf(steps), workOf(messageId), earlier), undefined, mayBegin)
    await nextTurn()
    admit()
    await begun
    expect([steps, await onRecord(store, 'dead')]).toEqual([['admitted', `ended ${runId}`, 'begun'], []])
  })

  it('a message is not retried while it is unknown whether an earlier attempt has ended in its pod', async () => {
    const { store, pods, take, earlier } = await setup(engine)
    const { runId, messageId } = await take('dead', { ...thisProcess(), ...DEAD })
    pods.answers = false
    const steps: string[] = []
    const run = afterEarlier(runOf(steps), workOf(messageId), earlier)
    const { outcome, events } = await begin(run)
    const message =
      'An earlier run of this conversation in the pod web-0 (namespace agents) may still be active, so no new one was started. Check that the cluster responds ("aetheel doctor" shows more), then try again.'
    expect([steps, outcome.result.failure, events, await onRecord(store, 'dead')]).toEqual([
      [],
      { reason: 'spawn', message, report: message, podProblem: 'unreachable' },
      ['error', 'complete'],
      [runId],
    ])
  })

  it.each([
    ['is not begun in a pod either', POD, []],
    ['is begun elsewhere', undefined, ['begun']],
  ])('the next message of a conversation %s while one before may work on in its pod', async (_, pod, begun) => {
    const { store, pods, take, earlier } = await setup(engine)
    const { runId, conversationId } = await take('living', thisProcess())
    await store.runs.end(runId, 'cancelled', undefined, NOW)
    pods.answers = false
    const steps: string[] = []
    const next = { message: { id: 'next' }, conversation: { id: conversationId }, ...(pod && { project: { pod } }) }
    const work = { claim: { fence: 1 }, ...next, cutOff: [] } as never
    await begin(afterEarlier(runOf(steps), work, earlier))
    expect(steps).toEqual(begun)
  })

  it('a message that is cancelled does not wait for a cluster', async () => {
    const { pods, take, earlier } = await setup(engine)
    const { messageId } = await take('dead', { ...thisProcess(), ...DEAD })
    const cancelled = new AbortController()
    pods.endRun = async () => {
      cancelled.abort()
      return new Promise<never>(() => {})
    }
    const steps: string[] = []
    const run = afterEarlier(runOf(steps), workOf(messageId), earlier)
    const { outcome } = await begin(run, cancelled.signal)
    expect([steps, outcome.result.failure?.reason]).toEqual([[], 'cancelled'])
  })

  it('gives up what a living gateway left in a pod, a day after its end', async () => {
    const { store, pods, take, endInPods, after, logged } = await setup(engine)
    const { runId } = await take('living', thisProcess())
    await store.runs.end(runId, 'failed', undefined, NOW)
    pods.answers = false
    after(DAY_MS - MINUTE_MS)
    await endInPods()
    const before = [await onRecord(store, 'living'), logged.splice(0)]
    after(2 * MINUTE_MS)
    await endInPods()
    await endInPods()
    expect([before, await onRecord(store, 'living'), logged]).toEqual([
      [[runId], ['pod.runs-unknown']],
      [],
      ['pod.runs-left'],
    ])
  })

  it('asks for a few runs at a time', async () => {
    const { store, pods, endInPods } = await setup(engine)
    const runIds = Array.from({ length: 9 }, () => randomUUID())
    for (const runId of runIds) {
      await store.ledger.add({ ...thisProcess(), runId, ownerId: 'living', pod: JSON.stringify(POD) })
    }
    let [asked, most] = [0, 0]
    pods.endRun = async () => {
      most = Math.max(most, (asked += 1))
      await new Promise(setImmediate)
      return (asked -= 1) >= 0
    }
    await endInPods()
    expect([await onRecord(store, 'living'), most]).toEqual([[], 4])
  })

  it.each([
    ['the process of that turn', true],
    ['the agents that the other gateway keeps, where the turn had no process of its own', false],
  ])('a message of a gateway that was stopped for too long is begun after the end of %s', async (_, hasOwn) => {
    const { store, take, claim, after, earlier } = await setup(engine)
    const stopped = thisProcess()
    const { runId, messageId } = await take('stopped', stopped)
    after(1)
    const other = await take('stopped', stopped, 'b')
    const own = await startAgent(hasOwn ? runId : randomUUID())
    const bystander = await startAgent(other.runId)
    await store.ledger.remove([runId, other.runId])
    for (const agent of [own, bystander]) await store.ledger.add({ ...stopped, ...agent, ownerId: 'stopped' })
    after(DAY_MS)
    const work = await claim('self')
    if (work?.message.id !== messageId) throw new Error('The message was not taken over')
    const alive: boolean[] = []
    const run = async () => {
      alive.push(...[own, bystander].map(({ pid }) => findProcess(pid) !== undefined))
      return { result: succeeded('Done.'), notes: [] }
    }
    await begin(afterEarlier(run, work, earlier))
    expect([alive, await onRecord(store, 'stopped')]).toEqual([[false, true], [other.runId]])
  })

  it('a message whose earlier attempts were elsewhere begins without asking any cluster', async () => {
    const { pods, take, earlier } = await setup(engine)
    await take('dead', { ...thisProcess(), ...DEAD })
    const steps: string[] = []
    await begin(afterEarlier(runOf(steps), workOf('other'), earlier))
    expect([steps, pods.ended]).toEqual([['begun'], []])
  })
})

/** A message that is retried. */
function workOf(messageId: string): Work {
  return { claim: { fence: 2 }, message: { id: messageId }, conversation: { id: 'some' }, cutOff: [] } as never
}

/** A process that looks like such a run's from outside. */
async function startAgent(runId: string) {
  const env = { PATH: process.env['PATH'], [RUN_MARKER]: runId }
  const child = spawn('sleep', ['1000'], { env, stdio: 'ignore', detached: true })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  const pid = child.pid ?? 0
  return { runId, pid, startTime: startTimeOf(pid) }
}

function now(): number {
  return NOW
}

async function setup(engine: TestEngine) {
  const store = await engine.createStore()
  const pods = new FakePods()
  const clock = { now: NOW }
  const logged: string[] = []
  const log = createLog({
    level: 'info',
    destination: { write: (line) => logged.push((JSON.parse(String(line)) as { msg: string }).msg) > 0 },
  })
  const dependencies = { store, pods, log, now: () => clock.now }
  const self = { ...thisProcess(), id: 'self', startedAt: NOW + 1, seenAt: NOW }
  const queueOf = (gatewayId: string) =>
    queueOn(store, { gatewayId, leaseMs: DAY_MS, replyExpiryMs: DAY_MS, now: () => clock.now })
  /** A message that a gateway is working on in a pod. */
  const take = async (gatewayId: string, identity: ReturnType<typeof thisProcess>, address = 'a') => {
    await store.ledger.announceGateway({ ...identity, id: gatewayId, startedAt: NOW, seenAt: NOW })
    const queue = queueOf(gatewayId)
    const message = { channel: 'chat', address, platformId: randomUUID(), author: 'ann', text: 'Look' }
    const { messageId, conversationId } = await queue.accept(message)
    const runId = randomUUID()
    const run = { id: runId, backend: 'claude', directory: 'pod::agents:web-0::/workspace' }
    if (!(await queue.claim(['chat'], {}, () => run))) throw new Error('There is nothing to claim')
    await store.ledger.add({ ...identity, ...DEAD, runId, ownerId: gatewayId, pod: JSON.stringify(POD) })
    return { runId, messageId, conversationId }
  }
  return {
    store,
    pods,
    logged,
    take,
    claim: (gatewayId: string) => queueOf(gatewayId).claim(['chat']),
    earlier: { gatewayId: 'self', ledger: store.ledger, pods, log, now },
    keep: () => recoverOrphans(self, dependencies),
    endInPods: () => endRunsInPods(self, dependencies),
    gateways: async () => (await store.ledger.gateways()).map(({ id }) => id),
    after: (ms: number) => {
      clock.now += ms
    },
  }
}

async function onRecord({ ledger }: Awaited<ReturnType<typeof setup>>['store'], gatewayId: string): Promise<string[]> {
  return (await ledger.processesOf(gatewayId)).map(({ runId }) => runId)
}

function afterEarlier(run: RunTurn, work: Work, dependencies: Partial<StageDependencies>): RunTurn {
  const plan = { backend: 'claude', directory: '/work', canSendFiles: false, run }
  return afterEarlierAttempts(run, work, plan, dependencies as StageDependencies)
}

function runOf(steps: string[]): RunTurn {
  return async () => {
    steps.push('begun')
    return { result: succeeded('Done.'), notes: [] }
  }
}

async function begin(run: RunTurn, signal = new AbortController().signal, mayBegin?: Promise<void>) {
  const events: string[] = []
  const listener: TurnListener = {
    onEvent: ({ type }) => void events.push(type),
    keepSession: async () => {},
    ...(mayBegin && { mayBegin }),
  }
  return { outcome: await run({ runId: 'next' }, signal, listener), events }
}
