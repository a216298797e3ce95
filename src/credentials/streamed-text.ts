import { MARK, type Scrubber, type Span } from './scrubber.js'
import { SHORTEST_SECRET } from './secret-forms.js'

/** A part of the text and the event it came with. */
export interface Piece<Owner> {
  owner: Owner
  text: string
}

/**
 * Scrubs a text that arrives in pieces.
 *
 * Contract: without `flush`, the pieces emitted make up the scrubbed text, in order. Only a tail that may be the
 * beginning of a secret is held back. Flushed text cannot be taken back; but the remainder of a secret that began there
 * is hidden, and so is a beginning that is too long to be a coincidence.
 */
export class StreamedText<Owner> {
  /** Everything from where a possible secret begins. */
  #text = ''
  /** How much of it was already emitted: under the mark of an overlapping secret, or by `flush`. */
  #emitted = 0
  #isEmittedAsMark = false
  /** Something else came after the last text emitted. */
  #isFlushed = false
  /** Who owns which part of the text; each begins where the previous one ends. */
  #parts: Array<{ owner: Owner; end: number }> = []

  /** Hidden remainders of secrets that were split by something else. */
  readonly remainders = new Set<string>()

  constructor(private readonly scrubber: Pick<Scrubber, 'find'>) {}

  push(text: string, owner: Owner): Piece<Owner>[] {
    // Agents start a new paragraph after a tool call, even in the middle of a secret.
    const blanks = this.#isFlushed && !this.#continuesIn(text) ? (/^\s+/.exec(text)?.[0] ?? '') : ''
    if (blanks !== '') return [{ owner, text: blanks }, ...this.push(text.slice(blanks.length), owner)]
    this.#isFlushed &&= text === ''
    this.#text += text
    this.#parts.push({ owner, end: this.#text.length })
    const { spans, openAt = this.#text.length } = this.#find()
    // The open part may extend the secret it starts in; the mark stays the same.
    const around = spans.find(({ start, end }) => start < openAt && openAt < end)
    const until = Math.max(this.#emitted, around?.end ?? openAt)
    for (const { start, end } of spans) {
      if (start < this.#emitted && end - this.#emitted >= SHORTEST_SECRET)
        this.remainders.add(this.#text.slice(this.#emitted, end))
    }
    const pieces = this.#emit(
      spans.filter(({ start }) => start < openAt),
      until,
    )
    this.#isEmittedAsMark = around !== undefined && around.end >= this.#emitted
    this.#emitted = until - openAt
    this.#text = this.#text.slice(openAt)
    this.#parts = this.#parts.flatMap((part) => (part.end > openAt ? [{ ...part, end: part.end - openAt }] : []))
    return pieces
  }

  /** Emits what was held back, because something else follows. */
  flush(): Piece<Owner>[] {
    this.#isFlushed = true
    const end = this.#text.length
    const { spans, openAt = end } = this.#find()
    if (end - openAt < SHORTEST_SECRET) return this.end()
    const isBegun = this.#isEmittedAsMark && openAt < this.#emitted
    const hidden = { start: isBegun ? BEFORE : openAt, end }
    return this.#emitAll([...spans.filter(({ start }) => start < openAt), hidden], true)
  }

  /** Emits what was held back, because nothing follows. */
  end(): Piece<Owner>[] {
    return this.#emitAll(this.#find().spans, false)
  }

  /** Whether a secret that began earlier continues in this text. */
  #continuesIn(text: string): boolean {
    const emitted = this.#text.length
    const { spans, openAt = Infinity } = this.scrubber.find(this.#text + text)
    return openAt < emitted || spans.some(({ start, end }) => start < emitted && emitted < end)
  }

  #emitAll(spans: Span[], isEndHidden: boolean): Piece<Owner>[] {
    if (this.#emitted === this.#text.length) return []
    const pieces = this.#emit(spans, this.#text.length)
    this.#isEmittedAsMark = isEndHidden
    this.#emitted = this.#text.length
    return pieces
  }

  #find(): { spans: Span[]; openAt?: number } {
    const found = this.scrubber.find(this.#text)
    if (!this.#isEmittedAsMark) return found
    const emitted = this.#emitted
    const joined = found.spans.filter(({ start }) => start < emitted)
    const begun = { start: BEFORE, end: Math.max(emitted, ...joined.map(({ end }) => end)) }
    return { ...found, spans: [begun, ...found.spans.filter(({ start }) => start >= emitted)] }
  }

  #emit(spans: Span[], until: number): Piece<Owner>[] {
    const pieces: Piece<Owner>[] = []
    let at = this.#emitted
    for (const { start, end } of spans) {
      if (end <= this.#emitted) continue
      this.#copy(at, start, pieces)
      if (start !== BEFORE) this.#add(MARK, Math.max(start, this.#emitted), pieces)
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

/** Start of a secret whose mark was already emitted. */
const BEFORE = -1
