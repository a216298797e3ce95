import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { decodeEntries, encodeEntries, InputHistory } from '../../../src/cli/chat/input-history.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

it('gives back every entry, of however many lines', () => {
  const entry = fc.oneof(
    fc.string({ minLength: 1 }),
    fc.constantFrom('a\nb', '\u001E', '\u001E"a"', '"a\\nb"', 'a\r\nb'),
  )
  fc.assert(
    fc.property(fc.array(entry), (entries) => {
      expect(decodeEntries(encodeEntries(entries))).toEqual(entries)
    }),
  )
})

it('reads a file of an earlier version, walks through it, and keeps each text once', () => {
  const file = join(temporaryDirectory(onTestFinished), 'chat-history')
  writeFileSync(file, 'first\n"second"\nthird\n')
  const history = new InputHistory(file, () => {})
  const walked = [
    history.step(-1, 'draft'),
    history.step(-1, 'third'),
    history.step(1, '"second"'),
    history.step(1, 'third'),
    history.step(1, 'x'),
  ]
  history.add('first')
  expect([walked, readFileSync(file, 'utf8')]).toEqual([
    ['third', '"second"', 'third', 'draft', undefined],
    '"second"\nthird\nfirst\n',
  ])
})
