import { describe, expect, it } from 'vitest'
import { diffOf } from '../../src/core/line-diff.js'
import { fileChangesOf, subjectOf } from '../../src/core/tool-input.js'

describe('the input of a tool', () => {
  it.each([
    [
      'Edit',
      { file_path: 'a', old_string: '1', new_string: '2' },
      [{ kind: 'edit', path: 'a', before: '1', after: '2' }],
    ],
    ['edit', { filePath: 'a', oldString: '1', newString: '2' }, [{ kind: 'edit', path: 'a', before: '1', after: '2' }]],
    [
      'edit',
      { path: 'a', edits: [{ oldText: '1', newText: '2' }] },
      [{ kind: 'edit', path: 'a', before: '1', after: '2' }],
    ],
    ['Write', { file_path: 'a', content: '1' }, [{ kind: 'edit', path: 'a', before: '', after: '1' }]],
    ['apply_patch', { patchText: '+1' }, [{ kind: 'patch', path: '', patch: '+1' }]],
    [
      'file_change',
      {
        changes: [
          { path: 'a', kind: 'add' },
          { path: 'b', diff: '+1' },
        ],
      },
      [{ kind: 'patch', path: 'b', patch: '+1' }],
    ],
    ['Task', { content: '1', edits: 'no list', changes: [null, 'x'] }, []],
    ['Bash', { command: 'ls' }, []],
  ])('is shown as a file change if it is one: %s %j', (tool, input, changes) => {
    expect(fileChangesOf(tool, input)).toEqual(changes)
  })

  it.each([
    [{ description: 'List', command: 'ls -la\npwd' }, 'ls -la'],
    [{ file_path: '/a', limit: 3 }, '/a'],
    [{ changes: [{ path: 'a', kind: 'add' }] }, 'a'],
    [{ other: 'words' }, 'words'],
    [{ count: 3 }, ''],
  ])('has one line that summarises it: %j', (input, subject) => {
    expect(subjectOf(input)).toBe(subject)
  })
})

describe('a change', () => {
  it('is shown with the lines around it', () => {
    const lines = Array.from({ length: 20 }, (_, index) => String(index))
    const after = lines.with(10, 'ten')
    expect(diffOf(lines.join('\n'), after.join('\n')).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'gap … 7 lines',
      'same 7',
      'same 8',
      'same 9',
      'removed 10',
      'added ten',
      'same 11',
      'same 12',
      'same 13',
      'gap … 6 lines',
    ])
  })

  it('is bounded, however large', () => {
    const many = (word: string): string => Array.from({ length: 20_000 }, (_, index) => `${word} ${index}`).join('\n')
    expect(diffOf(many('a'), many('b')).length).toBe(2001)
  })
})
