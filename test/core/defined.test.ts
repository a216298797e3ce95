import { expect, test } from 'vitest'
import { defined } from '../../src/core/defined.js'

test('leaves out what is undefined, and nothing else', () => {
  const fields = defined({ a: undefined, b: null, c: false, d: '', e: 0, f: { g: undefined } })
  expect([Object.keys(fields), fields]).toStrictEqual([
    ['b', 'c', 'd', 'e', 'f'],
    { b: null, c: false, d: '', e: 0, f: { g: undefined } },
  ])
})
