// One message's walk: the order in which it is recorded, run and answered. Whatever happens between two commits is done
// again, or lost, if the gateway ends there.

import { expect, test } from 'vitest'
import { databaseFile, makeHome, startGateway } from '../../src/gateway.js'
import type { Step } from '../../src/turns/types.js'
import type { Store, Tables } from '../../src/store/store.js'
import { putDatabase } from '../kit/put-database.js'
import { ECHO_AGENT } from '../kit/agents.js'
import { Stage, TestChannel } from '../kit/stage.js'

const REPLY_SENT = 'outbox.settle'
const NOTHING_FOUND = 'commit: jobs.claim'
/** How often they are written depends on how fast they arrive. */
const EVENTS = 'commit: events.record'

test('the steps and commits of one message', async ({ onTestFinished }) => {
  const stage = new Stage(onTestFinished)
  const config = stage.config({ BACKEND_CLI_PATH: stage.executable('echo-agent', ECHO_AGENT) })
  makeHome(config)
  putDatabase({ file: databaseFile(config), databaseUrl: config.databaseUrl })
  const walk: string[] = []
  const channel = new TestChannel()
  const gateway = await startGateway(config, {
    environment: stage.environment,
    log: stage.log,
    channels: [channel],
    onStep: (step: Step) => walk.push(step),
    beforeWork: async ({ store }) => watchCommits(store, (commit) => walk.push(commit)),
  })
  onTestFinished(() => gateway.stop())
  // A message waits while it looks for work.
  await expect.poll(() => walk).toContain(NOTHING_FOUND)
  await channel.say('north', 'Hello')
  await expect.poll(() => walk).toContain(REPLY_SENT)
  expect(walk.filter((entry) => entry !== NOTHING_FOUND && entry !== EVENTS)).toEqual([
    'commit: conversations.enter, jobs.countOpen, inbox.add, jobs.enqueueClaimed, runs.begin',
    'accepted',
    'claimed',
    'streaming',
    'finished',
    'commit: conversations.nextSeq, jobs.finish, approvals.withdraw, outbox.takeBack, events.record, runs.end, sessions.set, outbox.add, outbox.claim',
    'committed',
    'sent',
    REPLY_SENT,
  ])
})

/** Reports each transaction by its calls, and the outcome of a reply. */
function watchCommits(store: Store, onCommit: (what: string) => void): void {
  const { transaction, write } = store
  const watched =
    (open: typeof transaction): typeof transaction =>
    async (work, onCommitted) => {
      const calls: string[] = []
      const result = await open((tables) => work(watchTables(tables, (call) => calls.push(call))), onCommitted)
      onCommit(`commit: ${calls.join(', ')}`)
      return result
    }
  store.transaction = watched(transaction)
  store.write = watched(write)
  store.outbox = watchTable('outbox', store.outbox, (call) => call === REPLY_SENT && onCommit(call))
}

function watchTables(tables: Tables, onCall: (call: string) => void): Tables {
  return new Proxy(tables, {
    get: (target, name) => watchTable(String(name), Reflect.get(target, name) as object, onCall),
  })
}

function watchTable<Table extends object>(name: string, table: Table, onCall: (call: string) => void): Table {
  return new Proxy(table, {
    get(target, method) {
      const value: unknown = Reflect.get(target, method, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        onCall(`${name}.${String(method)}`)
        return Reflect.apply(value, target, args)
      }
    },
  })
}
