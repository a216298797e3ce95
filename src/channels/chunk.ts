// Splits Markdown into messages. Guarantees for every part, whatever the text:
// - It is no longer than the limit in UTF-16 units. Discord counts code points, of which there are never more.
// - It is a verbatim piece of the text, except for a fence's opening line before a part that begins inside one and
//   the closing line after a part that ends inside one.
// - Only white space is dropped between two parts; inside a fence, only a line break.
// - Its fences are balanced, even if a cut turns something else into a marker.

import { CutPlaces } from './cut-places.js'
import { type Fence, findOpener, isCloser, type MarkdownLine, readMarkdown } from './markdown-lines.js'

interface Cut {
  /** Where the part ends, and the text that closes a fence there. */
  end: number
  close: string
  /** Where the next part begins, and on which line. */
  next: number
  nextIndex: number
}

/** Kinds of breaks between lines, best first. */
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
  /** Next to a fence marker, or inside inline code. */
  'lastResort',
] as const

/** A part less full than this is a waste, unless it keeps what follows in one piece. */
const WORTHWHILE = 1 / 3

/** Contract: `limit` is at least 50. A blank text has no parts. */
export function chunkMarkdown(text: string, limit: number): string[] {
  if (text.trim() === '') return []
  const canHoldFence = /`{3}|~{3}/.test(text)
  return text.length <= limit && !canHoldFence ? [text] : new Chunker(text, limit).parts()
}

class Chunker {
  readonly #lines: MarkdownLine[]
  readonly #places: CutPlaces
  /** The rank of the break before each line, as an index of BREAKS. */
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

  /** `room` is how much the part may hold from `position` on. */
  #cut(position: number, index: number, room: number): Cut {
    const { start, end, kind, fence } = this.#line(index)
    const piece = this.text.slice(position, Math.min(end, position + room))
    const opener = fence ? undefined : findOpener(piece)
    if (opener) return this.#cutInLine(position, index, this.#endOfStray(position, index, opener))
    if (fence && position > start && (kind === 'close' || isCloser(piece, asContinued(fence)))) {
      return this.#cutInLine(position, index, position + piece.length)
    }

    const candidates = BREAKS.map(() => -1)
    let crossing = -1
    let at = index
    do {
      const isFitting = this.#line(at).end - position + this.#closeAfter(at).length <= room
      if (!isFitting && crossing === -1) crossing = at
      at += 1
      const next = this.#lines[at]
      if (isFitting && (!next || this.#isStray(next))) return this.#cutBefore(at)
      if (!next || this.#isStray(next)) break
      if (isFitting) candidates[this.#ranks[at] ?? 0] = at
    } while (this.#line(at).start - position <= room)

    let best = -1
    let passed = -1
    for (const [rank, candidate] of candidates.entries()) {
      if (candidate <= passed) continue
      const isWorthwhile = this.#line(candidate - 1).end - position >= room * WORTHWHILE
      if (isWorthwhile || this.#staysWhole(candidate, rank)) return this.#cutBefore(candidate)
      if (best === -1) best = candidate
      passed = candidate
    }
    return this.#cutCrossing(position, room, crossing, best !== -1) ?? this.#cutBefore(best)
  }

  /** Cuts the first line that does not fit. Returns nothing if another cut is better. */
  #cutCrossing(position: number, room: number, index: number, hasOther: boolean): Cut | undefined {
    const line = this.#lines[index]
    const from = Math.max(position, line?.start ?? 0)
    if (!line || (from > position && (line.kind === 'open' || line.kind === 'close'))) return undefined
    const to = position + room - this.#closeAfter(index).length
    if (line.fence) {
      const isOpening = line.kind === 'open' && from === line.start
      const first = isOpening ? from + line.fence.prefix.length + line.fence.marker.length : from
      const soft = this.#places.softInCode(first, to)
      if (soft === undefined && hasOther) return undefined
      return this.#cutInLine(position, index, soft ?? this.#places.hard(first, to))
    }

    const worthwhile = position + room * WORTHWHILE
    const soft = this.#places.softInText(from, to, worthwhile)
    if (soft === undefined && hasOther) return undefined
    // A word too long for any part is cut anyway, so do not waste a nearly empty part on it.
    const isWaste = soft !== undefined && soft < worthwhile && this.#places.isBeforeLongWord(soft, this.limit)
    const end = soft === undefined || isWaste ? this.#places.hardInText(from, to) : soft
    const opener = findOpener(this.text.slice(from, end))
    if (opener && from > position) return this.#cutBefore(index)
    return this.#cutInLine(position, index, opener ? this.#endOfStray(position, index, opener) : end)
  }

  /** Where to cut a line that would be read as an opening fence, so that it can be closed at once. */
  #endOfStray(position: number, index: number, { prefix, marker }: Fence): number {
    const half = Math.floor((this.limit - 1) / 2)
    if (prefix.length > half / 2) return this.#places.hardInText(position, position + Math.floor(half / 2))
    const afterMarker = position + prefix.length + marker.length
    if (this.#isUnwieldy({ prefix, marker })) return Math.min(afterMarker, position + half)
    const { end } = this.#line(index)
    const to = position + this.limit - closingLine({ prefix, marker }).length
    if (to >= end) return end
    return this.#places.softInText(afterMarker, to, afterMarker) ?? this.#places.hardInText(afterMarker, to)
  }

  #cutBefore(index: number): Cut {
    return {
      end: this.#line(index - 1).end,
      close: this.#closeAfter(index - 1),
      next: this.#startOf(index),
      nextIndex: index,
    }
  }

  #cutInLine(position: number, index: number, end: number): Cut {
    const { start, end: lineEnd, kind, fence } = this.#line(index)
    const piece = this.text.slice(Math.max(position, start), end)
    const rest = this.text.slice(end, lineEnd)
    const gap = fence ? 0 : rest.length - rest.trimStart().length
    const open = fence ?? findOpener(piece)
    const isOpening = kind === 'open' && position <= start
    const isClosed = !open || (fence && !isOpening && isCloser(piece, position > start ? asContinued(fence) : fence))
    return {
      end,
      close: isClosed ? '' : closingLine(open),
      next: gap === rest.length ? this.#startOf(index + 1) : end + gap,
      nextIndex: gap === rest.length ? index + 1 : index,
    }
  }

  #headerAt(position: number, index: number): string {
    const { fence, kind, start } = this.#line(index)
    const isInLine = position > start
    if (!fence || (kind === 'open' && !isInLine)) return ''
    const opening = `${fence.prefix}${fence.marker}`
    const lead = isInLine ? fence.quote : ''
    const room = this.limit / 2 - opening.length - lead.length - 1
    const [word = ''] = fence.info.split(/\s/, 1)
    const info = [fence.info, word].find(({ length }) => length <= room) ?? ''
    // Leading tildes would lengthen the marker.
    return `${opening}${info.startsWith('~') ? '' : info}\n${lead}`
  }

  #closeAfter(index: number): string {
    const { fence, kind } = this.#line(index)
    return fence && kind !== 'close' ? closingLine(fence) : ''
  }

  /** Keeps indentation if it leaves room for the text. */
  #startOf(index: number): number {
    const { start, end, fence } = this.#lines[index] ?? { start: this.text.length, end: this.text.length }
    const shown = this.text.slice(start, end).trimStart().length
    return fence || end - start - shown <= this.limit / 4 ? start : end - shown
  }

  /** Whether it is too long to be closed and reopened in every part. */
  #isUnwieldy({ prefix, marker }: Pick<Fence, 'prefix' | 'marker'>): boolean {
    return 2 * prefix.length + marker.length > this.limit / 3
  }

  /** Whether it would be read as a fence that stays open to the end of the part. */
  #isStray({ fence, start, end }: MarkdownLine): boolean {
    return !fence && findOpener(this.text.slice(start, end)) !== undefined
  }

  /** Whether a single part can hold everything from a break up to the next one of equal rank. */
  #staysWhole(index: number, rank: number): boolean {
    const { start, fence } = this.#line(index)
    const isInFence = fence !== undefined && fence === this.#line(index - 1).fence
    const room = this.limit - (isInFence ? this.#headerAt(start, index).length + closingLine(fence).length : 0)
    for (let at = index; at < this.#lines.length; at += 1) {
      if (at > index && (this.#ranks[at] ?? 0) <= rank) break
      if (this.#line(at).end - start > room) return false
    }
    return true
  }

  #breakBetween(previous: MarkdownLine | undefined, line: MarkdownLine): (typeof BREAKS)[number] {
    if (!previous) return 'paragraph'
    if (line.fence && line.fence === previous.fence) {
      if (previous.kind === 'open' || line.kind === 'close') return 'lastResort'
      return this.#isBlank(previous) && !this.#isBlank(line) ? 'codeParagraph' : 'codeLine'
    }
    if (this.#places.isInSpan(line.start)) return 'lastResort'
    if (this.#isLeadIn(previous, line)) return 'afterLeadIn'
    if (line.isItem && line.indent > 0) return 'nestedItem'
    if (line.isInItem) return 'indentedLine'
    if (line.isAfterBlank) return 'paragraph'
    return line.isItem || line.fence || previous.fence || this.#isHeading(line) ? 'block' : 'line'
  }

  #isLeadIn(line: MarkdownLine, next: MarkdownLine): boolean {
    const isNeighbour = line.isItem && next.isItem && next.indent <= line.indent
    return !line.fence && (this.#isHeading(line) || (this.text[line.end - 1] === ':' && !isNeighbour))
  }

  #isHeading({ start, end }: MarkdownLine): boolean {
    return /^[ \t]*#{1,6}[ \t]/.test(this.text.slice(start, end))
  }

  #isBlank({ start, end }: MarkdownLine): boolean {
    return this.text.slice(start, end).trim() === ''
  }

  #line(index: number): MarkdownLine {
    const line = this.#lines[index]
    if (!line) throw new RangeError(`There is no line ${index}.`)
    return line
  }
}

function closingLine({ prefix, marker }: Pick<Fence, 'prefix' | 'marker'>): string {
  return `\n${prefix}${marker}`
}

/** The fence as seen by the rest of a line, whose part starts with the quote mark and without the list item. */
function asContinued(fence: Fence): Fence {
  return { ...fence, quote: '', column: 0 }
}
