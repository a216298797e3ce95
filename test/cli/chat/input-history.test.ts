import { execFile } from 'node:child_process'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, inject, it, onTestFinished } from 'vitest'
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

const NOW = (): number => 1_700_000_000_000

function fail(error: unknown): void {
  throw error
}

/** What a chat started now offers, latest first. */
function offered(file: string): string[] {
  const history = new InputHistory(file, NOW, fail)
  const entries: string[] = []
  for (let entry = history.step(-1, ''); entry !== undefined; entry = history.step(-1, '')) entries.push(entry)
  return entries
}

it('reads a file of an earlier version, walks through it, and offers each text once', () => {
  const file = join(temporaryDirectory(onTestFinished), 'chat-history')
  writeFileSync(file, 'first\n"second"\nthird\n')
  const history = new InputHistory(file, NOW, fail)
  const walked = [
    history.step(-1, 'draft'),
    history.step(-1, 'third'),
    history.step(1, '"second"'),
    history.step(1, 'third'),
    history.step(1, 'x'),
  ]
  history.add('first')
  expect([walked, history.step(-1, ''), offered(file)]).toEqual([
    ['third', '"second"', 'third', 'draft', undefined],
    'first',
    ['first', 'third', '"second"'],
  ])
})

it('leaves out what is too long, and keeps apart what was cut off', () => {
  const file = join(temporaryDirectory(onTestFinished), 'chat-history')
  writeFileSync(file, 'first\nsec')
  const history = new InputHistory(file, NOW, fail)
  history.add('x'.repeat(10_001))
  history.add('third')
  expect([offered(file), statSync(file).size]).toEqual([['third', 'sec', 'first'], 'first\nsec\nthird\n'.length])
})

it('keeps the latest entries, and not much more', () => {
  const file = join(temporaryDirectory(onTestFinished), 'chat-history')
  let at = NOW()
  const history = new InputHistory(file, () => (at += 1), fail)
  for (let count = 0; count < 3_000; count += 1) history.add(`${count} `.padEnd(1_000, 'x'))
  const bytes = readdirSync(dirname(file)).reduce((sum, name) => sum + statSync(join(dirname(file), name)).size, 0)
  expect([offered(file).map((entry) => Number.parseInt(entry, 10)), bytes < 1_000_000]).toEqual([
    Array.from({ length: 500 }, (_, index) => 2_999 - index),
    true,
  ])
})

it('keeps what several chats write at once', async () => {
  const file = join(temporaryDirectory(onTestFinished), 'chat-history')
  const module = join(inject('buildDirectory'), 'src/cli/chat/input-history.js')
  const writes = (name: string): string => `
    import { InputHistory } from ${JSON.stringify(module)}
    const history = new InputHistory(${JSON.stringify(file)}, Date.now, (error) => { throw error })
    for (let count = 0; count < 150; count += 1) history.add('${name}' + count + ' '.repeat(5_000))`
  const run = promisify(execFile)
  const names = ['a', 'b', 'c']
  await Promise.all(names.map((name) => run(process.execPath, ['--input-type=module', '-e', writes(name)])))
  const written = names.flatMap((name) => Array.from({ length: 150 }, (_, count) => `${name}${count}`))
  expect(
    offered(file)
      .map((entry) => entry.trim())
      .toSorted(),
  ).toEqual(written.toSorted())
})
