/** Where an overlong line may be cut. */

import { findInlineCode, type MarkdownLine, type Span } from './markdown-lines.js'

const LINK = /!?\[[^[\]\n]{1,200}\]\([^()\s]{1,500}\)/g
const SENTENCE = /[.!?…。！？]+["'”’»)\]*_」』）]*/g
/** What would be read as a list, a heading, a quote or a fence at the beginning of a line. */
const BLOCK_START = /^(?:(?:[-+*>]|#{1,6}|-#|\d{1,9}[.)])\s|`{3}|~{3})/
/** Enough to recognise a block start, or a grapheme of many code points. */
const LOOK_AHEAD = 40

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

export class CutPlaces {
  /** Inline code and links, in order and without overlaps. */
  readonly #spans: Span[]

  constructor(
    private readonly text: string,
    lines: MarkdownLine[],
  ) {
    const links = [...text.matchAll(LINK)].map(({ 0: link, index }) => ({ start: index, end: index + link.length }))
    this.#spans = mergeOverlaps([...findInlineCode(text, lines), ...links])
  }

  /** Whether a cut here would split inline code or a link. */
  isInSpan(position: number): boolean {
    return this.#spanAround(position) !== undefined
  }

  /** After the last sentence if that ends at `worthwhile` or later, otherwise before the last space. */
  softInText(from: number, to: number, worthwhile: number): number | undefined {
    const first = this.#skipSpace(from, to)
    let sentence: number | undefined
    for (const { 0: mark, index } of this.text.slice(from, to + 1).matchAll(SENTENCE)) {
      const end = from + index + mark.length
      if (end >= worthwhile && end > first && end <= to && this.#isSentenceEnd(end)) sentence = end
    }
    return sentence ?? this.#spaceInText(first, to)
  }

  /** Before inline code, unless the line begins with it; otherwise at a space inside it; otherwise anywhere. */
  hardInText(from: number, to: number): number {
    const first = this.#skipSpace(from, to)
    const span = this.#spanAround(to)
    if (!span) return this.#trimEnd(first, this.hard(first, to))
    if (span.start > first) return this.#trimEnd(first, span.start)
    let end = to
    while (end > first && !this.#isBeforeSpace(end)) end -= 1
    return end > first ? end : this.#trimEnd(first, this.hard(first, to))
  }

  /** After a space in the second half. */
  softInCode(from: number, to: number): number | undefined {
    for (let end = to; end > from + (to - from) / 2; end -= 1) {
      if (isSpace(this.text[end - 1]) && !this.#isBlockStart(end)) return end
    }
    return undefined
  }

  /** Between two graphemes, and not before a run that would be read as a fence. */
  hard(from: number, to: number): number {
    let end = to
    const mark = this.text[to]
    if ((mark === '`' || mark === '~') && this.text.startsWith(mark.repeat(3), to)) {
      while (end > from && this.text[end - 1] === mark) end -= 1
      end = end - 1 > from ? end - 1 : to
    }
    const character = graphemes.segment(this.text.slice(from, end + LOOK_AHEAD)).containing(end - from)
    if (character && character.index > 0) return from + character.index
    const isInPair = (this.text.codePointAt(end - 1) ?? 0) > 0xff_ff
    return isInPair && end - 1 > from ? end - 1 : end
  }

  /** Whether the next word is longer than `length`. */
  isBeforeLongWord(position: number, length: number): boolean {
    const [word = ''] = /\S+/.exec(this.text.slice(position, position + LOOK_AHEAD + length)) ?? []
    return word.length > length
  }

  #spaceInText(first: number, to: number): number | undefined {
    let fallback: number | undefined
    for (let end = to; end > first; end -= 1) {
      if (!this.#isBeforeSpace(end)) continue
      const span = this.#spanAround(end)
      if (span) end = Math.min(end, span.start + 1)
      else if (!this.#isBlockStart(end)) return end
      else fallback ??= end
    }
    return fallback
  }

  #isSentenceEnd(end: number): boolean {
    const isApart = isSpace(this.text[end]) || /[。！？][」』”’）]?$/.test(this.text.slice(end - 2, end))
    const following = this.text.slice(end, end + LOOK_AHEAD).trimStart()
    return isApart && !/^\p{Ll}/u.test(following) && !this.#isBlockStart(end) && !this.isInSpan(end)
  }

  #isBlockStart(position: number): boolean {
    return BLOCK_START.test(this.text.slice(position, position + LOOK_AHEAD).trimStart())
  }

  #isBeforeSpace(end: number): boolean {
    return /^[^\S\u00A0\u202F\uFEFF]$/.test(this.text[end] ?? '') && !isSpace(this.text[end - 1])
  }

  #skipSpace(from: number, to: number): number {
    return Math.max(from, to - this.text.slice(from, to).trimStart().length)
  }

  #trimEnd(from: number, to: number): number {
    return from + this.text.slice(from, to).trimEnd().length
  }

  #spanAround(position: number): Span | undefined {
    let [low, high] = [0, this.#spans.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#spans[middle]?.end ?? 0) > position) high = middle
      else low = middle + 1
    }
    const span = this.#spans[low]
    return span && span.start < position ? span : undefined
  }
}

function mergeOverlaps(spans: Span[]): Span[] {
  const merged: Span[] = []
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const last = merged.at(-1)
    if (last && span.start < last.end) last.end = Math.max(last.end, span.end)
    else merged.push(span)
  }
  return merged
}

function isSpace(character: string | undefined): boolean {
  return character?.trim() === ''
}
