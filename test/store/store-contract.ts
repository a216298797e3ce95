// What every store guarantees, whichever database is below. Callers notice each of these.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, type Migration, Migrator, sql } from 'kysely'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { createLog } from '../../src/log.js'
import { openPostgres } from '../../src/store/postgres.js'
import type { Schema } from '../../src/store/schema.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { openStore, type StoreLocation, storeOn, type Tables } from '../../src/store/store.js'
import { openTestStore, type TestEngine } from '../kit/engines.js'
import type { GatewayProcessOptions, Turn } from './gateway-process.js'
import { describeApprovalsContract } from './approvals-contract.js'
import { describeInboxContract } from './inbox-contract.js'
import { describeOutboxContract } from './outbox-contract.js'
import { describeRecordsContract } from './records-contract.js'
import { CHANNEL, createStage, newMessage } from './stage.js'

const PROCESS = join(inject('buildDirectory'), 'test', 'store', 'gateway-process.js')
const log = createLog({ level: 'silent' })

export function describeStoreContract(engine: TestEngine): void {
  describeInboxContract(engine)
  describeOutboxContract(engine)
  describeRecordsContract(engine)
  describeApprovalsContract(engine)

  describe('a transaction', () => {
    it('that fails changes nothing in any table', async () => {
      const { store } = await createStage(engine)
      const failure = new Error('half-way')
      const thrown = await store
        .transaction(async (tables) => {
          const { id: conversationId, seq } = await tables.conversations.enter(
            { channel: CHANNEL, address: 'a' },
            'a',
            1,
          )
          const message = newMessage({ id: 'one', conversationId, seq })
          await tables.inbox.add(message, 'open', null, 1)
          await tables.jobs.enqueue(message, 0, 1)
          await tables.sessions.set({ conversationId, backend: 'pi', sessionId: 's', directory: '/srv' }, 1)
          await tables.audit.add({ at: 1, actor: 'ann', action: 'a', subject: 's' })
          throw failure
        })
        .catch((error: unknown) => error)
      const { conversations, inbox, sessions, audit } = store
      expect([
        thrown,
        await conversations.get('a'),
        await inbox.get('one'),
        await inbox.listOpen(1),
        await sessions.get('a'),
        await audit.list(1),
      ]).toEqual([failure, undefined, undefined, [], undefined, []])
    })

    it('does not block long queries, which see what was committed before it', async () => {
      const { store, add } = await createStage(engine)
      await add('a', 'one', 1)
      await store.runs.begin({ id: 'r', messageId: 'one', conversationId: 'a', gatewayId: 'g', backend: 'pi' }, 1)
      await store.runs.end('r', 'answered', { isError: false, durationMs: 1, sessionId: 's' }, 2)
      const visibility = { seesPrivate: false }
      const answers = await store.transaction(async (tables) => {
        await tables.conversations.enter({ channel: CHANNEL, address: 'open' }, 'open', 3)
        return [
          await store.conversationViews.list({ visibility }, 9),
          (await store.conversationViews.transcript('a', { entries: 9, bytes: 9 })).entries,
          await store.archive.candidates({ fragments: ['hello'], visibility }),
          await store.figures.of('agent', { visibility, from: 0, to: 9 }),
          await store.inbox.listUnder(CHANNEL, '', 9),
          await store.runs.sessions({ conversationId: 'a', directory: '/srv', since: 0, visibility }, 9),
          [(await store.figures.usage({ conversationId: 'a' }, 0)).turns],
          await store.runs.models('pi', 0, 9),
        ]
      })
      expect(answers.map(({ length }) => length)).toEqual([1, 1, 1, 1, 1, 0, 1, 0])
    })

    it('returns its value, even after one that failed', async () => {
      const { store } = await createStage(engine)
      await store.transaction(() => Promise.reject(new Error('no'))).catch(() => {})
      expect(await store.transaction(async () => 'done')).toBe('done')
    })

    it('numbers concurrent messages without gaps or duplicates', async () => {
      const { store } = await createStage(engine)
      const numbers = await Promise.all(
        Array.from({ length: 30 }, (_, index) =>
          store.transaction((tables) => tables.conversations.enter({ channel: CHANNEL, address: 'a' }, `a${index}`, 1)),
        ),
      )
      const first = numbers[0]
      expect(numbers.toSorted((a, b) => a.seq - b.seq)).toEqual(
        numbers.map((_, index) => ({ ...first, seq: index + 1 })),
      )
    })

    it.each(['transaction', 'write'] as const)(
      'reports the result of a %s once, when others can see it',
      async (way) => {
        const { store } = await createStage(engine)
        const reported: Array<[string, Promise<unknown>]> = []
        const enter = ({ conversations }: Tables) => conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 1)
        const done = await store[way](enter, ({ id }) => reported.push([id, store.conversations.get('a')]))
        await store[way](
          () => Promise.reject(new Error('no')),
          () => reported.push(['none', Promise.resolve()]),
        ).catch(() => {})
        const [[id, seen] = []] = reported
        expect([reported.length, id, await seen]).toEqual([1, done.id, { id: 'a', channel: CHANNEL, address: 'a' }])
      },
    )

    it('survives closing and reopening the store', async () => {
      const location = await engine.createLocation()
      const first = await openStore(location, log)
      await first.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 1)
      await first.close()
      const second = await openTestStore(location)
      expect(await second.conversations.get('a')).toEqual({ id: 'a', channel: CHANNEL, address: 'a' })
    })
  })

  describe('closing a store', () => {
    it('finishes what is in progress and refuses what comes after', async () => {
      const location = await engine.createLocation()
      const store = await openStore(location, log)
      let closed: Promise<void> | undefined
      await store.transaction(async (tables) => {
        closed = store.close()
        await sleep(1)
        await tables.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 1)
      })
      await closed
      const reopened = await openTestStore(location)
      expect([
        await store.projects.list().catch((error: unknown) => error),
        (await reopened.conversations.get('a'))?.id,
      ]).toEqual([expect.any(Error), 'a'])
    })
  })

  describe('two gateways on one database', () => {
    it('never work on the same conversation at once, and answer everything once and in order', async () => {
      const location = await engine.createLocation()
      const store = await openTestStore(location)
      const addresses = ['a', 'b', 'c']
      const turns = (await runGateways(location, { addresses, messagesEach: 12 })).flat()
      const byAddress = addresses.map((address) => {
        const ofAddress = turns.filter((turn) => turn.address === address).toSorted((a, b) => a.from - b.from)
        return ofAddress.every(({ from }, index) => from >= (ofAddress[index - 1]?.to ?? 0))
      })
      const orders: string[][] = []
      const replies: string[][] = []
      for (const address of addresses) {
        const id = (await store.conversations.find('chat', address))?.id ?? ''
        orders.push((await store.inbox.history(id, 100)).map(({ text }) => text))
        replies.push((await store.outbox.history(id, 100)).map(({ reply }) => reply.text))
      }
      expect({
        claims: turns.map(({ platformId, fence }) => `${platformId} ${fence}`).toSorted(),
        byAddress,
        replies,
        open: await store.inbox.listOpen(1),
      }).toEqual({
        claims: orders.flatMap((texts) => texts.map((text) => `${text} 1`)).toSorted(),
        byAddress: [true, true, true],
        replies: orders,
        open: [],
      })
      expect(turns).toHaveLength(2 * 3 * 12)
    })

    it('create the tables once when they start at the same time', async () => {
      const location = await engine.createLocation()
      expect(await runGateways(location, { addresses: ['a'], messagesEach: 0 })).toEqual([[], []])
    })

    it.skipIf(engine.name === 'sqlite')('wake each other once work is committed', async () => {
      const location = await engine.createLocation()
      const [one, other] = [await openTestStore(location), await openTestStore(location)]
      const onWork = vi.fn<() => void>()
      const unlisten = await other.listen(onWork)
      onTestFinished(unlisten)
      const before = await one.transaction(async (tables) => {
        await tables.conversations.enter({ channel: CHANNEL, address: 'a' }, 'a', 1)
        const message = newMessage({ id: 'one', conversationId: 'a', seq: 1 })
        await tables.inbox.add(message, 'open', null, 1)
        await tables.jobs.enqueue(message, 0, 1)
        // A round trip, after which a notification sent too early would have arrived.
        await other.conversations.get('a')
        return onWork.mock.calls.length
      })
      await vi.waitFor(() => expect(onWork).toHaveBeenCalled(), { timeout: 60_000, interval: 10 })
      expect(before).toBe(0)
    })

    it.skipIf(engine.name === 'sqlite')('survive connections lost in the middle of a transaction', async () => {
      const location = await engine.createLocation()
      const [store, other] = [await openTestStore(location), storeOn(await openEngine(location))]
      onTestFinished(() => other.close())
      const lost = store.transaction(async (tables) => {
        await tables.projects.put({ id: 'lost', directory: '/srv' }, 'file', 1)
        const others = sql`from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
        await sql`select pg_terminate_backend(pid) ${others}`.execute(other.db)
        await tables.projects.put({ id: 'lost too', directory: '/srv' }, 'file', 1)
      })
      const outcome = await lost.catch((error: { code?: string }) => error.code)
      await store.projects.put({ id: 'kept', directory: '/srv' }, 'file', 1)
      expect([outcome, await store.projects.list()]).toEqual([
        'store_unavailable',
        [{ id: 'kept', directory: '/srv', source: 'file', instance: 'kept~1', createdAt: 1, updatedAt: 1 }],
      ])
    })

    it.skipIf(engine.name === 'sqlite')('are notified of work again after the connection was lost', async () => {
      const location = await engine.createLocation()
      const stage = storeOn(await openEngine(location))
      onTestFinished(() => stage.close())
      const other = await openTestStore(location)
      const onWork = vi.fn<() => void>()
      const unlisten = await other.listen(onWork)
      onTestFinished(unlisten)
      const listener = sql`from pg_stat_activity where datname = current_database() and query like 'listen %'`
      const listening = async () => (await sql<{ pid: number }>`select pid ${listener}`.execute(stage.db)).rows[0]?.pid
      const first = await listening()
      await sql`select pg_terminate_backend(${first}::int)`.execute(stage.db)
      await vi.waitFor(async () => expect([undefined, first]).not.toContain(await listening()), {
        timeout: 60_000,
        interval: 50,
      })
      await sql`select pg_notify('aetheel_work', '')`.execute(stage.db)
      await vi.waitFor(() => expect(onWork).toHaveBeenCalled(), { timeout: 60_000, interval: 10 })
    })
  })

  describe('the tables', () => {
    it('are created once, and keep their rows when the database is opened again', async () => {
      const location = await engine.createLocation()
      const first = await openTestStore(location)
      await first.projects.put({ id: 'site', directory: '/srv/site' }, 'file', 1)
      const second = await openTestStore(location)
      expect(await second.projects.list()).toEqual([
        { id: 'site', directory: '/srv/site', source: 'file', instance: 'site~1', createdAt: 1, updatedAt: 1 },
      ])
    })

    it('of a newer Aetheel are refused and left as they are', async () => {
      const location = await engine.createLocation()
      await (await openTestStore(location)).projects.put({ id: 'site', directory: '/srv/site' }, 'file', 1)
      const raw = storeOn(await openEngine(location))
      onTestFinished(() => raw.close())
      await sql`insert into kysely_migration (name, timestamp) values ('9999-later', '2999-01-01')`.execute(raw.db)
      const error = await openStore(location, log).catch((error: unknown) => error)
      expect([error, await raw.projects.list()]).toEqual([
        expect.objectContaining({
          code: 'store_unavailable',
          message: expect.stringMatching(/9999-later.*newer Aetheel.*use that version or another database/),
        }),
        [{ id: 'site', directory: '/srv/site', source: 'file', instance: 'site~1', createdAt: 1, updatedAt: 1 }],
      ])
    })

    it.each(['0001-core', '0001-tables'])(
      'of a version before 0.1.0, %s, are refused with advice and left as they are',
      async (name) => {
        const location = await engine.createLocation()
        const raw = storeOn(await openEngine(location))
        onTestFinished(() => raw.close())
        await makeUnreleased(raw.db, name)
        const before = await raw.db.introspection.getTables()
        const error = await openStore(location, log).catch((error: unknown) => error)
        expect([error, await raw.db.introspection.getTables()]).toEqual([
          expect.objectContaining({ code: 'store_unavailable', message: expect.stringMatching(UNRELEASED) }),
          before,
        ])
      },
    )

    it('are all created, or none', async () => {
      const location = await engine.createLocation()
      const raw = storeOn(await openEngine(location))
      onTestFinished(() => raw.close())
      await sql`create table audit (id text)`.execute(raw.db)
      const error = await openStore(location, log).catch((error: unknown) => error)
      await sql`drop table audit`.execute(raw.db)
      const store = await openTestStore(location)
      expect([error, await store.audit.list(1)]).toEqual([expect.objectContaining({ code: 'store_unavailable' }), []])
    })
  })
}

const UNRELEASED = /before Aetheel 0\.1\.0.*move aetheel\.db .*away, or set DATABASE_URL to another database/

/** As a version before 0.1.0 created it. */
export async function makeUnreleased(db: Kysely<Schema>, name = '0001-core'): Promise<void> {
  const core: Migration = { up: (tx) => tx.schema.createTable('projects').addColumn('id', 'text').execute() }
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ [name]: core }) } })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw new Error('The tables cannot be made', { cause: error })
}

async function openEngine({ file, databaseUrl }: StoreLocation) {
  return databaseUrl === undefined ? openSqlite(file) : openPostgres(databaseUrl, log)
}

/** Runs two at once, and returns the turns of each. */
async function runGateways(
  location: StoreLocation,
  work: Pick<GatewayProcessOptions, 'addresses' | 'messagesEach'>,
): Promise<Turn[][]> {
  const gateways = await Promise.all(['one', 'two'].map((gatewayId) => startGateway({ ...work, gatewayId, location })))
  return Promise.all(gateways.map(({ go }) => go()))
}

async function startGateway(options: GatewayProcessOptions): Promise<{ go(): Promise<Turn[]> }> {
  const gateway = spawn(process.execPath, [PROCESS, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void gateway.kill('SIGKILL'))
  const lines = createInterface({ input: gateway.stdout })[Symbol.asyncIterator]()
  await lines.next()
  return {
    go: async () => {
      gateway.stdin.write('go\n')
      const { value, done } = await lines.next()
      if (done) throw new Error(`The gateway ${options.gatewayId} ended before its work was done`)
      return JSON.parse(value) as Turn[]
    },
  }
}
