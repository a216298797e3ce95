import { expect, it } from 'vitest'
import { codeSpans } from '../../../src/cli/chat/code-colours.js'
import { painter } from '../../../src/cli/chat/styled-text.js'
import { clock } from '../../../src/core/local-time.js'
import { finishedLines, runningLine, subjectWithin } from '../../../src/cli/chat/tool-lines.js'

const { paint } = painter(false)

function done(name: string, input: Record<string, unknown>, content: string, isError = false, width = 60): string {
  return finishedLines(
    { id: 't', name, subject: subjectWithin(input, '/srv/shop'), input, startedAt: 0 },
    { content, isError },
    12_000,
    width,
  )
    .map(paint)
    .join('\n')
}

it('is one line with a clock', () => {
  const input = { command: 'npm test\nls', description: 'x' }
  const tool = { id: 't', name: 'Bash', subject: subjectWithin(input, undefined), input, startedAt: 0 }
  expect([paint(runningLine(tool, 12_300, 40)), paint(runningLine(tool, 75_000, 20)), clock(3_725_000)]).toEqual([
    '● Bash npm test  12s',
    '● Bash npm te…  1:15',
    '1:02:05',
  ])
})

it('folds a long output, and says of what is read only how much it is', () => {
  const output = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`).join('\n')
  expect([
    done('Bash', { command: 'seq 40' }, output),
    done('Read', { file_path: '/srv/shop/a.ts' }, output),
    done('Bash', { command: 'no' }, 'no: not found\n', true),
  ]).toEqual([
    '✓ Bash seq 40  12s\n  line 1\n  line 2\n  line 3\n  line 4\n  … 36 more lines',
    '✓ Read a.ts  12s\n  40 lines',
    '✗ Bash no  12s\n  no: not found',
  ])
})

it('shows an edit as what it changes, without escapes', () => {
  const input = { file_path: 'a.ts', old_string: 'a\nb\nc', new_string: 'a\nB\u001B[2J\nc' }
  expect([
    done('Edit', input, 'ok'),
    done('Write', { file_path: 'n', content: 'new\n' }, 'ok'),
    done('Edit', input, 'No such text', true),
  ]).toEqual([
    '✓ Edit a.ts  12s\n    a\n  - b\n  + B[2J\n    c',
    '✓ Write n  12s\n  + new',
    '✗ Edit a.ts  12s\n  No such text',
  ])
})

// In quadratic time, this would never end.
it('cuts a patch of one huge line', () => {
  const patch = `*** Begin Patch\n*** Update File: a.ts\n+${'漢 '.repeat(500_000)}\n`
  const shown = done('apply_patch', { path: 'a.ts', patch }, 'ok')
  expect(shown).toMatch(/\n {2}\+漢 漢 .*…$/m)
})

it('styles of a patch of very many lines only those that it shows', () => {
  const patch = '+ a line\n'.repeat(200_000)
  // Side by side, and without what others do meanwhile.
  const took = (work: () => unknown): number => {
    const { user: before } = process.cpuUsage()
    work()
    return process.cpuUsage().user - before
  }
  let shown = ''
  const showing = took(() => {
    shown = done('apply_patch', { path: 'a.ts', patch }, 'ok')
  })
  const stylingAll = took(() => patch.split('\n').map((line) => codeSpans(line, 'diff')))
  expect([shown.split('\n').slice(-2), showing < stylingAll / 2]).toEqual([
    ['  + a line', '  … 199971 more lines'],
    true,
  ])
})
