import { createHash } from 'node:crypto'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLog } from '../../src/log.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { openStore, openStoreReadOnly, type Store, storeOn } from '../../src/store/store.js'
import { putDatabase } from '../kit/put-database.js'

const log = createLog({ level: 'silent' })
const FRAME_BYTES = 24 + 4_096

describe('what a killed gateway left', () => {
  it('is complete', async () => {
    const file = await killedAfter((store) => enterMany(store, 9))
    expect(await countIn(file)).toEqual(9)
  })

  it.each([
    ['damaged in its header', (wal: string) => flip(wal, 20)],
    ['damaged in its first frame', (wal: string) => flip(wal, 32 + 100)],
    ['damaged in the middle', (wal: string) => flip(wal, Math.floor(readFileSync(wal).length / 2))],
    ['damaged in its last frame', (wal: string) => flip(wal, readFileSync(wal).length - 100)],
    ['cut off', (wal: string) => truncateSync(wal, readFileSync(wal).length - FRAME_BYTES)],
    ['empty', (wal: string) => truncateSync(wal)],
    ['gone', (wal: string) => rmSync(wal)],
  ])('is refused and not touched if its log is %s', async (_how, damage) => {
    const file = await killedAfter((store) => enterMany(store, 9))
    damage(`${file}-wal`)
    const before = readAll(file)
    const refused = {
      code: 'store_corrupt',
      message: `${file}-wal is damaged or missing, so some recent changes are lost. Nothing was touched. Restore a backup of the database and remove ${file}-mark, or only remove ${file}-mark to continue without them.`,
    }
    await expect(openStore({ file }, log)).rejects.toMatchObject(refused)
    await expect(openStoreReadOnly({ file }, log)).rejects.toMatchObject(refused)
    expect(readAll(file)).toEqual(before)
  })

  it('is used without the lost changes if the operator says so', async () => {
    const file = await killedAfter((store) => enterMany(store, 9))
    flip(`${file}-wal`, Math.floor(readFileSync(`${file}-wal`).length / 2))
    rmSync(`${file}-mark`)
    expect(await countIn(file)).toBeLessThan(9)
  })

  it('is accepted if more was written than had been flushed', async () => {
    const file = await killedAfter((store) => enterMany(store, 9))
    appendFileSync(`${file}-wal`, Buffer.alloc(2 * FRAME_BYTES, 1))
    expect(await countIn(file)).toEqual(9)
  })

  it('is complete after a large transaction that was rolled back', async () => {
    const file = await killedAfter(async (store) => {
      await enterMany(store, 3)
      const undone = store.transaction(async ({ conversations }) => {
        for (let index = 0; index < 40; index += 1) {
          await conversations.enter({ channel: 'undone', address: `${index} ${'x'.repeat(200_000)}` }, `u${index}`, 1)
        }
        throw new Error('no')
      })
      await expect(undone).rejects.toThrow('no')
      await enterMany(store, 4)
    })
    expect(await countIn(file)).toEqual(4)
  })

  it('is found damaged even after the log has restarted', async () => {
    const file = await killedAfter(async (store) => {
      await enterMany(store, 20)
      await sql`pragma wal_checkpoint(RESTART)`.execute(store.db)
      await enterMany(store, 25)
    })
    const copy = copyOf(file)
    flip(`${file}-wal`, 32 + 100)
    expect(await countIn(copy)).toEqual(25)
    await expect(openStore({ file }, log)).rejects.toMatchObject({ code: 'store_corrupt' })
  })
})

it('leaves no mark after an orderly end, so that a backup can take its place', async () => {
  const file = await killedAfter((store) => enterMany(store, 9))
  await (await openStoreReadOnly({ file }, log)).close()
  const counted = await countIn(file)
  rmSync(file)
  putDatabase({ file })
  expect([counted, await countIn(file)]).toEqual([9, 0])
})

it('refuses a file with a damaged page even after an orderly end', async () => {
  const file = join(createDirectory(), 'aetheel.db')
  putDatabase({ file })
  const store = await openStore({ file }, log)
  await enterMany(store, 200)
  await store.close()
  const bytes = readFileSync(file)
  // The type of a page with rows.
  const page = Array.from({ length: bytes.length / 4_096 }, (_, index) => index * 4_096).findLast(
    (at) => at > 0 && bytes[at] === 0x0d,
  )
  flip(file, page ?? 0)
  await expect(openStore({ file }, log)).rejects.toMatchObject({ code: 'store_corrupt' })
})

/** The files as they were when the work was done, with nothing closed. */
async function killedAfter(work: (store: ReturnType<typeof storeOn>) => Promise<void>): Promise<string> {
  const file = join(createDirectory(), 'aetheel.db')
  putDatabase({ file })
  const store = storeOn(await openSqlite(file))
  try {
    await work(store)
    return copyOf(file)
  } finally {
    await store.close()
  }
}

function copyOf(file: string): string {
  const copy = join(createDirectory(), 'aetheel.db')
  for (const ending of ['', '-wal', '-mark']) copyFileSync(`${file}${ending}`, `${copy}${ending}`)
  return copy
}

function createDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-mark-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return directory
}

async function enterMany(store: Store, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await store.transaction(async ({ conversations }) => {
      await conversations.enter({ channel: 'test', address: String(index) }, String(index), 1)
    })
  }
}

async function countIn(file: string): Promise<number> {
  const store = await openStore({ file }, log)
  try {
    return (await store.conversations.addresses('test', 0)).length
  } finally {
    await store.close()
  }
}

function flip(file: string, place: number): void {
  const bytes = readFileSync(file)
  bytes[place] = (bytes[place] ?? 0) ^ 0xff
  writeFileSync(file, bytes)
}

/** A digest of each. */
function readAll(file: string): Array<string | undefined> {
  return ['', '-wal', '-mark'].map((ending) =>
    existsSync(file + ending)
      ? createHash('sha256')
          .update(readFileSync(file + ending))
          .digest('hex')
      : undefined,
  )
}
