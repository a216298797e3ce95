import { countLines, type EditorState, isFolded } from './editor.js'
import { printableLines } from '../../core/one-line.js'
import { type Format, type Line, type Span, span, widthOf } from './styled-text.js'

export interface InputRows {
  rows: Line[]
  cursor: { row: number; column: number }
}

const TAB = '    '

/** The text being written as rows: at most `maxRows`, around the cursor. */
export function inputRows(state: EditorState, prompt: Span, width: number, maxRows: number): InputRows {
  const indent = widthOf(prompt.text)
  const rows: Span[][] = [[prompt]]
  let column = indent
  let cursor = { row: 0, column }
  const newRow = (): void => {
    rows.push([span(' '.repeat(indent))])
    column = indent
  }
  for (const [index, unit] of state.units.entries()) {
    const { text, formats } = shownUnit(unit)
    // The last column stays free for the cursor.
    if (column + widthOf(text) >= width && column > indent) newRow()
    if (index === state.cursor) cursor = { row: rows.length - 1, column }
    if (unit === '\n') {
      newRow()
      continue
    }
    append(rows, text, formats)
    column += widthOf(text)
  }
  if (state.cursor === state.units.length) cursor = { row: rows.length - 1, column }
  const first = Math.max(0, Math.min(cursor.row - Math.floor(maxRows / 2), rows.length - maxRows))
  return { rows: rows.slice(first, first + maxRows), cursor: { row: cursor.row - first, column: cursor.column } }
}

export function foldedText(unit: string): string {
  const lines = countLines(unit)
  return lines > 1 ? `[${lines} pasted lines]` : `[${unit.length} pasted characters]`
}

function shownUnit(unit: string): Span {
  if (isFolded(unit)) return span(foldedText(unit), 'cyan')
  if (unit === '\t') return span(TAB)
  const shown = printableLines(unit)
  return shown === '' ? span('·', 'dim') : span(shown)
}

function append(rows: Span[][], text: string, formats: readonly Format[]): void {
  const row = rows.at(-1)
  const last = row?.at(-1)
  if (last && row && row.length > 1 && last.formats.length === 0 && formats.length === 0) last.text += text
  else row?.push({ text, formats })
}
