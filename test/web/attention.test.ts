import { expect, it } from 'vitest'
import { newsOf } from '../../web/src/frame/attention.js'

it.each([
  [undefined, { state: 'idle', asked: 0 }, undefined],
  [{ state: 'running', asked: 0 }, { state: 'running', asked: 1 }, 'asked'],
  [{ state: 'running', asked: 1 }, { state: 'running', asked: 1 }, undefined],
  [{ state: 'running', asked: 1 }, { state: 'idle', asked: 0 }, 'ended'],
  [{ state: 'waiting', asked: 0 }, { state: 'idle', asked: 0 }, 'ended'],
  [{ state: 'idle', asked: 0 }, { state: 'running', asked: 0 }, undefined],
] as const)('from %j to %j is news: %s', (before, now, expected) => {
  expect(newsOf(before, now)).toBe(expected)
})
