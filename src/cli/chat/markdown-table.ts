import { type Line, type Span, span, widthOfLine, wrap } from './styled-text.js'

export interface TableCells {
  head: Line[]
  rows: Line[][]
  align: (string | null)[]
}

const SEPARATOR = ' │ '
/** If columns would be narrower, each row becomes a list of its cells. */
const NARROWEST_COLUMN = 8

/** Columns as wide as their text, wrapped if the terminal is too narrow. */
export function tableLines({ head, rows, align }: TableCells, width: number): Line[] {
  const natural = head.map((cell, column) =>
    Math.max(1, ...[cell, ...rows.map((row) => row[column] ?? [])].map((line) => widthOfLine(line))),
  )
  const room = width - SEPARATOR.length * (head.length - 1)
  const widths = fit(natural, room)
  if (widths.some((columns, index) => columns < Math.min(NARROWEST_COLUMN, natural[index] ?? 1))) {
    return listed(head, rows, width)
  }
  const rule = span(widths.map((columns) => '─'.repeat(columns)).join('─┼─'), 'dim')
  return [...rowLines(head.map(bold), widths, align), [rule], ...rows.flatMap((row) => rowLines(row, widths, align))]
}

/** Shrinks the widest columns until the table fits. */
function fit(natural: number[], room: number): number[] {
  const widths = [...natural]
  let over = widths.reduce((sum, columns) => sum + columns, 0) - room
  while (over > 0) {
    const widest = Math.max(...widths)
    if (widest <= 1) break
    const second = Math.max(1, ...widths.filter((columns) => columns < widest))
    const count = widths.filter((columns) => columns === widest).length
    const less = Math.max(1, Math.min(widest - second, Math.ceil(over / count)))
    for (const [index, columns] of widths.entries()) {
      if (columns !== widest || over <= 0) continue
      widths[index] = columns - Math.min(less, over)
      over -= Math.min(less, over)
    }
  }
  return widths
}

function rowLines(cells: Line[], widths: number[], align: (string | null)[]): Line[] {
  const wrapped = widths.map((columns, index) => wrap(cells[index] ?? [], columns))
  const height = Math.max(...wrapped.map((lines) => lines.length))
  return Array.from({ length: height }, (_, row) =>
    widths.flatMap((columns, column): Span[] => {
      const line = wrapped[column]?.[row] ?? []
      const padded = pad(line, columns, align[column] ?? null)
      return column === 0 ? padded : [span(SEPARATOR, 'dim'), ...padded]
    }),
  )
}

function pad(line: Line, columns: number, align: string | null): Span[] {
  const missing = Math.max(0, columns - widthOfLine(line))
  const before = align === 'right' ? missing : align === 'center' ? Math.floor(missing / 2) : 0
  return [span(' '.repeat(before)), ...line, span(' '.repeat(missing - before))]
}

function listed(head: Line[], rows: Line[][], width: number): Line[] {
  return rows.flatMap((row, index) => [
    ...(index === 0 ? [] : [[]]),
    ...row.flatMap((cell, column) => wrap([...bold(head[column] ?? []), span(': '), ...cell], width)),
  ])
}

function bold(line: Line): Line {
  return line.map(({ text, formats }) => ({ text, formats: [...formats, 'bold'] }))
}
