import { expect, it } from 'vitest'
import { formatBytes, formatCount, formatDuration, formatMoney, formatRelative } from '../../web/src/format.js'
import { hrefOf, parseHash } from '../../web/src/router.js'

it('formats durations, money, counts and relative times for people', () => {
  expect([
    [0, 850, 4200, 59_999, 200_000, 7_500_000].map(formatDuration),
    [0, 0.0042, 0.25, 12.5].map(formatMoney),
    [0, 999, 1000, 12_345, 123_456, 4_100_000].map(formatCount),
    [0, 850, 12_345, 4_100_000].map(formatBytes),
    [100_000, 104_000, 70_000, 0, -7_200_000, -200_000_000, 160_000].map((at) => formatRelative(at, 100_000)),
  ]).toEqual([
    ['0 ms', '850 ms', '4.2 s', '59 s', '3 min 20 s', '2 h 5 min'],
    ['$0', '$0.0042', '$0.25', '$12.50'],
    ['0', '999', '1.0k', '12.3k', '123k', '4.1M'],
    ['0 B', '850 B', '12.3 KB', '4.1 MB'],
    ['just now', 'now', 'just now', '1 min ago', '2 h ago', '2 d ago', 'in 1 min'],
  ])
})

it('parses whatever is in the address bar', () => {
  const read = ['', '#/usage?days=7', '#/conversations/a%2Fb?q=x', '#//%E0%A4%A', hrefOf('projects', 'a/b')].map(
    (hash) => {
      const { page, parts, query } = parseHash(hash)
      return [page, parts, query.toString()]
    },
  )
  expect(read).toEqual([
    ['home', [], ''],
    ['usage', [], 'days=7'],
    ['conversations', ['a/b'], 'q=x'],
    ['%E0%A4%A', [], ''],
    ['projects', ['a/b'], ''],
  ])
})
