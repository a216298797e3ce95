// Cuts Markdown into messages. What holds for every part, whatever the text is:
// - It is no longer than the limit in UTF-16 units. Discord counts code points, which are never more.
// - It is a piece of the text as it is, but for the opening line of a fence before a part that begins in one, and the
//   closing line after a part that ends in one.
// - Between two parts only white space is left out; in a fence only a line break.
// - Its fences are balanced, also when a cut makes a marker out of what was none.

import { CutPlaces } from './cut-places.js'
import { type Fence, findOpener, isCloser, type MarkdownLine, readMarkdown } from './markdown-lines.js'

interface Cut {
  /** Where the part ends, and what closes a fence there. */
  end: number
  close: string
  /** Where the next part begins, and on which line. */
  next: number
  nextIndex: number
}

/** Places for a cut between lines, the best first. */
const BREAKS = [
  'paragraph',
  'block',
  'line',
  'nestedItem',
  'indentedLine',
  /** After a heading, or after a colon. */
  'afterLeadIn',
  'codeParagraph',
  'codeLine',
  /** Beside the marker of a fence, or in inline code. */
  'lastResort',
] as const

/** A part that is less full is a waste, unless what follows stays whole by it. */
const WORTHWHILE = 1 / 3

/** Contract: `limit` is at least 50. A text of white space has no parts. */
export function chunkMarkdown(text: string, limit: number): string[] {
  return text.trim() === '' ? [] : new Chunker(text, limit).parts()
}

class Chunker {
  readonly #lines: MarkdownLine[]
  readonly #places: CutPlaces
  /** Of the break before each line, as an index of BREAKS. */
  readonly #ranks: Uint8Array

  constructor(
    private readonly text: string,
    private readonly limit: number,
  ) {
    this.#lines = readMarkdown(text, (fence) => !this.#isUnwieldy(fence))
    this.#places = new CutPlaces(text, this.#lines)
    this.#ranks = Uint8Array.from(this.#lines, (line, index) =>
      BREAKS.indexOf(this.#breakBetween(this.#lines[index - 1], line)),
    )
  }

  parts(): string[] {
    const isWhole = this.text.length <= this.limit && this.#closeAfter(this.#lines.length - 1) === ''
    if (isWhole && !this.#lines.some((line) => this.#isStray(line))) return [this.text]

    const parts: string[] = []
    let index = 0
    let position = this.#startOf(index)
    while (index < this.#lines.length) {
      const header = this.#headerAt(position, index)
      const { end, close, next, nextIndex } = this.#cut(position, index, this.limit - header.length)
      parts.push(`${header}${this.text.slice(position, end)}${close}`)
      position = next
      index = nextIndex
    }
    return parts
  }

  /** `room` is what the part may hold from `position` on. */
  #cut(position: number, index: number, room: number): Cut {
    const { start, end, fence } = this.#line(index)
    const piece = this.text.slice(position, Math.min(end, position + room))
    const opener = fence ? undefined : findOpener(piece)
    if (opener) return this.#cutStray(position, index, opener)
    if (fence && position > start && isCloser(piece, unquoted(fence))) {
      return this.#cutInLine(position, index, position + piece.length)
    }

    const candidates = BREAKS.map(() => -1)
    let crossing = -1
    let isAllFitting = false
    let at = index
    for (; at < this.#lines.length && this.#line(at).start - position <= room; at += 1) {
      if (at > index && this.#isStray(this.#line(at))) break
      if (at > index && isAllFitting) candidates[this.#ranks[at] ?? 0] = at
      isAllFitting = this.#line(at).end - position + this.#closeAfter(at).length <= room
      if (!isAllFitting && crossing === -1) crossing = at
    }
    return { end: at, close: '', next: 0, nextIndex: 0 }
  }
}

function unquoted(fence: Fence): Fence {
  return { ...fence, quote: '' }
}
