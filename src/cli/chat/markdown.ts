// Renders an agent's Markdown as lines for a terminal.

import type { MarkedToken, Token, Tokens } from 'marked'
import { BoundedLexer, DEEPEST } from '../../core/bounded-markdown.js'
import { decodeEntities } from '../../core/entities.js'
import { codeSpans } from './code-colours.js'
import { tableLines } from './markdown-table.js'
import { type Format, hardWrap, type Line, type Span, span, widthOf, widthOfLine, wrap } from './styled-text.js'

const NARROWEST = 8
const WIDEST_RULE = 40
const CODE_INDENT = '  '

/** Lines without surrounding blank lines, none wider than `width`. */
export function markdownLines(text: string, width: number): Line[] {
  const lines = blocks(new BoundedLexer().lex(text), width, 0)
  // Deeply nested lists leave no room to wrap in.
  return lines.flatMap((line) => (widthOfLine(line) <= width ? [line] : hardWrap(line, width)))
}

/** A line of a code block. */
export function codeLines(line: string, language: string, width: number): Line[] {
  const room = Math.max(NARROWEST, width) - CODE_INDENT.length
  return hardWrap(codeSpans(line, language), room).map((part) => [span(CODE_INDENT), ...part])
}

function blocks(tokens: Token[], width: number, depth: number): Line[] {
  const lines: Line[] = []
  for (const token of tokens) {
    if (token.type === 'space' || token.type === 'def') continue
    if (lines.length > 0) lines.push([])
    lines.push(...block(token, width, depth))
  }
  return lines
}

function block(token: Token, width: number, depth: number): Line[] {
  if (depth > DEEPEST) return wrap([span(token.raw)], width)
  const known = token as MarkedToken
  switch (known.type) {
    case 'heading':
      return wrap(headingSpans(known), width)
    case 'paragraph':
      return wrap(inlines(known.tokens, []), width)
    case 'text':
      return wrap(known.tokens ? inlines(known.tokens, []) : [span(decodeEntities(known.text))], width)
    case 'code': {
      const language = languageOf(known.lang ?? '')
      return known.text.split('\n').flatMap((line) => codeLines(line, language, width))
    }
    case 'blockquote':
      return blocks(known.tokens, Math.max(NARROWEST, width - 2), depth + 1).map((line) => [
        span('│ ', 'dim'),
        ...line.map(({ text, formats }) => ({ text, formats: [...formats, 'italic'] as const })),
      ])
    case 'list':
      return listLines(known, width, depth)
    case 'table': {
      const [head, rows] = [known.header, known.rows].map((cells) => cells) as [
        Tokens.TableCell[],
        Tokens.TableCell[][],
      ]
      const cellSpans = (cell: Tokens.TableCell): Line => inlines(cell.tokens, [])
      return tableLines(
        { head: head.map(cellSpans), rows: rows.map((row) => row.map(cellSpans)), align: known.align },
        width,
      )
    }
    case 'hr':
      return [[span('─'.repeat(Math.min(width, WIDEST_RULE)), 'dim')]]
    default:
      return wrap('tokens' in token && token.tokens ? inlines(token.tokens, []) : [span(token.raw.trimEnd())], width)
  }
}

/** Keeps the `#` marks, so that it is recognisable without colours, too. */
function headingSpans({ depth, tokens }: Tokens.Heading): Span[] {
  const formats: Format[] = depth === 1 ? ['bold', 'underline'] : ['bold']
  return [span(`${'#'.repeat(depth)} `, 'dim'), ...inlines(tokens, depth <= 2 ? [...formats, 'cyan'] : formats)]
}

function listLines({ ordered, start, items, loose }: Tokens.List, width: number, depth: number): Line[] {
  const first = typeof start === 'number' ? start : 1
  const last = String(first + items.length - 1).length
  return items.flatMap((item, index) => {
    const marker = ordered ? `${String(first + index).padStart(last)}. ` : '• '
    const indent = widthOf(marker)
    const body = itemLines(item, Math.max(NARROWEST, width - indent), depth + 1)
    const gap = loose && index > 0 ? [[]] : []
    return [
      ...gap,
      ...(body.length === 0 ? [[]] : body).map((line, row) => [
        row === 0 ? span(marker, 'cyan') : span(' '.repeat(indent)),
        ...line,
      ]),
    ]
  })
}

/** In a tight list, the parts of an item have no blank lines between them. */
function itemLines({ tokens, loose }: Tokens.ListItem, width: number, depth: number): Line[] {
  if (loose) return blocks(withCheckbox(tokens), width, depth)
  return withCheckbox(tokens)
    .filter(({ type }) => type !== 'space')
    .flatMap((token) => block(token, width, depth))
}

/** The lexer puts a task's checkbox before its text; joins them into one line. */
function withCheckbox(tokens: Token[]): Token[] {
  const [box, text, ...rest] = tokens as MarkedToken[]
  if (box?.type !== 'checkbox') return tokens
  if (text?.type !== 'text' && text?.type !== 'paragraph')
    return [{ ...box, type: 'text', text: boxOf(box) }, ...tokens.slice(1)]
  return [{ ...text, tokens: [box, ...(text.tokens ?? [])] }, ...rest]
}

function boxOf({ checked }: Tokens.Checkbox): string {
  return checked ? '☑ ' : '☐ '
}

function inlines(tokens: Token[], formats: readonly Format[], depth = 0): Span[] {
  return tokens.flatMap((token) => inline(token, formats, depth + 1))
}

function inline(token: Token, formats: readonly Format[], depth: number): Span[] {
  if (depth > DEEPEST) return [{ text: token.raw, formats }]
  const known = token as MarkedToken
  const within = (inner: Token[], ...more: Format[]): Span[] => inlines(inner, [...formats, ...more], depth)
  switch (known.type) {
    case 'text':
    case 'escape':
      return 'tokens' in known && known.tokens ? within(known.tokens) : [{ text: decodeEntities(known.text), formats }]
    case 'strong':
      return within(known.tokens, 'bold')
    case 'em':
      return within(known.tokens, 'italic')
    case 'del':
      return within(known.tokens, 'strikethrough')
    case 'codespan':
      return [{ text: known.text, formats: [...formats, 'yellow'] }]
    case 'br':
      return [{ text: '\n', formats }]
    case 'checkbox':
      return [{ text: boxOf(known), formats }]
    case 'link':
      return [...within(known.tokens, 'underline'), ...target(known.href, known.text, formats)]
    case 'image':
      return [
        { text: known.text || 'image', formats: [...formats, 'underline'] },
        ...target(known.href, known.text, formats),
      ]
    default:
      return [{ text: token.raw, formats }]
  }
}

/** Shows where a link leads: its text may claim something else. */
function target(href: string, text: string, formats: readonly Format[]): Span[] {
  return href === text || href === `mailto:${text}` ? [] : [{ text: ` (${href})`, formats: [...formats, 'dim'] }]
}

/** From the line that opens a fence. */
export function languageOf(info: string): string {
  return /^[\w+#.-]*/.exec(info.trim())?.[0] ?? ''
}
