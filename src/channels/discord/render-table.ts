/** Discord has no tables: one becomes columns in a code block, or lists if it is too wide for that. */

import { findCodeIn } from '../markdown-lines.js'

/** What a window of ordinary size shows without wrapping. */
const MAX_COLUMNS = 100
const SEPARATOR = ' | '

const WIDE =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]/u
const EMOJI = /\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F/u
const WIDTHLESS = /^[\p{M}\p{Cf}\p{Cc}]+$/u

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

type Alignment = 'left' | 'right' | 'center'

/** Whether the two lines are the head of a table. */
export function isTableHead(head: string, delimiter: string): boolean {
  if (!head.includes('|') || !delimiter.includes('|') || !/^[|:\- \t]+$/.test(delimiter)) return false
  const cells = cellsOf(delimiter)
  return cells.length === cellsOf(head).length && cells.every((cell) => /^:?-+:?$/.test(cell))
}

/** Contract: the first two lines satisfy `isTableHead`. */
export function renderTable([head = '', delimiter = '', ...body]: string[]): string[] {
  const headers = cellsOf(head)
  const rows = body.map((line) => rowOf(line, headers.length))
  const isShort = [head, ...body].every((line) => line.length <= MAX_COLUMNS * 4)
  const block = isShort ? renderColumns([headers, ...rows], cellsOf(delimiter).map(alignmentOf)) : undefined
  return block ?? renderLists(headers, rows)
}

function renderColumns(rows: string[][], alignments: Alignment[]): string[] | undefined {
  const plain = rows.map((row) => row.map(plainText).map((text) => ({ text, width: widthOf(text) })))
  const widths = alignments.map((_, column) => plain.reduce((most, row) => Math.max(most, row[column]?.width ?? 0), 1))
  const total = widths.reduce((sum, width) => sum + width, SEPARATOR.length * (widths.length - 1))
  if (total > MAX_COLUMNS) return undefined
  const [headers = '', ...lines] = plain.map((row) =>
    row
      .map(({ text, width }, column) => pad(text, (widths[column] ?? 0) - width, alignments[column] ?? 'left'))
      .join(SEPARATOR)
      .trimEnd(),
  )
  const rule = widths.map((width) => '-'.repeat(width)).join('-+-')
  return [headers, ...lines].some((line) => line.includes('```')) ? undefined : ['```', headers, rule, ...lines, '```']
}

/** Each row as a list of its cells, titled by their headers. */
function renderLists(headers: string[], rows: string[][]): string[] {
  const titles = headers.map((header) => header.replaceAll('**', ''))
  if (rows.length === 0) return titles.map((title) => `- **${title}**`)
  return rows
    .map((row) => row.flatMap((cell, column) => (cell === '' ? [] : [listItem(titles[column] ?? '', cell)])))
    .filter((items) => items.length > 0)
    .flatMap((items, index) => (index === 0 ? items : ['', ...items]))
}

function listItem(title: string, cell: string): string {
  return title === '' ? `- ${cell}` : `- **${title}**: ${cell}`
}

function cellsOf(line: string, isCodeWhole = false): string[] {
  const row = line.trim().replace(/^\|/, '')
  const code = isCodeWhole ? findCodeIn(row, { start: 0, end: row.length }) : []
  const cells: string[] = []
  let cell = ''
  let span = 0
  for (let index = 0; index < row.length; index += 1) {
    while ((code[span]?.end ?? Infinity) <= index) span += 1
    const isEscape = row[index] === '\\' && row[index + 1] === '|'
    const isInCode = (code[span]?.start ?? Infinity) < index
    if (isEscape) index += 1
    if (row[index] === '|' && !isEscape && !isInCode) {
      cells.push(cell.trim())
      cell = ''
    } else cell += row[index] ?? ''
  }
  return cell.trim() === '' && cells.length > 0 ? cells : [...cells, cell.trim()]
}

/**
 * As many cells as there are headers. If there are too many, pipes inside inline code do not split; the last cell takes
 * the rest.
 */
function rowOf(line: string, count: number): string[] {
  const strict = cellsOf(line)
  const cells = strict.length > count ? cellsOf(line, true) : strict
  const filled = [...cells.slice(0, count - 1), cells.slice(count - 1).join(SEPARATOR)]
  return Array.from({ length: count }, (_, index) => filled[index] ?? '')
}

function alignmentOf(cell: string): Alignment {
  if (!cell.endsWith(':')) return 'left'
  return cell.startsWith(':') ? 'center' : 'right'
}

/** A code block would show the Markdown marks literally. */
function plainText(cell: string): string {
  const spans = findCodeIn(cell, { start: 0, end: cell.length })
  const parts: string[] = []
  let position = 0
  for (const { start, end } of spans) {
    const code = cell.slice(start, end)
    parts.push(withoutMarks(cell.slice(position, start)), code.replace(/^`+ ?/, '').replace(/ ?`+$/, ''))
    position = end
  }
  return [...parts, withoutMarks(cell.slice(position))].join('').replace(/\s+/g, ' ').trim()
}

function withoutMarks(text: string): string {
  return text
    .replace(/<br\s*\/?>/gi, ' ')
    .replace(/!?\[([^[\]]*)\]\(([^()\s]*)\)/g, (_, label: string, url: string) =>
      label === '' || label === url ? url : `${label} (${url})`,
    )
    .replace(/\*\*|~~/g, '')
    .replace(/(?<![*\w\\])\*(?=\S)([^*]+)(?<=\S)\*(?![*\w])/g, '$1')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
}

function pad(text: string, space: number, alignment: Alignment): string {
  const before = { left: 0, center: Math.floor(space / 2), right: space }[alignment]
  return `${' '.repeat(before)}${text}${' '.repeat(space - before)}`
}

/** In columns of a monospaced font. */
function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) {
    if (WIDTHLESS.test(segment)) continue
    width += WIDE.test(segment) || EMOJI.test(segment) ? 2 : 1
  }
  return width
}
