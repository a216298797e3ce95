import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { watchTurn } from '../../../src/backends/engine/turn.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function watch(limits: { timeoutMs: number; idleTimeoutMs: number; spentMs?: number }) {
  const failures: string[] = []
  const turn = watchTurn({ ...limits, elapsed: Date.now, onTimeout: ({ message }) => void failures.push(message) })
  return { turn, failures }
}

it('the clock of a turn stands still until all its waits are over', () => {
  const { turn, failures } = watch({ timeoutMs: 1_000, idleTimeoutMs: 400, spentMs: 100 })
  vi.advanceTimersByTime(300)
  turn.pause()
  vi.advanceTimersByTime(5_000)
  turn.pause()
  turn.resume()
  turn.alive()
  vi.advanceTimersByTime(5_000)
  turn.resume()
  vi.advanceTimersByTime(300)
  turn.alive()
  vi.advanceTimersByTime(299)
  expect(failures).toEqual([])
  vi.advanceTimersByTime(1)
  expect(failures).toEqual(['The agent did not finish within 1 s.'])
  turn.end()
})

it('silence counts from the moment the wait is over', () => {
  const { turn, failures } = watch({ timeoutMs: 60_000, idleTimeoutMs: 400 })
  turn.pause()
  vi.advanceTimersByTime(5_000)
  turn.resume()
  vi.advanceTimersByTime(399)
  expect(failures).toEqual([])
  vi.advanceTimersByTime(1)
  expect(failures).toEqual(['The agent printed nothing for 0.4 s.'])
  turn.end()
})

it('a wait that ends after the turn starts no clock', () => {
  const { turn, failures } = watch({ timeoutMs: 1_000, idleTimeoutMs: 400 })
  turn.pause()
  turn.end()
  turn.resume()
  vi.advanceTimersByTime(60_000)
  expect([failures, vi.getTimerCount()]).toEqual([[], 0])
})
