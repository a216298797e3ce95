import { access } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, it, vi } from 'vitest'
import { abortable, backoffMs, startDeadline, wait, withDeadline, within } from '../../src/core/async.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

it('a deadline fires, whatever is garbage-collected in the meantime', async () => {
  let isOver = false
  const stopped = new AbortController()
  const listen = ({ signal }: { signal: AbortSignal }): void => {
    signal.addEventListener('abort', () => {
      isOver = true
    })
  }
  listen(startDeadline(20, stopped.signal))
  await expect
    .poll(() => {
      collectGarbage()
      return isOver
    })
    .toBe(true)
})

it('a deadline comes with another signal and its reason, and not after the work', async () => {
  const stopped = new AbortController()
  const reasons: unknown[] = []
  const note = async (signal: AbortSignal): Promise<void> => {
    signal.addEventListener('abort', () => reasons.push(signal.reason))
  }
  await withDeadline(60_000, stopped.signal, note)
  const { signal, clear } = startDeadline(60_000, stopped.signal)
  await note(signal)
  stopped.abort('stopped')
  clear()
  await withDeadline(60_000, stopped.signal, async (late) => void reasons.push(late.reason))
  expect(reasons).toEqual(['stopped', 'stopped'])
})

afterEach(() => {
  vi.useRealTimers()
})

it('waits that long, or until the signal', async () => {
  vi.useFakeTimers()
  const stopped = new AbortController()
  const settled: string[] = []
  void wait(1_000).then(() => settled.push('waited'))
  wait(1_000, { signal: stopped.signal }).catch((reason: unknown) => settled.push(String(reason)))
  await vi.advanceTimersByTimeAsync(999)
  stopped.abort('stopped')
  await vi.advanceTimersByTimeAsync(0)
  const before = [...settled]
  await vi.advanceTimersByTimeAsync(1)
  expect([before, settled]).toEqual([['stopped'], ['stopped', 'waited']])
})

it('has the answer in time, or none; a failure counts until then', async () => {
  vi.useFakeTimers()
  const never = new Promise<string>(() => {})
  const answers = Promise.allSettled([
    within(1_000, Promise.resolve('here')),
    within(1_000, Promise.reject(new Error('no'))),
    within(1_000, never),
  ])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(await answers).toEqual([
    { status: 'fulfilled', value: 'here' },
    { status: 'rejected', reason: new Error('no') },
    { status: 'fulfilled', value: undefined },
  ])
})

it('an answer that arrived while this process was held up is in time', async () => {
  const answer = access(import.meta.filename).then(() => 'here')
  const answered = within(10, answer)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  expect(await answered).toBe('here')
})

it('ends work that does not heed its signal', async () => {
  const stopped = new AbortController()
  const ended = abortable(stopped.signal, () => new Promise<never>(() => {}))
  stopped.abort(new Error('stopped'))
  await expect(ended).rejects.toThrow('stopped')
  await expect(abortable(stopped.signal, async () => 'late')).rejects.toThrow('stopped')
})

it('waits twice as long after each failure, up to a limit', () => {
  const backoff = { firstMs: 500, longestMs: 3_000 }
  expect([1, 2, 3, 4, 5, 2_000].map((failures) => backoffMs(failures, backoff))).toEqual([
    500, 1_000, 2_000, 3_000, 3_000, 3_000,
  ])
})
