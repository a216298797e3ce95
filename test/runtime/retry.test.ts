import { describe, expect, it } from 'vitest'
import type { FailureReason } from '../../src/backends/types.js'
import { attemptsInAll, planRetry } from '../../src/runtime/retry.js'

const NOW = 1_000_000

function plan(reason: FailureReason, failures: number, retryAt?: number) {
  const failure = { reason, message: 'no', report: 'no', ...(retryAt !== undefined && { retryAt }) }
  return planRetry(failure, { failures, timeouts: 0, workedMs: 0 }, NOW)
}

describe('a retry', () => {
  it.each<[FailureReason, boolean]>([
    ['exit', true],
    ['timeout', true],
    ['spawn', true],
    ['no_result', true],
    ['rate_limit', true],
    ['auth', false],
    ['cancelled', false],
    ['session_lost', false],
    ['max_turns', false],
    ['refused', false],
  ])('after %s would help: %s', (reason, helps) => {
    expect(plan(reason, 0)).toEqual(helps ? { at: NOW + 5_000, isAttempt: true } : undefined)
  })

  it('does not help if the executable or the directory is missing', () => {
    const failure = { reason: 'spawn', message: 'no', report: 'no', isLasting: true } as const
    expect(planRetry(failure, { failures: 0, timeouts: 0, workedMs: 0 }, NOW)).toBeUndefined()
  })

  it.each([
    [0, 5_000],
    [1, 10_000],
    [2, 20_000],
    [3, undefined],
    [4, undefined],
  ])('after %i failures before this one comes in %s ms', (failures, delayMs) => {
    expect(plan('exit', failures)).toEqual(delayMs && { at: NOW + delayMs, isAttempt: true })
  })

  it.each([0, 3])('waits for the end of a limit that is named, as no attempt, after %i failures', (failures) => {
    expect(plan('rate_limit', failures, NOW + 3_600_000)).toEqual({ at: NOW + 3_605_000, isAttempt: false })
  })

  it.each([
    ['is over', -3_600_000, 0, 5_000],
    ['ends before the next attempt', 4_000, 0, 5_000],
    ['ends after it', 30_000, 1, 30_000],
    ['would have been the last', 30_000, 3, undefined],
  ])('counts as an attempt when the limit %s', (_, endsInMs, failures, delayMs) => {
    const expected = delayMs === undefined ? undefined : { at: NOW + delayMs, isAttempt: true }
    expect(plan('rate_limit', failures, NOW + endsInMs)).toEqual(expected)
  })

  it.each([
    ['timeout', 1, 0, { timeoutRetries: 1 }],
    ['timeout', 0, 0, { timeoutRetries: 0 }],
    ['timeout', 1, 60_000, { totalMs: 60_000 }],
    ['exit', 1, 60_000, { totalMs: 60_000 }],
  ] as const)('after %s, %i failures and %i ms of work does not come with %j', (reason, failures, workedMs, limits) => {
    const failure = { reason, message: 'no', report: 'no' }
    expect(planRetry(failure, { failures, timeouts: failures, workedMs }, NOW, limits)).toBeUndefined()
    expect(planRetry(failure, { failures, timeouts: failures, workedMs }, NOW)).toBeDefined()
  })

  it('after a first time-out comes also when other failures were before it', () => {
    const tried = { failures: 1, timeouts: 0, workedMs: 0 }
    const failure = { reason: 'timeout', message: 'no', report: 'no' } as const
    expect(planRetry(failure, tried, NOW, { timeoutRetries: 1 })).toBeDefined()
  })

  it('takes no notice of a time that other failures name', () => {
    expect(plan('exit', 0, NOW + 3_600_000)).toEqual({ at: NOW + 5_000, isAttempt: true })
  })
})

describe('the attempts in all', () => {
  it.each([
    ['a failure', 'exit', 0, {}, 4],
    ['a second failure', 'exit', 1, {}, 4],
    ['the last failure', 'exit', 3, {}, 4],
    ['a time-out that is tried again once', 'timeout', 0, { timeoutRetries: 1 }, 2],
    ['a time-out, within half of the time for all', 'timeout', 0, { totalMs: 120_000 }, 2],
    ['what no retry can help', 'auth', 0, {}, 1],
  ] as const)('after %s', (_, reason, failures, limits, attempts) => {
    const failure = { reason, message: 'no', report: 'no' }
    const tried = { failures, timeouts: 0, workedMs: 60_000 }
    expect(attemptsInAll(failure, 60_000, tried, limits)).toBe(attempts)
  })
})
