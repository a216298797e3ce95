// A unified diff as lines with their numbers. Pure.

import { cutLine } from '../../src/core/line-diff.js'

export interface PatchLine {
  kind: 'same' | 'added' | 'removed' | 'gap'
  text: string
  /** Line numbers before and after the change; absent if the patch has none. */
  before?: number
  after?: number
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/
/** Header lines. The path is shown elsewhere. */
const HEADER = /^(diff --git|index [0-9a-f]|--- |\+\+\+ |new file mode|deleted file mode|similarity index|\*\*\* )/
const MOST_LINES = 2_000

/** Contract: takes any text. The result is bounded, and the lines of a hunk are unchanged. */
export function patchLines(patch: string): PatchLine[] {
  const lines: PatchLine[] = []
  let before: number | undefined
  let after: number | undefined
  const texts = patch.replace(/\n$/, '').split('\n')
  for (const raw of texts) {
    const hunk = HUNK.exec(raw)
    if (hunk) {
      before = Number(hunk[1])
      after = Number(hunk[2])
      if (lines.length > 0 || hunk[3]) lines.push({ kind: 'gap', text: hunk[3] ?? '' })
    } else if (before === undefined && HEADER.test(raw)) {
      continue
    } else if (raw.startsWith('\\')) {
      lines.push({ kind: 'gap', text: raw.slice(2) })
    } else {
      const text = cutLine(raw.slice(1))
      const at = { ...(before !== undefined && { before }), ...(after !== undefined && { after }) }
      if (raw.startsWith('+')) {
        lines.push({ kind: 'added', text, ...(at.after !== undefined && { after: at.after }) })
        if (after !== undefined) after += 1
      } else if (raw.startsWith('-')) {
        lines.push({ kind: 'removed', text, ...(at.before !== undefined && { before: at.before }) })
        if (before !== undefined) before += 1
      } else if (raw.startsWith('diff --git')) {
        before = undefined
        after = undefined
      } else {
        lines.push({ kind: 'same', text, ...at })
        if (before !== undefined) before += 1
        if (after !== undefined) after += 1
      }
    }
    if (lines.length >= MOST_LINES) return [...lines, { kind: 'gap', text: 'The rest is not shown.' }]
  }
  return lines
}

/** How many lines a change adds and removes. */
export function countLines(lines: Array<Pick<PatchLine, 'kind'>>): { added: number; removed: number } {
  const count = (kind: PatchLine['kind']): number => lines.filter((line) => line.kind === kind).length
  return { added: count('added'), removed: count('removed') }
}
