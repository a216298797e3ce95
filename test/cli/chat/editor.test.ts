import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  charactersOf,
  continued,
  type EditorState,
  EMPTY,
  insert,
  isFolded,
  moveLine,
  paste,
  press,
  textOf,
  withText,
} from '../../../src/cli/chat/editor.js'
import { foldedText, inputRows } from '../../../src/cli/chat/input-rows.js'
import { span, widthOfLine } from '../../../src/cli/chat/styled-text.js'

/** With the cursor where the bar is. */
function at(text: string): EditorState {
  const [before = '', after = ''] = text.split('|')
  const state = insert(insert(EMPTY, before), after)
  return { ...state, cursor: insert(EMPTY, before).units.length }
}

function shown({ units, cursor }: EditorState): string {
  return `${units.slice(0, cursor).join('')}|${units.slice(cursor).join('')}`
}

it.each([
  ['left', 'ab|c', 'a|bc'],
  ['left', '👩‍👩‍👧|', '|👩‍👩‍👧'],
  ['ctrl-left', 'one two.|', 'one |two.'],
  ['alt-f', 'o|ne two', 'one| two'],
  ['home', 'a\nbc|d', 'a\n|bcd'],
  ['home', '|\na', '|\na'],
  ['home', '|a\n', '|a\n'],
  ['ctrl-u', '|a\nb', '|a\nb'],
  ['ctrl-e', 'a|b\nc', 'ab|\nc'],
  ['backspace', 'e\u0301|x', '|x'],
  ['delete', '|漢字', '|字'],
  ['ctrl-u', 'a\nbc|d', 'a\n|d'],
  ['ctrl-k', 'a|bc\nd', 'a|\nd'],
  ['ctrl-k', 'a|\nd', 'a|d'],
  ['ctrl-w', 'a b.c |d', 'a |d'],
  ['alt-backspace', 'a b.c|', 'a b.|'],
  ['alt-d', 'a| bc d', 'a| d'],
  ['newline', 'a|b', 'a\n|b'],
  ['page-up', 'a|b', 'a|b'],
])('%s: %j becomes %j', (name, before, after) => {
  expect(shown(press(at(before), name))).toBe(after)
})

it('brings back what was cut', () => {
  const cut = press(press(at('one two|'), 'ctrl-w'), 'home')
  expect(shown(press(cut, 'ctrl-y'))).toBe('two|one ')
})

it('moves from line to line, and no further', () => {
  const state = at('abc\nd|\nefg')
  const [up, down] = [moveLine(state, -1), moveLine(state, 1)]
  expect([up && shown(up), down && shown(down), up && moveLine(up, -1), down && moveLine(down, 1)]).toEqual([
    'a|bc\nd\nefg',
    'abc\nd\ne|fg',
    undefined,
    undefined,
  ])
})

it('moves down from the beginning, however many lines there are', () => {
  const down = moveLine(at('|\n\na'), 1)
  expect([down && shown(down), moveLine(at('|\na'), -1)]).toEqual(['\n|\na', undefined])
})

it('goes on in another line after a backslash at the end', () => {
  expect(
    [continued(at('a\\|')), continued(at('a\\|b')), continued(at('a|'))].map((state) => state && shown(state)),
  ).toEqual(['a\n|', undefined, undefined])
})

it('folds a paste of many lines into one piece that goes and comes back whole', () => {
  const lines = 'x\n'.repeat(40)
  const state = paste(at('a|b'), lines)
  const removed = press(state, 'backspace')
  expect([textOf(state), state.units.filter(isFolded), shown(removed), textOf(press(removed, 'ctrl-y'))]).toEqual([
    `a${lines}b`,
    [lines],
    'a|b',
    `a${lines}b`,
  ])
})

// In quadratic time, this would never end.
it('folds a long paste of one line, too, and takes one of a megabyte', () => {
  const line = 'word 漢字 '.repeat(120_000)
  const state = insert(paste(at('a|b'), line), '!')
  const recalled = withText(EMPTY, line)
  const typed = insert(EMPTY, line.slice(0, 100_000))
  const { rows } = inputRows(state, span('> '), 60, 5)
  expect([rows.map((row) => row.map(({ text }) => text).join('')), recalled.units, textOf(typed).length]).toEqual([
    ['> a[960000 pasted characters]!b'],
    [line],
    100_000,
  ])
})

it('tells what is folded from what a person sees as one character', () => {
  const folded = ['a\nb\n', 'a @/tmp/x', 'x'.repeat(2_000)]
  expect([folded.map(isFolded), folded.map(foldedText), ['a', '\n', '👩‍👩‍👧', 'e\u0301', '🇩🇪'].map(isFolded)]).toEqual([
    [true, true, true],
    ['[2 pasted lines]', '[9 pasted characters]', '[2000 pasted characters]'],
    [false, false, false, false, false],
  ])
})

it('cuts a text into characters where a person would, however long it is', () => {
  const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  const piece = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 4 }),
    fc.constantFrom('\r\n', '👩‍👩‍👧', '🇩', '\u200D', '👍🏽', 'e', '\u0301'.repeat(300), 'क्ष', '각', 'x'.repeat(255)),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const text = pieces.join('').repeat(3)
      expect(charactersOf(text)).toEqual(Array.from(graphemes.segment(text), ({ segment }) => segment))
    }),
    { numRuns: 30 },
  )
})

describe('whatever is pressed', () => {
  const KEYS = ['left', 'right', 'home', 'end', 'ctrl-left', 'ctrl-right', 'ctrl-home', 'ctrl-end', 'newline', 'ctrl-y']
  const REMOVING = ['backspace', 'delete', 'ctrl-u', 'ctrl-k', 'ctrl-w', 'alt-backspace', 'alt-d']
  const texts = fc.oneof(
    fc.string({ maxLength: 6 }),
    fc.constantFrom('\n', '\r\n', '漢字', 'a b', '\u0301', '👩‍👩‍👧', '\u200D', '🇩', '1\n2\n3\n4\n5\n6\n7'),
  )
  const actions = fc.array(
    fc.oneof(
      texts.map((text) => ({ kind: 'insert' as const, text })),
      texts.map((text) => ({ kind: 'paste' as const, text })),
      fc.constantFrom(...KEYS, ...REMOVING, 'up', 'down').map((text) => ({ kind: 'key' as const, text })),
    ),
    { maxLength: 30 },
  )

  it('no text is lost or invented', () => {
    fc.assert(
      fc.property(actions, (all) => {
        let state = EMPTY
        for (const { kind, text } of all) {
          const before = textOf(state)
          const offset = state.units.slice(0, state.cursor).join('').length
          const isUp = text === 'up' || text === 'down'
          const next =
            kind === 'insert'
              ? insert(state, text)
              : kind === 'paste'
                ? paste(state, text)
                : isUp
                  ? (moveLine(state, text === 'up' ? -1 : 1) ?? state)
                  : press(state, text)
          const after = textOf(next)
          const added =
            kind === 'key' ? { newline: '\n', 'ctrl-y': state.cut.join('') }[text] : text.replaceAll(/\r\n?/g, '\n')
          const isRight =
            added !== undefined
              ? after === before.slice(0, offset) + added + before.slice(offset)
              : REMOVING.includes(text)
                ? isWithPieceRemoved(before, after)
                : after === before
          expect([isRight, before, text, after]).toEqual([true, before, text, after])
          expect(next.cursor >= 0 && next.cursor <= next.units.length).toBe(true)
          state = next
        }
      }),
    )
  })

  it('rows fit, with the cursor in them', () => {
    fc.assert(
      fc.property(actions, fc.integer({ min: 8, max: 40 }), fc.integer({ min: 1, max: 6 }), (all, width, maxRows) => {
        const state = all.reduce(
          (one, { kind, text }) => (kind === 'key' ? press(one, text) : insert(one, text)),
          EMPTY,
        )
        const { rows, cursor } = inputRows(state, span('> '), width, maxRows)
        expect(rows.length <= maxRows && rows[cursor.row] !== undefined && cursor.column < width).toBe(true)
        for (const row of rows) expect(widthOfLine(row)).toBeLessThanOrEqual(width)
      }),
    )
  })

  it('a text from the history is that text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(textOf(withText(EMPTY, text))).toBe(text.replaceAll(/\r\n?/g, '\n'))
      }),
    )
  })
})

function isWithPieceRemoved(before: string, after: string): boolean {
  let start = 0
  while (start < after.length && before[start] === after[start]) start += 1
  return before.endsWith(after.slice(start)) && after.length <= before.length
}
