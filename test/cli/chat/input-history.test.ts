import { linkSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
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

it('leaves out what is too long, and never leaves the file half written', () => {
  const directory = temporaryDirectory(onTestFinished)
  const file = join(directory, 'chat-history')
  writeFileSync(file, 'first\n')
  linkSync(file, join(directory, 'as-it-was'))
  const history = new InputHistory(file, () => {})
  history.add('x'.repeat(10_001))
  const last = history.step(-1, '')
  history.add('second')
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8')
  // What was there was replaced, not written over.
  expect([last, read('chat-history'), read('as-it-was'), readdirSync(directory).toSorted()]).toEqual([
    'first',
    'first\nsecond\n',
    'first\n',
    ['as-it-was', 'chat-history'],
  ])
})
