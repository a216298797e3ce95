import fc from 'fast-check'
import { expect, it } from 'vitest'
import { patchLines } from '../../web/src/patch.js'

it('has line numbers before and after the change, and no path', () => {
  const patch = [
    'diff --git a/src/a.ts b/src/a.ts',
    'index 1c2d3e4..5f6a7b8 100644',
    '--- a/src/a.ts',
    '+++ b/src/a.ts',
    '@@ -9,3 +9,4 @@ function total() {',
    ' keep()',
    '-const a = 1',
    '+const a = 2',
    '+const b = 3',
    ' }',
    '@@ -40,1 +41,1 @@',
    '--- not a header',
    '\\ No newline at end of file',
    '',
  ].join('\n')
  expect(patchLines(patch)).toEqual([
    { kind: 'gap', text: 'function total() {' },
    { kind: 'same', text: 'keep()', before: 9, after: 9 },
    { kind: 'removed', text: 'const a = 1', before: 10 },
    { kind: 'added', text: 'const a = 2', after: 10 },
    { kind: 'added', text: 'const b = 3', after: 11 },
    { kind: 'same', text: '}', before: 11, after: 12 },
    { kind: 'gap', text: '' },
    { kind: 'removed', text: '-- not a header', before: 40 },
    { kind: 'gap', text: 'No newline at end of file' },
  ])
})

it('shows a patch without line numbers as it is, and accepts anything', () => {
  expect(patchLines('*** Update File: a.ts\n-one\n+two')).toEqual([
    { kind: 'removed', text: 'one' },
    { kind: 'added', text: 'two' },
  ])
  fc.assert(fc.property(fc.string(), (text) => patchLines(text).length <= text.split('\n').length + 1))
})
