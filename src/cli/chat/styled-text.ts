// Formatted text, wrapped to a width. Formats become escape sequences only in `painter`, after the text is made safe.

import { styleText } from 'node:util'
import stringWidth from 'fast-string-width'
import { printableLines } from '../../core/one-line.js'
import { charactersOf } from './editor.js'

export type Format = Extract<Parameters<typeof styleText>[0], string>

export interface Span {
  text: string
  formats: readonly Format[]
}

export type Line = readonly Span[]

export interface Painter {
  hasColour: boolean
  paint(line: Line): string
}

const TAB = '    '

export function painter(hasColour: boolean): Painter {
  return {
    hasColour,
    paint: (line) =>
      line
        .map(({ text, formats }) => {
          const safe = printableLines(text).replaceAll('\t', TAB).replaceAll('\n', ' ')
          if (!hasColour || formats.length === 0 || safe === '') return safe
          return styleText([...formats], safe, { validateStream: false })
        })
        .join(''),
  }
}

export function span(text: string, ...formats: Format[]): Span {
  return { text, formats }
}

/** How many columns the painted text takes. */
export function widthOf(text: string): number {
  return stringWidth(printableLines(text).replaceAll('\t', TAB))
}

export function widthOfLine(line: Line): number {
  return line.reduce((sum, { text }) => sum + widthOf(text), 0)
}

/** Contract: no line is wider than `width`, unless a single character is. */
export function wrap(spans: Line, width: number): Line[] {
  const wrapper = new Wrapper(Math.max(1, width))
  for (const { text, formats } of spans) {
    for (const piece of text.match(/\n|[^\S\n]+|\S+/g) ?? []) wrapper.add(piece, formats)
  }
  return wrapper.end()
}

/** Like `wrap`, but breaks at any character and keeps blanks, for code. */
export function hardWrap(spans: Line, width: number): Line[] {
  const lines: Span[][] = [[]]
  let used = 0
  for (const { text, formats } of spans) {
    for (const part of cutAt(text, width, width - used)) {
      if (part.isNewLine) {
        lines.push([])
        used = 0
      }
      lines.at(-1)?.push({ text: part.text, formats })
      used += part.width
    }
  }
  return lines
}

/** One line, truncated with "…" if it is wider. */
export function truncate(line: Line, width: number): Line {
  if (widthOfLine(line) <= width) return line
  const [first = []] = hardWrap(line, Math.max(1, width - 1))
  return width < 1 ? [] : [...first, { text: '…', formats: line.at(-1)?.formats ?? [] }]
}

class Wrapper {
  readonly #lines: Span[][] = []
  #line: Span[] = []
  #used = 0
  /** Blanks to drop if the line ends here. */
  #blanks: Span[] = []
  /** The current word, which may have pieces in different formats. */
  #word: Span[] = []

  constructor(private readonly width: number) {}

  add(text: string, formats: readonly Format[]): void {
    if (text === '\n') {
      this.#endWord()
      this.#endLine()
    } else if (/^\s/.test(text)) {
      this.#endWord()
      this.#blanks.push({ text, formats })
    } else {
      this.#word.push({ text, formats })
    }
  }

  end(): Line[] {
    this.#endWord()
    this.#endLine()
    return this.#lines
  }

  #endWord(): void {
    const word = this.#word
    if (word.length === 0) return
    this.#word = []
    const width = widthOfLine(word)
    const isFull = this.#used > 0 && this.#used + widthOfLine(this.#blanks) + width > this.width
    if (isFull && width <= this.width) this.#endLine()
    const blanks = widthOfLine(this.#blanks)
    if (this.#used + blanks < this.width) this.#put(this.#blanks, blanks)
    this.#blanks = []
    if (this.#used + width <= this.width) return this.#put(word, width)
    for (const { text, formats } of word) {
      for (const part of cutAt(text, this.width, this.width - this.#used)) {
        if (part.isNewLine) this.#endLine()
        this.#put([{ text: part.text, formats }], part.width)
      }
    }
  }

  #put(spans: Span[], width: number): void {
    for (const { text, formats } of spans) {
      const last = this.#line.at(-1)
      // Keep the words of one span together.
      if (last?.formats === formats) last.text += text
      else this.#line.push({ text, formats })
    }
    this.#used += width
  }

  #endLine(): void {
    this.#lines.push(this.#line)
    this.#line = []
    this.#blanks = []
    this.#used = 0
  }
}

interface Part {
  text: string
  width: number
  isNewLine: boolean
}

/** Splits text into parts of at most `width` columns, the first of at most `room`. */
function cutAt(text: string, width: number, room: number): Part[] {
  const whole = widthOf(text)
  if (whole <= room) return [{ text, width: whole, isNewLine: false }]
  const parts: Part[] = [{ text: '', width: 0, isNewLine: false }]
  let left = room
  for (const character of charactersOf(text)) {
    const columns = widthOf(character)
    if (columns > left && left < width) {
      parts.push({ text: '', width: 0, isNewLine: true })
      left = width
    }
    const part = parts.at(-1)
    if (!part) break
    part.text += character
    part.width += columns
    left -= columns
  }
  return parts.filter(({ text: own, isNewLine }) => own !== '' || isNewLine)
}
