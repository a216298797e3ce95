// Parses as much Markdown as splitting and rewriting an answer needs: where the code is, and where the lists are. It
// follows CommonMark with one exception: a fence in a list item ends only at its closing line, however the code is
// indented, because agents indent carelessly and chat clients know no other end either.

export interface Fence {
  /** The text before the marker, as a later line of the same list item or quote would begin. */
  prefix: string
  /** The part of `prefix` that every code line begins with, inside a quote. */
  quote: string
  marker: string
  info: string
  /** The column where the text of the enclosing list item begins. */
  column: number
}

export interface MarkdownLine {
  start: number
  /** Before the line break; outside code, also before trailing white space. */
  end: number
  /** `open` and `close` are the marker lines. */
  kind: 'text' | 'open' | 'code' | 'close'
  fence: Fence | undefined
  /** Columns of white space before the text. */
  indent: number
  isItem: boolean
  /** Belongs to a list item that began on an earlier line. */
  isInItem: boolean
  /** Indented by four columns or more: code, unless it continues a paragraph. */
  isDeep: boolean
  isAfterBlank: boolean
}

/** From `start` up to, but not including, `end`. */
export interface Span {
  start: number
  end: number
}

const OPENER = /^((?:[ \t]*>)*(?:[ \t]*(?:[-*+]|\d{1,9}[.)])(?=[ \t]))*[ \t]*)(`{3,}(?=[^`]*$)|~{3,})/
const CLOSER = /^([ \t]*)(`{3,}|~{3,})[ \t]*$/
const ITEM = /^[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)/
const QUOTE = /^(?:[ \t]*>)+ ?/
const TAB_COLUMNS = 4

/** All lines except blank ones outside code. Fences rejected by `isFence` are text. */
export function readMarkdown(text: string, isFence: (fence: Fence) => boolean = () => true): MarkdownLine[] {
  const lines: MarkdownLine[] = []
  let fence: Fence | undefined
  /** The columns where the text of the open list items begins, innermost last. */
  let columns: number[] = []
  let isAfterBlank = false

  for (let start = 0; start < text.length;) {
    const lineBreak = text.indexOf('\n', start)
    const next = lineBreak === -1 ? text.length : lineBreak + 1
    const raw = text.slice(start, lineBreak === -1 ? next : lineBreak - (text[lineBreak - 1] === '\r' ? 1 : 0))
    const isInFence = fence !== undefined && (fence.quote === '' || QUOTE.test(raw))
    const trimmedLength = raw.trimEnd().length
    if (fence && isInFence) {
      const kind = isCloser(raw, fence) ? 'close' : 'code'
      const end = start + (kind === 'close' ? trimmedLength : raw.length)
      lines.push({ start, end, kind, fence, indent: 0, isItem: false, isInItem: false, isDeep: false, isAfterBlank })
      if (kind === 'close') fence = undefined
    } else if (trimmedLength > 0) {
      const indent = columnsOf(leadingSpace(raw))
      columns = columns.filter((column) => column <= indent)
      const column = columns.at(-1) ?? 0
      const isDeep = indent - column >= TAB_COLUMNS
      const opened = isDeep ? undefined : findOpener(raw, column)
      fence = opened && isFence(opened) ? opened : undefined
      const itemColumns = isDeep ? [] : itemColumnsOf(raw)
      lines.push({
        start,
        end: start + (fence ? raw.length : trimmedLength),
        kind: fence ? 'open' : 'text',
        fence,
        indent,
        isItem: itemColumns.length > 0,
        isInItem: columns.length > 0,
        isDeep,
        isAfterBlank,
      })
      columns = [...columns, ...itemColumns]
    } else fence = undefined
    isAfterBlank = trimmedLength === 0 && !isInFence
    start = next
  }
  return lines
}

/** The fence that a line opens. `column` is where the text of the enclosing list item begins. */
export function findOpener(line: string, column = 0): Fence | undefined {
  const [whole, before = '', marker = ''] = OPENER.exec(line) ?? []
  const quote = QUOTE.exec(before)?.[0] ?? ''
  const inner = before.slice(quote.length)
  const innerColumn = quote === '' ? column : 0
  const isDeep = columnsOf(leadingSpace(before)) - column >= TAB_COLUMNS
  const isDeepInQuote = columnsOf(leadingSpace(inner)) - innerColumn >= TAB_COLUMNS
  if (whole === undefined || isDeep || isDeepInQuote) return undefined
  return {
    prefix: before.replace(/[^>\s]/g, ' '),
    quote: quote === '' ? '' : `${quote.trimEnd()} `,
    marker,
    info: line.slice(whole.length).trim(),
    column: /\S/.test(inner) ? columnsOf(inner) : innerColumn,
  }
}

/** Whether a line closes the fence. */
export function isCloser(line: string, { quote, marker, column }: Fence): boolean {
  const [whole, before = '', run = ''] = CLOSER.exec(quote === '' ? line : line.replace(QUOTE, '')) ?? []
  return (
    whole !== undefined &&
    run[0] === marker[0] &&
    run.length >= marker.length &&
    columnsOf(before) - column < TAB_COLUMNS
  )
}

/** Inline code, in order. It may span lines of a paragraph. */
export function findInlineCode(text: string, lines: MarkdownLine[]): Span[] {
  return findParagraphs(lines).flatMap((paragraph) => findCodeIn(text, paragraph))
}

/** Inline code in one paragraph. */
export function findCodeIn(text: string, { start, end }: Span): Span[] {
  const spans: Span[] = []
  const runs = Array.from(text.slice(start, end).matchAll(/`+/g), ({ 0: run, index }) => ({
    start: start + index,
    end: start + index + run.length,
  }))
  const partners: (number | undefined)[] = []
  const nearest = new Map<number, number>()
  for (let index = runs.length - 1; index >= 0; index -= 1) {
    const length = (runs[index]?.end ?? 0) - (runs[index]?.start ?? 0)
    partners[index] = nearest.get(length)
    nearest.set(length, index)
  }
  for (let index = 0; index < runs.length; index += 1) {
    const partner = partners[index]
    const [first, last] = [runs[index], runs[partner ?? -1]]
    if (partner === undefined || !first || !last || isEscaped(text, first.start)) continue
    spans.push({ start: first.start, end: last.end })
    index = partner
  }
  return spans
}

/** Consecutive lines of text; each list item starts its own paragraph. */
function findParagraphs(lines: MarkdownLine[]): Span[] {
  const paragraphs: Span[] = []
  let current: Span | undefined
  for (const { kind, start, end, isAfterBlank, isItem } of lines) {
    if (kind !== 'text') current = undefined
    else if (current && !isAfterBlank && !isItem) current.end = end
    else paragraphs.push((current = { start, end }))
  }
  return paragraphs
}

/** The columns where the text of each item on this line begins. */
function itemColumnsOf(line: string): number[] {
  const columns: number[] = []
  let rest = line
  for (let item = ITEM.exec(rest); item; item = ITEM.exec(rest)) {
    columns.push(columnsOf(item[0], columns.at(-1)))
    rest = rest.slice(item[0].length)
  }
  return columns
}

function isEscaped(text: string, position: number): boolean {
  let slashes = 0
  while (text[position - slashes - 1] === '\\') slashes += 1
  return slashes % 2 === 1
}

function leadingSpace(line: string): string {
  return line.slice(0, line.length - line.trimStart().length)
}

/** The column after a text that starts at column `from`. */
function columnsOf(text: string, from = 0): number {
  let column = from
  for (const character of text) column += character === '\t' ? TAB_COLUMNS - (column % TAB_COLUMNS) : 1
  return column
}
