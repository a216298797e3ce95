import { MARK, type Scrubber, type Span } from './scrubber.js'
import { SHORTEST_SECRET } from './secret-forms.js'

/** A part of the text, and whose it was. */
export interface Piece<Owner> {
  owner: Owner
  text: string
}

/**
 * Scrubs a text that comes bit by bit.
 *
 * Contract: without `flush` in between, what is told is the scrubbed whole, in order. Only an end that may be the
 * beginning of a secret waits. What was flushed cannot be taken back; but the rest of a secret that began there is
 * hidden, and so is a beginning that is long enough to be no chance.
 */
export class StreamedText<Owner> {
  /** From where something began that may still become a secret. */
  #text = ''
  /** How much of it was told already: behind the mark of a secret that it overlaps, or by `flush`. */
  #told = 0
  #isToldAsMark = false
  /** Something else came after what was told last. */
  #isFlushed = false
  /** Whose the text is, each from the end of the one before. */
  #parts: Array<{ owner: Owner; end: number }> = []

  /** What was hidden of secrets that were parted by something else. */
  readonly rests = new Set<string>()

  constructor(private readonly scrubber: Pick<Scrubber, 'find'>) {}

  push(text: string, owner: Owner): Piece<Owner>[] {
    // Agents begin a new paragraph after the use of a tool, also in the middle of a secret.
    const blanks = this.#isFlushed && !this.#goesOnWith(text) ? (/^\s+/.exec(text)?.[0] ?? '') : ''
    if (blanks !== '') return [{ owner, text: blanks }, ...this.push(text.slice(blanks.length), owner)]
    this.#isFlushed &&= text === ''
    this.#text += text
    this.#parts.push({ owner, end: this.#text.length })
    const { spans, openAt = this.#text.length } = this.#find()
    // What is open may make the secret that it begins in longer; the mark is the same.
    const around = spans.find(({ start, end }) => start < openAt && openAt < end)
    const until = Math.max(this.#told, around?.end ?? openAt)
    for (const { start, end } of spans) {
      if (start < this.#told && end - this.#told >= SHORTEST_SECRET) this.rests.add(this.#text.slice(this.#told, end))
    }
    const pieces = this.#tell(
      spans.filter(({ start }) => start < openAt),
      until,
    )
    this.#isToldAsMark = around !== undefined && around.end >= this.#told
    this.#told = until - openAt
    this.#text = this.#text.slice(openAt)
    this.#parts = this.#parts.flatMap((part) => (part.end > openAt ? [{ ...part, end: part.end - openAt }] : []))
    return pieces
  }

  /** Tells what waits, for something else comes now. */
  flush(): Piece<Owner>[] {
    this.#isFlushed = true
    const end = this.#text.length
    const { spans, openAt = end } = this.#find()
    if (end - openAt < SHORTEST_SECRET) return this.end()
    const isBegun = this.#isToldAsMark && openAt < this.#told
    const hidden = { start: isBegun ? BEFORE : openAt, end }
    return this.#tellAll([...spans.filter(({ start }) => start < openAt), hidden], true)
  }

  /** Tells what waits, for nothing more comes. */
  end(): Piece<Owner>[] {
    return this.#tellAll(this.#find().spans, false)
  }

  /** Whether a secret that began before goes on in the text as it is. */
  #goesOnWith(text: string): boolean {
    const told = this.#text.length
    const { spans, openAt = Infinity } = this.scrubber.find(this.#text + text)
    return openAt < told || spans.some(({ start, end }) => start < told && told < end)
  }

  #tellAll(spans: Span[], isEndHidden: boolean): Piece<Owner>[] {
    if (this.#told === this.#text.length) return []
    const pieces = this.#tell(spans, this.#text.length)
    this.#isToldAsMark = isEndHidden
    this.#told = this.#text.length
    return pieces
  }

  #find(): { spans: Span[]; openAt?: number } {
    const found = this.scrubber.find(this.#text)
    if (!this.#isToldAsMark) return found
    const told = this.#told
    const joined = found.spans.filter(({ start }) => start < told)
    const begun = { start: BEFORE, end: Math.max(told, ...joined.map(({ end }) => end)) }
    return { ...found, spans: [begun, ...found.spans.filter(({ start }) => start >= told)] }
  }

  #tell(spans: Span[], until: number): Piece<Owner>[] {
    const pieces: Piece<Owner>[] = []
    let at = this.#told
    for (const { start, end } of spans) {
      if (end <= this.#told) continue
      this.#copy(at, start, pieces)
      if (start !== BEFORE) this.#add(MARK, Math.max(start, this.#told), pieces)
      at = end
    }
    this.#copy(at, until, pieces)
    return pieces
  }

  #copy(from: number, to: number, pieces: Piece<Owner>[]): void {
    let at = from
    for (const { end } of this.#parts) {
      const stop = Math.min(end, to)
      if (stop <= at) continue
      this.#add(this.#text.slice(at, stop), at, pieces)
      at = stop
    }
  }

  #add(text: string, at: number, pieces: Piece<Owner>[]): void {
    const part = this.#parts.find(({ end }) => end > at)
    const last = pieces.at(-1)
    if (!part) return
    if (last?.owner === part.owner) last.text += text
    else pieces.push({ owner: part.owner, text })
  }
}

/** Where a secret begins whose mark was told with what came before. */
const BEFORE = -1
