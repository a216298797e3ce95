import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LogFlush } from '../../src/store/commit-log.js'
import { migrate, type Store, storeOn } from '../../src/store/store.js'
import { openSqlite } from '../../src/store/sqlite.js'

describe('a commit', () => {
  it('is reported when it is on disk, not before; meanwhile others commit', async () => {
    const { store, disk } = await setup()
    const reported: string[] = []
    disk.stall()
    const first = enter(store, 'a').then(() => reported.push('a'))
    await disk.requested()
    const second = enter(store, 'b').then(() => reported.push('b'))
    const seen = (await store.conversations.find('test', 'b'))?.id
    const reportedBefore = [...reported]
    disk.resume()
    await Promise.all([first, second])
    expect([seen, reportedBefore, reported]).toEqual(['b', [], ['a', 'b']])
  })

  it.each(['transaction', 'write'] as const)(
    'of a %s is announced earlier, once, to a caller who asks for that',
    async (way) => {
      const { store, disk } = await setup()
      const announced: string[] = []
      const undone = store[way](
        () => Promise.reject(new Error('no')),
        () => announced.push('undone'),
      )
      await expect(undone).rejects.toThrow('no')
      disk.stall()
      const place = { channel: 'test', address: 'a' }
      const kept = store[way](
        ({ conversations }) => conversations.enter(place, 'a', 1),
        ({ id }) => announced.push(id),
      )
      await disk.requested()
      const announcedBefore = [...announced]
      disk.fail()
      await expect(kept).rejects.toThrow('may not be on disk')
      expect([announcedBefore, announced]).toEqual([['a'], ['a']])
    },
  )

  it('shares a flush with all commits made while the disk was busy', async () => {
    const { store, disk } = await setup()
    disk.stall()
    const first = enter(store, 'first')
    await disk.requested()
    const flushesBefore = disk.flushes
    const others = Array.from({ length: 20 }, (_, index) => enter(store, `other-${index}`))
    await store.conversations.find('test', 'other-19')
    disk.resume()
    await Promise.all([first, ...others])
    expect(disk.flushes - flushesBefore).toEqual(1)
  })

  it('is flushed even if it is a single statement without a transaction', async () => {
    const { store, disk } = await setup()
    const flushesBefore = disk.flushes
    await store.conversations.enter({ channel: 'test', address: 'a' }, 'a', 1)
    await store.conversations.configure('a', { model: 'large' })
    expect(disk.flushes - flushesBefore).toEqual(2)
  })

  it('is not flushed if it changed nothing', async () => {
    const { store, disk } = await setup()
    const flushesBefore = disk.flushes
    await store.transaction(async ({ jobs, conversations }) => {
      await jobs.claim('g1', ['test'], 1, 1_000)
      await conversations.get('a')
    })
    await store.conversations.configure('nobody', { model: 'large' })
    expect(disk.flushes - flushesBefore).toEqual(0)
  })

  it('fails when the disk does, and so does every later one, whatever the disk says then', async () => {
    const { store, disk } = await setup()
    disk.fail()
    const first = await enter(store, 'a').catch((error: unknown) => error)
    disk.resume()
    const later = await enter(store, 'b').catch((error: unknown) => error)
    const problem = {
      code: 'store_unavailable',
      message: 'The latest changes may not be on disk: EIO. Check the disk, then restart the gateway.',
    }
    expect([first, later, await store.conversations.find('test', 'b')]).toEqual([
      expect.objectContaining(problem),
      expect.objectContaining(problem),
      undefined,
    ])
  })

  it('that fails does not affect the transaction after it', async () => {
    const { store, disk } = await setup()
    disk.stall()
    const first = enter(store, 'a').catch((error: unknown) => error)
    await disk.requested()
    let isOpen = (): void => {}
    const opened = new Promise<void>((resolve) => {
      isOpen = resolve
    })
    const second = store.transaction(async ({ conversations }) => {
      await conversations.enter({ channel: 'test', address: 'b' }, 'b', 1)
      isOpen()
      await first
      return (await conversations.get('b'))?.id
    })
    await opened
    disk.fail()
    const outcomes = await Promise.allSettled([first, second])
    expect([outcomes[0]?.status, (await store.conversations.find('test', 'b'))?.id]).toEqual(['fulfilled', 'b'])
  })
})

describe('the log that is flushed', () => {
  it('is that of the file itself if the database is a link', async () => {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-flush-')))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    mkdirSync(join(directory, 'volume'))
    symlinkSync(join(directory, 'volume', 'real.db'), join(directory, 'aetheel.db'))
    const opened: string[] = []
    const openLogAt = async (file: string) => {
      opened.push(file)
      return new Disk()
    }
    const store = storeOn(await openSqlite(join(directory, 'aetheel.db'), false, openLogAt))
    await migrate(store.db)
    expect([opened, existsSync(opened[0] ?? '')]).toEqual([[join(directory, 'volume', 'real.db-wal')], true])
    await store.close()
  })

  it.each(Array.from({ length: 9 }, (_, hops) => hops))(
    'is flushed once at a time, however late others come: %i',
    async (hops) => {
      let underWay = 0
      let most = 0
      const flush = new LogFlush(async () => ({
        async datasync() {
          underWay += 1
          most = Math.max(most, underWay)
          await nextTurn()
          underWay -= 1
        },
        async close() {},
      }))
      const first = flush.flush()
      const second = flush.flush()
      await first
      const others: Promise<void>[] = []
      for (let hop = 0; hop < hops; hop += 1) {
        await Promise.resolve()
        others.push(flush.flush())
      }
      await Promise.all([second, ...others])
      await flush.close()
      expect([most, underWay]).toEqual([1, 0])
    },
  )
})

async function setup(): Promise<{ store: Store; disk: Disk }> {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-flush-'))
  const disk = new Disk()
  const store = storeOn(await openSqlite(join(directory, 'aetheel.db'), false, async () => disk))
  onTestFinished(async () => {
    disk.resume()
    await store.close()
    rmSync(directory, { recursive: true })
  })
  await migrate(store.db)
  return { store, disk }
}

async function enter(store: Store, address: string): Promise<void> {
  await store.transaction(async ({ conversations }) => {
    await conversations.enter({ channel: 'test', address }, address, 1)
  })
}

/** A disk that stalls and fails on demand. */
class Disk {
  flushes = 0
  #isStalled = false
  #error: Error | undefined
  #resume = (): void => {}
  #onRequested = (): void => {}

  stall(): void {
    this.#isStalled = true
  }

  fail(): void {
    this.#error = new Error('EIO')
    this.#resume()
  }

  resume(): void {
    this.#isStalled = false
    this.#error = undefined
    this.#resume()
  }

  /** Settles when a flush waits. */
  requested(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRequested = resolve
    })
  }

  async datasync(): Promise<void> {
    this.flushes += 1
    if (this.#isStalled) {
      this.#onRequested()
      await new Promise<void>((resolve) => {
        this.#resume = resolve
      })
    }
    if (this.#error) throw this.#error
  }

  async close(): Promise<void> {}
}
