// The lines of a text before and after a change.

import { diffLines } from 'diff'

const MOST_LINES = 2_000
/** Texts with more changes are shown one after the other: comparing them would take too long. */
const MOST_CHANGES = 500
const LONGEST_LINE = 1_000
const CONTEXT_LINES = 3

export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'gap'
  text: string
}

/** Contract: bounded, whatever the texts are. */
export function diffOf(before: string, after: string): DiffLine[] {
  const changes = diffLines(before, after, { maxEditLength: MOST_CHANGES }) ?? [
    { value: before, removed: true, added: false },
    { value: after, added: true, removed: false },
  ]
  const lines = changes.flatMap(({ value, added, removed }, index) => {
    const texts = value.replace(/\n$/, '').split('\n').map(cutLine)
    if (added || removed) return texts.map((text): DiffLine => ({ kind: added ? 'added' : 'removed', text }))
    return contextOf(texts, index === 0, index === changes.length - 1)
  })
  return lines.length <= MOST_LINES
    ? lines
    : [...lines.slice(0, MOST_LINES), { kind: 'gap', text: `… ${lines.length - MOST_LINES} more lines` }]
}

export interface LineCounts {
  added: number
  removed: number
}

/** How many lines an edit adds and removes. */
export function countLines(before: string, after: string): LineCounts {
  const changes = diffLines(before, after, { maxEditLength: MOST_CHANGES })
  if (!changes) return { added: linesIn(after), removed: linesIn(before) }
  const count = (parts: typeof changes): number => parts.reduce((sum, { value }) => sum + linesIn(value), 0)
  return {
    added: count(changes.filter(({ added }) => added)),
    removed: count(changes.filter(({ removed }) => removed)),
  }
}

/** How many lines a patch adds and removes. */
export function countPatchLines(patch: string): LineCounts {
  const count = (start: RegExp): number => [...patch.matchAll(start)].length
  return { added: count(/^\+(?!\+\+ )/gm), removed: count(/^-(?!-- )/gm) }
}

function linesIn(text: string): number {
  return text === '' ? 0 : text.replace(/\n$/, '').split('\n').length
}

/** Longer lines are data. */
export function cutLine(text: string): string {
  return text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)} …` : text
}

/** Of the unchanged lines, only those near a change. */
function contextOf(texts: string[], isFirst: boolean, isLast: boolean): DiffLine[] {
  const start = isFirst ? 0 : CONTEXT_LINES
  const end = isLast ? 0 : CONTEXT_LINES
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  if (texts.length <= start + end + 1) return texts.map(same)
  const left = texts.length - start - end
  return [
    ...texts.slice(0, start).map(same),
    { kind: 'gap', text: `… ${left} lines` },
    ...texts.slice(texts.length - end).map(same),
  ]
}
