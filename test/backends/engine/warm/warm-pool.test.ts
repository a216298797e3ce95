import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { WarmProcess } from '../../../../src/backends/engine/warm/warm-process.js'
import {
  type WarmLease,
  type WarmLimits,
  type WarmNeeds,
  WarmPool,
} from '../../../../src/backends/engine/warm/warm-pool.js'
import type { ProcessExit } from '../../../../src/processes/local-process.js'
import { SILENT_LOG } from '../../../kit/log.js'

const NEVER = new AbortController().signal
const GIGABYTE = 1024 ** 3

/** A pool of fake shared processes, which end as soon as they are told to. */
function setup(limits: Partial<WarmLimits> = {}, memory: (pids: number[]) => number[] = (pids) => pids.map(() => 0)) {
  const log = SILENT_LOG
  let time = 0
  const pool = new WarmPool({
    log,
    limits: { liveIdleMs: 600_000, liveMaxProcesses: 8, liveMaxMemoryMb: 4096, liveSpare: false, ...limits },
    memory,
    now: () => time,
  })
  const acquire = (session: string | undefined, needs: Partial<WarmNeeds> = {}): Promise<WarmLease | undefined> =>
    pool.acquire(
      {
        ...{ key: 'key', session, isShared: true, locksSessions: false, isUntrusted: false },
        open: async () => madeUpProcess(),
        ...needs,
      },
      NEVER,
    )
  return { pool, acquire, pass: (ms: number) => (time += ms) }
}

function madeUpProcess(): WarmProcess {
  let isOver = false
  let end = (_exit: ProcessExit): void => {}
  const ended = new Promise<ProcessExit>((resolve) => {
    end = resolve
  })
  return {
    pid: process.pid,
    connection: { ready: Promise.resolve(), ping: async () => {}, receive() {}, begin: () => unused() },
    ended,
    get isOver() {
      return isOver
    },
    listen: () => () => {},
    discardEarlierStderr: async () => {},
    stderr: () => '',
    endStrays: async () => {},
    stop() {
      isOver = true
      end({ exitCode: 0 })
    },
  }
}

function unused(): never {
  throw new Error('No turn is begun here')
}

it('after a change of the configuration a session continues in its process while others are busy there', async () => {
  const { pool, acquire } = setup()
  await (await acquire('one'))?.release('one')
  const busy = await acquire('two')
  pool.drain()
  const again = await acquire('one')
  expect(again?.process).toBe(busy?.process)
  const other = await acquire('three')
  expect(other?.process).not.toBe(busy?.process)
  await Promise.all([again?.release('one'), busy?.release('two')])
  expect(busy?.process.isOver).toBe(true)
  expect((await acquire('one'))?.process).toBe(other?.process)
})

it('a session that moves waits for the turns of others only if they lock it', async () => {
  const { pool, acquire } = setup()
  await (await acquire('one'))?.release('one')
  await acquire('two')
  await pool.leave('one', NEVER)

  const locking = { key: 'locking', locksSessions: true }
  await (await acquire('three', locking))?.release('three')
  const busy = await acquire('four', locking)
  let hasLeft = false
  const leaving = pool.leave('three', NEVER).then(() => (hasLeft = true))
  await setImmediate()
  expect(hasLeft).toBe(false)
  await busy?.release('four')
  await leaving
})

it('waiting for the end of a process does not include later turns', async () => {
  const { pool, acquire } = setup()
  const needs = { locksSessions: true }
  for (const session of ['one', 'two']) await (await acquire(session, needs))?.release(session)
  const busy = await acquire('three', needs)
  const leaving = pool.leave('one', NEVER)
  const later = acquire('two', needs)
  await busy?.release('three')
  await leaving
  expect((await later)?.process).not.toBe(busy?.process)
})

it('one that ends after its turn keeps its slot until then', async () => {
  const { pool, acquire } = setup({ liveMaxProcesses: 1 })
  const busy = await acquire('one')
  pool.drain()
  expect(await acquire('two')).toBeUndefined()
  await busy?.release('one')
  expect(await acquire('two')).toBeDefined()
})

it('cancelling while a shared process starts does not take it from others', async () => {
  const { pool, acquire } = setup()
  let open = (_process: WarmProcess): void => {}
  const opening = new Promise<WarmProcess>((resolve) => {
    open = resolve
  })
  const cancelling = new AbortController()
  const needs = { key: 'key', isShared: true, locksSessions: false, isUntrusted: false, open: () => opening }
  const cancelled = pool.acquire({ ...needs, session: 'one' }, cancelling.signal)
  const other = acquire('two')
  cancelling.abort()
  await expect(cancelled).rejects.toThrow('abort')
  const process = madeUpProcess()
  open(process)
  expect((await other)?.process).toBe(process)
})

it.each([
  ['for a new session', false, 2],
  ['where it must be looked at first', true, 1],
])('starts a spare or not: %s', async (_, isUntrusted, count) => {
  const { acquire } = setup({ liveSpare: true })
  let opened = 0
  const open = async (): Promise<WarmProcess> => {
    opened += 1
    return madeUpProcess()
  }
  await (await acquire(undefined, { isShared: false, isUntrusted, open }))?.release('one')
  await setImmediate()
  expect(opened).toBe(count)
})

it('measures their memory at most once a second', async () => {
  let looks = 0
  const { acquire, pass } = setup({ liveMaxMemoryMb: 1024 }, (pids) => {
    looks += 1
    return pids.map(() => 2 * GIGABYTE)
  })
  await acquire('one')
  for (const session of ['two', 'three', 'four']) expect(await acquire(session, { key: session })).toBeUndefined()
  expect(looks).toBe(1)
  pass(1_000)
  await acquire('five', { key: 'five' })
  expect(looks).toBe(2)
})
