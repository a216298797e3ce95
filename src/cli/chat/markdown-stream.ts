// Splits Markdown into parts while it streams, so that each finished part can be printed for good.
//
// Invariant: the parts are the same however the text is chunked.

import { languageOf } from './markdown.js'

export type MarkdownPart =
  | { kind: 'block'; text: string }
  | { kind: 'code-start' }
  /** A line of a code block: shown as soon as it arrives. */
  | { kind: 'code'; line: string; language: string }

/** A longer block is split, because the unfinished block is parsed again for each added piece. */
const MAX_BLOCK = 20_000
/** A longer line is treated as several. */
const MAX_LINE = 5_000

const OPENER = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)$/
const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/
const HEADING = /^ {0,3}#{1,6}(?:\s|$)/
const INNER_FENCE = /^\s*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(`{3,}(?=[^`]*$)|~{3,})/

interface Fence {
  marker: string
  indent: number
  language: string
}

export class MarkdownStream {
  #rest = ''
  #lines: string[] = []
  #length = 0
  #isList = false
  /** The marker of a fence inside the list. */
  #inner = ''
  #fence: Fence | undefined
  readonly #parts: MarkdownPart[] = []

  /** Returns the parts that are finished. */
  push(text: string): MarkdownPart[] {
    this.#rest += text
    for (let line = this.#nextLine(); line !== undefined; line = this.#nextLine()) this.#line(line)
    return this.#parts.splice(0)
  }

  end(): MarkdownPart[] {
    if (this.#rest !== '') this.#line(this.#rest)
    this.#rest = ''
    this.#endBlock()
    this.#fence = undefined
    return this.#parts.splice(0)
  }

  /** The last part, if the text ended here. */
  unfinished(): MarkdownPart | undefined {
    if (this.#fence) {
      return this.#rest === '' ? undefined : { kind: 'code', line: this.#rest, language: this.#fence.language }
    }
    const text = [...this.#lines, this.#rest].join('\n')
    return text.trim() === '' ? undefined : { kind: 'block', text }
  }

  #nextLine(): string | undefined {
    const end = this.#rest.indexOf('\n')
    if (end === -1 ? this.#rest.length > MAX_LINE : end > MAX_LINE) {
      const line = this.#rest.slice(0, MAX_LINE).replace(/[\uD800-\uDBFF]$/, '')
      this.#rest = this.#rest.slice(line.length)
      return line
    }
    if (end === -1) return undefined
    const line = this.#rest.slice(0, end)
    this.#rest = this.#rest.slice(end + 1)
    return line.replace(/\r$/, '')
  }

  #line(line: string): void {
    if (this.#fence) return this.#codeLine(line, this.#fence)
    if (this.#inner !== '') return this.#innerLine(line)
    if (this.#isList && this.#lines.at(-1)?.trim() === '' && line.trim() !== '' && !/^(?: {2}|\t)/.test(line)) {
      this.#endBlock()
    }
    const [, indent = '', marker, info = ''] = OPENER.exec(line) ?? []
    if (marker !== undefined && !(this.#isList && indent !== '')) {
      this.#endBlock()
      this.#fence = { marker, indent: indent.length, language: languageOf(info) }
      this.#parts.push({ kind: 'code-start' })
      return
    }
    if (line.trim() === '' && !this.#isList) return this.#endBlock()
    if (HEADING.test(line)) {
      this.#endBlock()
      this.#add(line)
      return this.#endBlock()
    }
    if (this.#lines.length === 0) this.#isList = LIST_ITEM.test(line)
    if (this.#isList) this.#inner = INNER_FENCE.exec(line)?.[1] ?? ''
    this.#add(line)
  }

  #codeLine(line: string, { marker, indent, language }: Fence): void {
    if (closes(line, marker)) {
      this.#fence = undefined
      return
    }
    const blanks = /^ */.exec(line)?.[0].length ?? 0
    this.#parts.push({ kind: 'code', line: line.slice(Math.min(indent, blanks)), language })
  }

  #innerLine(line: string): void {
    if (closes(line, this.#inner)) this.#inner = ''
    this.#add(line)
  }

  #add(line: string): void {
    if (this.#length + line.length > MAX_BLOCK) {
      const isList = this.#isList
      const inner = this.#inner
      this.#endBlock()
      this.#isList = isList && LIST_ITEM.test(line)
      this.#inner = this.#isList ? inner : ''
    }
    this.#lines.push(line)
    this.#length += line.length + 1
  }

  #endBlock(): void {
    const text = this.#lines.join('\n').trimEnd()
    if (text !== '') this.#parts.push({ kind: 'block', text })
    this.#lines = []
    this.#length = 0
    this.#isList = false
    this.#inner = ''
  }
}

function closes(line: string, marker: string): boolean {
  const trimmed = line.trim()
  return trimmed.length >= marker.length && trimmed === (marker[0] ?? '').repeat(trimmed.length)
}
