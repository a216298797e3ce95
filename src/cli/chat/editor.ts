// The text being written, as an immutable value.
//
// Invariants:
// - The text is the units joined, with `\n` for line ends; a key only adds, removes or moves past whole units.
// - A unit is one character as people see it, or a long paste, which is shown folded.

import { withPlainLineEnds } from './keys.js'

export interface EditorState {
  readonly units: readonly string[]
  /** The cursor is before the unit with this index. */
  readonly cursor: number
  /** What was cut last, for Ctrl-Y. */
  readonly cut: readonly string[]
}

export const EMPTY: EditorState = { units: [], cursor: 0, cut: [] }

/** A paste of this many lines, or of more characters than these, is one unit. */
const FOLDED_LINES = 6
const FOLDED_CHARACTERS = 1_000
/** A segmenter takes quadratic time. */
const SLICE = 256

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

export function textOf({ units }: Pick<EditorState, 'units'>): string {
  return units.join('')
}

/** What was typed, with a space in place of each folded paste. */
export function typedText(units: readonly string[]): string {
  return units.map((unit) => (isFolded(unit) ? ' ' : unit)).join('')
}

export function charactersOf(text: string): string[] {
  const characters: string[] = []
  let length = SLICE
  for (let start = 0; start < text.length;) {
    const end = start + length
    const isHalved = /[\uD800-\uDBFF]/.test(text.charAt(end - 1))
    const segments = Array.from(
      graphemes.segment(text.slice(start, isHalved ? end + 1 : end)),
      ({ segment }) => segment,
    )
    const isLast = end >= text.length
    // The last character of a slice may continue in the next one.
    const complete = isLast ? segments : segments.slice(0, -1)
    for (const segment of complete) {
      characters.push(segment)
      start += segment.length
    }
    length = complete.length === 0 ? length * 2 : SLICE
  }
  return characters
}

/** Whether it is a paste that is shown only as its size. */
export function isFolded(unit: string): boolean {
  return unit.length > 1 && (unit.length > FOLDED_CHARACTERS || graphemes.segment(unit).containing(0)?.segment !== unit)
}

/** Replaces the text, for example with one from the history. */
export function withText({ cut }: EditorState, given: string): EditorState {
  const text = withPlainLineEnds(given)
  const units = isLong(text) ? [text] : charactersOf(text)
  return { units, cursor: units.length, cut }
}

export function insert(state: EditorState, typed: string): EditorState {
  const text = withPlainLineEnds(typed)
  const { units, cursor } = state
  const before = units[cursor - 1] ?? ''
  const after = units[cursor] ?? ''
  // A combining mark or half a flag belongs to the character beside it.
  const [left, right] = [isFolded(before) ? '' : before, isFolded(after) ? '' : after]
  const start = left === '' ? cursor : cursor - 1
  const end = right === '' ? cursor : cursor + 1
  const inserted = charactersOf(left + text)
  const joined = charactersOf(left + text + right)
  const next = [...units.slice(0, start), ...joined, ...units.slice(end)]
  return { ...state, units: next, cursor: start + Math.min(inserted.length, joined.length) }
}

export function paste(state: EditorState, pasted: string): EditorState {
  const text = withPlainLineEnds(pasted)
  return isLong(text) ? pasteFolded(state, text) : insert(state, text)
}

/** Pastes as one unit, however short. */
export function pasteFolded(state: EditorState, pasted: string): EditorState {
  const text = withPlainLineEnds(pasted)
  const { units, cursor } = state
  return { ...state, units: [...units.slice(0, cursor), text, ...units.slice(cursor)], cursor: cursor + 1 }
}

/** Applies an editing key. Contract: returns the same state for a key that does nothing here. */
export function press(state: EditorState, name: string): EditorState {
  const { cursor } = state
  switch (name) {
    case 'left':
    case 'ctrl-b':
      return moveTo(state, cursor - 1)
    case 'right':
    case 'ctrl-f':
      return moveTo(state, cursor + 1)
    case 'home':
    case 'ctrl-a':
      return moveTo(state, lineStart(state))
    case 'end':
    case 'ctrl-e':
      return moveTo(state, lineEnd(state))
    case 'ctrl-left':
    case 'alt-left':
    case 'alt-b':
      return moveTo(state, wordStart(state))
    case 'ctrl-right':
    case 'alt-right':
    case 'alt-f':
      return moveTo(state, wordEnd(state))
    case 'ctrl-home':
      return moveTo(state, 0)
    case 'ctrl-end':
      return moveTo(state, state.units.length)
    case 'newline':
      return insert(state, '\n')
    default:
      return remove(state, name)
  }
}

function remove(state: EditorState, name: string): EditorState {
  const { units, cursor } = state
  switch (name) {
    case 'backspace':
    case 'shift-backspace':
      return without(state, cursor - 1, cursor, isFolded(units[cursor - 1] ?? ''))
    case 'delete':
    case 'ctrl-d':
      return without(state, cursor, cursor + 1, isFolded(units[cursor] ?? ''))
    case 'ctrl-u':
      return without(state, cursor === lineStart(state) ? cursor - 1 : lineStart(state), cursor)
    case 'ctrl-k':
      return without(state, cursor, cursor === lineEnd(state) ? cursor + 1 : lineEnd(state))
    case 'ctrl-w':
      return without(state, wordStart(state, isVisible), cursor)
    case 'alt-backspace':
    case 'ctrl-backspace':
      return without(state, wordStart(state), cursor)
    case 'alt-d':
    case 'ctrl-delete':
    case 'alt-delete':
      return without(state, cursor, wordEnd(state))
    case 'ctrl-y': {
      const next = [...units.slice(0, cursor), ...state.cut, ...units.slice(cursor)]
      return state.cut.length === 0 ? state : { ...state, units: next, cursor: cursor + state.cut.length }
    }
    default:
      return state
  }
}

/** The line above (-1) or below (1). Contract: undefined if there is none. */
export function moveLine(state: EditorState, direction: -1 | 1): EditorState | undefined {
  const { units, cursor } = state
  const [start, end] = [lineStart(state), lineEnd(state)]
  if (direction === -1 ? start === 0 : end === units.length) return undefined
  const target = direction === -1 ? lineStart({ ...state, cursor: start - 1 }) : end + 1
  return moveTo(state, Math.min(target + cursor - start, lineEnd({ ...state, cursor: target })))
}

/** Turns a backslash at the end into a line break. Contract: undefined if there is none. */
export function continued(state: EditorState): EditorState | undefined {
  const { units, cursor } = state
  if (cursor !== units.length || units[cursor - 1] !== '\\') return undefined
  return press(press(state, 'backspace'), 'newline')
}

function moveTo(state: EditorState, wanted: number): EditorState {
  const cursor = Math.max(0, Math.min(state.units.length, wanted))
  return cursor === state.cursor ? state : { ...state, cursor }
}

function without(state: EditorState, from: number, to: number, isKept = true): EditorState {
  const [start, end] = [Math.max(0, from), Math.min(state.units.length, to)]
  if (start >= end) return state
  const cut = isKept && to - from > 0 ? state.units.slice(start, end) : state.cut
  return { units: [...state.units.slice(0, start), ...state.units.slice(end)], cursor: start, cut }
}

function lineStart({ units, cursor }: EditorState): number {
  // A negative index would count from the end.
  return cursor === 0 ? 0 : units.lastIndexOf('\n', cursor - 1) + 1
}

function lineEnd({ units, cursor }: EditorState): number {
  const end = units.indexOf('\n', cursor)
  return end === -1 ? units.length : end
}

function isWord(unit: string): boolean {
  return !isFolded(unit) && /[\p{L}\p{N}_]/u.test(unit)
}

function isVisible(unit: string): boolean {
  return isFolded(unit) || unit.trim() !== ''
}

function wordStart({ units, cursor }: EditorState, isPart = isWord): number {
  let index = cursor
  while (index > 0 && !isPart(units[index - 1] ?? '')) index -= 1
  while (index > 0 && isPart(units[index - 1] ?? '')) index -= 1
  return index
}

function wordEnd({ units, cursor }: EditorState): number {
  let index = cursor
  while (index < units.length && !isWord(units[index] ?? '')) index += 1
  while (index < units.length && isWord(units[index] ?? '')) index += 1
  return index
}

function isLong(text: string): boolean {
  return text.length > FOLDED_CHARACTERS || countLines(text) >= FOLDED_LINES
}

/** A line break at the end does not start another line. */
export function countLines(text: string): number {
  return text.replace(/\n$/, '').split('\n').length
}
