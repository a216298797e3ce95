import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CompiledQuery, Kysely } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import type { Schema } from '../../src/store/schema.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { migrate, type Tables, tablesOn } from '../../src/store/store.js'

const VISIBILITY = { projects: [{ id: 'shop', instance: 'i' }], seesPrivate: false }
const SESSIONS = { conversationId: 'a', directory: '/srv', since: 1, visibility: VISIBILITY }

/** The tables that SQLite scans if it knows only the text of the queries. */
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
  await ask(tablesOn(db, db, engine))
  const found = await db.executeQuery(CompiledQuery.raw(`select name from sqlite_schema where type = 'table'`))
  const tables = (found.rows as Array<{ name: string }>).map(({ name }) => name)
  const steps: string[] = []
  const scans: string[] = []
  for (const { sql, parameters } of [...asked]) {
    const unknown = parameters.map(() => null)
    const { rows } = await db.executeQuery(CompiledQuery.raw(`explain query plan ${sql}`, unknown))
    const details = (rows as Array<{ detail: string }>).map(({ detail }) => detail)
    // The plan names a table by its alias.
    const aliases = [...sql.matchAll(/"(\w+)" as "(\w+)"/g)].flatMap(([, table = '', alias = '']) =>
      tables.includes(table) ? [alias] : [],
    )
    const names = new Set([...tables, ...aliases])
    steps.push(...details)
    scans.push(...details.filter((step) => names.has(/^SCAN (\w+)$/.exec(step)?.[1] ?? '')))
  }
  expect(steps).not.toEqual([])
  return scans
}

it.each([
  ['a message to work on', ({ jobs }) => jobs.claim('one', ['chat'], 1, 1)],
  ['a reply to send', ({ outbox }) => outbox.claim('one', ['chat'], 1, 1)],
  ['expired replies', ({ outbox }) => outbox.expire(1)],
  ['the questions of an ended run', ({ approvals }) => approvals.withdraw('m1', 1)],
  ['visible dead letters', ({ inbox }) => inbox.listFailed(9, VISIBILITY)],
  ['visible replies', ({ outbox }) => outbox.list('undelivered', 9, VISIBILITY)],
  ['visible questions', ({ approvals }) => approvals.list({ visibility: VISIBILITY }, 9)],
  ['the visible figures of a month', ({ figures }) => figures.of('day', { visibility: VISIBILITY, from: 1, to: 2 })],
  ['visible sessions', ({ runs }) => runs.sessions(SESSIONS, 9)],
  ['what a project has used in a month', ({ figures }) => figures.usage({ projectId: 'shop' }, 1)],
  ['what a conversation has used', ({ figures }) => figures.usage({ conversationId: 'a' }, 0)],
  ['what heartbeats have used in a day', ({ figures }) => figures.usage({ kind: 'heartbeat' }, 1)],
] satisfies Array<[string, Parameters<typeof scansOf>[0]]>)('finds %s without scanning a table', async (_what, ask) => {
  expect(await scansOf(ask)).toEqual([])
})
