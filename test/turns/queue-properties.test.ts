// Compares the queue with its model, in random steps of two gateways that renew, lose, crash and come back too late.

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { QUEUE_MODES } from '../../src/channels/types.js'
import { describeEngines, openTestStore } from '../kit/engines.js'
import { ADDRESSES, LEASE_MS, QueueModel, type SettlementKind } from './queue-model.js'

/** Each query of PostgreSQL is a round trip. */
const RUNS = { sqlite: 150, postgres: 30 }
const MAX_COMMANDS = 40
/** Long enough to shrink a failure before it is reported. */
const TIMEOUT_MS = 300_000

type Step = (model: QueueModel) => Promise<void> | void

const worker = fc.nat({ max: 1 })
const address = fc.constantFrom(...ADDRESSES)
const pick = fc.nat({ max: 20 })
const kind = fc.constantFrom<SettlementKind>('answered', 'failed', 'retry', 'cancelled', 'handed-back')
const delayMs = fc.constantFrom(0, 10, 5_000)

const enqueue = address.map((address) => command(`enqueue ${address}`, (model) => model.enqueue(address)))
const redeliver = fc
  .tuple(pick, address)
  .map(([pick, address]) => command(`redeliver ${pick} to ${address}`, (model) => model.redeliver(pick, address)))
const claim = fc.tuple(worker, fc.boolean()).map(([worker, beginsRun]) =>
  command(`claim by ${worker}${beginsRun ? ', run' : ''}`, async (model) => {
    await model.claim(worker, beginsRun)
  }),
)
const renew = fc
  .tuple(worker, pick)
  .map(([worker, pick]) => command(`renew by ${worker}: ${pick}`, (model) => model.renew(worker, pick)))
const settle = fc
  .tuple(worker, pick, kind, delayMs)
  .map(([worker, pick, kind, delayMs]) =>
    command(`settle by ${worker}: ${pick} ${kind} ${delayMs}`, (model) => model.settle(worker, pick, kind, delayMs)),
  )
const pass = fc
  .constantFrom(LEASE_MS / 2, LEASE_MS + 1, 5_000)
  .map((ms) => command(`pass ${ms} ms`, (model) => model.pass(ms)))
const crash = fc
  .tuple(worker, fc.boolean())
  .map(([worker, isNoticed]) =>
    command(`crash of ${worker}${isNoticed ? ', noticed' : ''}`, (model) => model.crash(worker, isNoticed)),
  )
const edit = fc
  .tuple(worker, pick, fc.boolean())
  .map(([worker, pick, isEmpty]) =>
    command(`edit by ${worker}: ${pick}${isEmpty ? ', empty' : ''}`, (model) => model.edit(worker, pick, isEmpty)),
  )
const choose = fc
  .tuple(address, fc.constantFrom(...QUEUE_MODES))
  .map(([address, mode]) => command(`${mode} in ${address}`, (model) => model.choose(address, mode)))
const steer = fc
  .tuple(worker, pick, fc.constantFrom(true, true, false, undefined))
  .map(([worker, pick, isTaken]) =>
    command(`steer by ${worker}: ${pick} ${isTaken}`, (model) => model.steer(worker, pick, isTaken)),
  )
const drop = pick.map((pick) => command(`drop ${pick}`, (model) => model.drop(pick)))
const retry = pick.map((pick) => command(`retry dead letter ${pick}`, (model) => model.retryDeadLetter(pick)))
const cancel = address.map((address) => command(`cancel in ${address}`, (model) => model.requestCancel(address)))

/** Steps listed more than once are more frequent. */
const commands = [
  ...[enqueue, enqueue, enqueue, redeliver],
  ...[claim, claim, claim, renew],
  ...[settle, settle, settle, pass, pass],
  ...[crash, drop, edit, edit, retry, retry, cancel],
  ...[choose, choose, steer, steer],
]

describeEngines('the queue as a state machine', (engine) => {
  it(
    'keeps order, never has two workers on one conversation, and loses nothing, in all modes',
    async () => {
      const store = engine.name === 'sqlite' ? await openTestStore({ file: ':memory:' }) : await engine.createStore()
      let count = 0
      await fc.assert(
        fc.asyncProperty(fc.commands(commands, { maxCommands: MAX_COMMANDS, size: 'max' }), async (steps) => {
          const model = new QueueModel(store, `channel ${count++}`)
          await fc.asyncModelRun(() => ({ model, real: undefined }), steps)
          await model.drain()
        }),
        { numRuns: RUNS[engine.name] },
      )
      expect(count).toBeGreaterThanOrEqual(RUNS[engine.name])
    },
    TIMEOUT_MS,
  )
})

function command(name: string, step: Step): fc.AsyncCommand<QueueModel, undefined> {
  return {
    check: () => true,
    run: async (model) => {
      model.pass(1)
      await step(model)
      await model.compare()
    },
    toString: () => name,
  }
}
