import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CompiledQuery, Kysely } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import { Approvals } from '../../src/store/approvals.js'
import { Figures } from '../../src/store/figures.js'
import { Inbox } from '../../src/store/inbox.js'
import { Outbox } from '../../src/store/outbox.js'
import { Runs } from '../../src/store/runs.js'
import type { Schema } from '../../src/store/schema.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { migrate } from '../../src/store/store.js'

interface Tables {
  inbox: Inbox
  outbox: Outbox
  approvals: Approvals
  runs: Runs
  figures: Figures
}

const SIGHT = { projects: [{ id: 'shop', instance: 'i' }], seesPrivate: false }
const SESSIONS = { conversationId: 'a', directory: '/srv', since: 1, sight: SIGHT }

/** Which tables SQLite reads from end to end when it knows of the queries no more than their text. */
async function scansOf(ask: (tables: Tables) => Promise<unknown>) {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-indexes-'))
  const engine = await openSqlite(join(directory, 'aetheel.db'))
  const asked: CompiledQuery[] = []
  const db = new Kysely<Schema>({ dialect: engine.dialect, log: ({ query }) => void asked.push(query) })
  onTestFinished(async () => {
    await db.destroy()
    rmSync(directory, { recursive: true })
  })
  await migrate(db)
  asked.length = 0
  await ask({
    inbox: new Inbox(db, engine, db),
    outbox: new Outbox(db, engine),
    approvals: new Approvals(db),
    runs: new Runs(db, engine, db),
    figures: new Figures(db),
  })
  const steps: string[] = []
  for (const { sql, parameters } of [...asked]) {
    const unknown = parameters.map(() => null)
    const { rows } = await db.executeQuery(CompiledQuery.raw(`explain query plan ${sql}`, unknown))
    steps.push(...(rows as Array<{ detail: string }>).map(({ detail }) => detail))
  }
  expect(steps).not.toEqual([])
  const { rows } = await db.executeQuery(CompiledQuery.raw(`select name from sqlite_schema where type = 'table'`))
  const tables = new Set((rows as Array<{ name: string }>).map(({ name }) => name))
  return steps.filter((step) => tables.has(/^SCAN (\w+)$/.exec(step)?.[1] ?? ''))
}

it.each([
  ['a message to work on', ({ inbox }) => inbox.claim('one', ['chat'], 1, 1)],
  ['a reply to send', ({ outbox }) => outbox.claim('one', ['chat'], 1, 1)],
  ['replies that are too late', ({ outbox }) => outbox.expire(1)],
  ['questions of a run that is over', ({ approvals }) => approvals.withdraw('m1', 1)],
  ['dead letters that may be seen', ({ inbox }) => inbox.listFailed(9, SIGHT)],
  ['replies that may be seen', ({ outbox }) => outbox.list('undelivered', 9, SIGHT)],
  ['questions that may be seen', ({ approvals }) => approvals.list({ sight: SIGHT }, 9)],
  ['the figures of a month that may be seen', ({ figures }) => figures.of('day', { sight: SIGHT, from: 1, to: 2 })],
  ['sessions that may be seen', ({ runs }) => runs.sessions(SESSIONS, 9)],
  ['what a project has used in a month', ({ runs }) => runs.usage({ projectId: 'shop' }, 1)],
  ['what a conversation has used', ({ runs }) => runs.usage({ conversationId: 'a' }, 0)],
  ['what heartbeats have used in a day', ({ runs }) => runs.usage({ kind: 'heartbeat' }, 1)],
] satisfies Array<[string, Parameters<typeof scansOf>[0]]>)(
  'finds %s without looking at all there ever was',
  async (_what, ask) => {
    expect(await scansOf(ask)).toEqual([])
  },
)
