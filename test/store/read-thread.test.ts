import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CompiledQuery, Kysely } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import { openSqlite } from '../../src/store/sqlite.js'

const COUNTED =
  'with recursive counted (n) as (select 1 union all select n + 1 from counted where n < ?) select n from counted'

it('answers each query completely, however long the answer, or with its own error', async () => {
  const { ask } = await setup()
  const [long, failed, short] = await Promise.allSettled([ask(COUNTED, 2_500), ask('select missing'), ask(COUNTED, 1)])
  const all = Array.from({ length: 2_500 }, (_, index) => ({ n: index + 1 }))
  expect([long, failed, short]).toEqual([
    { status: 'fulfilled', value: all },
    { status: 'rejected', reason: expect.objectContaining({ message: expect.stringContaining('no such column') }) },
    { status: 'fulfilled', value: [{ n: 1 }] },
  ])
})

it('changes nothing', async () => {
  const { ask } = await setup()
  await expect(ask('create table more (text text)')).rejects.toMatchObject({ code: 'store_unavailable' })
})

it('releases the file when it is closed, and answers nothing after that', async () => {
  const { reads, ask } = await setup()
  await ask(COUNTED, 1)
  await reads.destroy()
  await expect(ask(COUNTED, 1)).rejects.toThrow('destroyed')
})

async function setup() {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-reads-'))
  const { dialect, reads: readsDialect = dialect } = await openSqlite(join(directory, 'aetheel.db'))
  const [db, reads] = [new Kysely<object>({ dialect }), new Kysely<object>({ dialect: readsDialect })]
  const ask = async (text: string, ...values: unknown[]) =>
    (await reads.executeQuery(CompiledQuery.raw(text, values))).rows
  await db.executeQuery(CompiledQuery.raw('create table notes (text text)'))
  onTestFinished(async () => {
    await reads.destroy()
    await db.destroy()
    rmSync(directory, { recursive: true })
  })
  return { reads, ask }
}
