import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CompiledQuery, Kysely } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import { Approvals } from '../../src/store/approvals.js'
import { Inbox } from '../../src/store/inbox.js'
import { Outbox } from '../../src/store/outbox.js'
import type { Schema } from '../../src/store/schema.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { migrate } from '../../src/store/store.js'

/** Which tables SQLite reads from end to end when it knows of the queries no more than their text. */
async function scansOf(ask: (tables: { inbox: Inbox; outbox: Outbox; approvals: Approvals }) => Promise<unknown>) {
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
  await ask({ inbox: new Inbox(db, engine), outbox: new Outbox(db, engine), approvals: new Approvals(db) })
  const steps: string[] = []
  for (const { sql, parameters } of [...asked]) {
    const unknown = parameters.map(() => null)
    const { rows } = await db.executeQuery(CompiledQuery.raw(`explain query plan ${sql}`, unknown))
    steps.push(...(rows as Array<{ detail: string }>).map(({ detail }) => detail))
  }
  expect(steps).not.toEqual([])
  return steps.filter((step) => step.startsWith('SCAN') && !step.includes('USING INDEX'))
}

it.each([
  ['a message to work on', ({ inbox }) => inbox.claim('one', ['chat'], 1, 1)],
  ['a reply to send', ({ outbox }) => outbox.claim('one', ['chat'], 1, 1)],
  ['replies that are too late', ({ outbox }) => outbox.expire(1)],
  ['questions of a run that is over', ({ approvals }) => approvals.withdraw('m1', 1)],
] satisfies Array<[string, Parameters<typeof scansOf>[0]]>)(
  'finds %s without looking at all there ever was',
  async (_what, ask) => {
    expect(await scansOf(ask)).toEqual([])
  },
)
