// Finds known secrets in text, whole or in pieces, and hides them in events. ARCHITECTURE.md lists the doors at which that
// happens.
//
// Invariants:
// - No character of a secret is left, in any of its forms, even where two overlap.
// - Time depends on the length of the text and hardly on the number of secrets.

import type { AgentEvent } from '../backends/types.js'
import { formsOf, SHORTEST_SECRET } from './secret-forms.js'

export const MARK = '[secret]'

interface Span {
  start: number
  /** Exclusive. */
  end: number
}

interface Findings {
  /** In order, without overlaps. */
  spans: Span[]
  /** Where something starts that may become a form if the text continues. */
  openAt?: number
}

export interface Scrubber {
  /** Contract: permanent, since a replaced value may still be in use somewhere. Ignores values that are too short. */
  add(values: Iterable<string>): void
  scrub(text: string): string
  /** Contract: the result is JSON. Field names and numbers are scrubbed too. */
  scrubJson(json: string): string
  find(text: string): Findings
  /** Every text that is searched for. */
  readonly forms: ReadonlySet<string>
}

/** The shortest form. The first characters of each form are looked up by a rolling hash over the text. */
const WINDOW = SHORTEST_SECRET
const BASE = 0x9e3779b1
/** The factor of the character that leaves the window. */
const LEAVING = Array.from({ length: WINDOW }).reduce<number>((power) => Math.imul(power, BASE), 1)
const FILTER_BITS = 16

export function createScrubber(values: Iterable<string> = []): Scrubber {
  const scrubber = new WindowScrubber()
  scrubber.add(values)
  return scrubber
}

class WindowScrubber implements Scrubber {
  readonly forms = new Set<string>()
  readonly #values = new Set<string>()
  /** Forms by the hash of their first window, longest first. */
  readonly #byHash = new Map<number, string[]>()
  /** Whether a hash with these leading bits is known. This alone rules out most positions of a text. */
  readonly #filter = new Uint8Array(1 << FILTER_BITS)
  /** Prefixes of forms that are shorter than the window. */
  readonly #beginnings = new Set<string>()

  add(values: Iterable<string>): void {
    for (const value of values) {
      if (this.#values.has(value)) continue
      this.#values.add(value)
      for (const form of formsOf(value)) this.#addForm(form)
    }
  }

  #addForm(form: string): void {
    if (this.forms.has(form)) return
    this.forms.add(form)
    let hash = 0
    for (let index = 0; index < WINDOW; index++) hash = extend(hash, form.charCodeAt(index))
    this.#filter[hash >>> (32 - FILTER_BITS)] = 1
    const alike = [...(this.#byHash.get(hash) ?? []), form]
    this.#byHash.set(
      hash,
      alike.toSorted((a, b) => b.length - a.length),
    )
    for (let length = 1; length < WINDOW; length++) this.#beginnings.add(form.slice(0, length))
  }

  scrub(text: string): string {
    const { spans } = this.find(text)
    if (spans.length === 0) return text
    let scrubbed = ''
    let at = 0
    for (const { start, end } of spans) {
      scrubbed += text.slice(at, start) + MARK
      at = end
    }
    return scrubbed + text.slice(at)
  }

  scrubJson(json: string): string {
    if (this.forms.size === 0) return json
    let result = ''
    let at = 0
    for (let start = 0, end = 0; start < json.length; start = end) {
      end = endOfToken(json, start)
      // Too short for a secret.
      if (end - start < WINDOW) continue
      const token = json.slice(start, end)
      const text = token.startsWith('"') ? (JSON.parse(token) as string) : token
      const scrubbed = this.scrub(text)
      if (scrubbed === text) continue
      result += json.slice(at, start) + JSON.stringify(scrubbed)
      at = end
    }
    return at === 0 ? json : result + json.slice(at)
  }

  find(text: string): Findings {
    const spans: Span[] = []
    if (this.forms.size === 0) return { spans }
    let openAt: number | undefined
    let hash = 0
    for (let index = 0; index < text.length; index++) {
      hash = extend(hash, text.charCodeAt(index))
      if (index >= WINDOW) hash = (hash - Math.imul(text.charCodeAt(index - WINDOW), LEAVING)) | 0
      if (this.#filter[hash >>> (32 - FILTER_BITS)] === 0 || index < WINDOW - 1) continue
      const start = index - WINDOW + 1
      for (const form of this.#byHash.get(hash) ?? []) {
        if (start + form.length > text.length) {
          if (openAt === undefined && form.startsWith(text.slice(start))) openAt = start
        } else if (text.startsWith(form, start)) {
          addSpan(spans, start, start + form.length)
          break
        }
      }
    }
    for (let start = Math.max(0, text.length - WINDOW + 1); openAt === undefined && start < text.length; start++) {
      if (this.#beginnings.has(text.slice(start))) openAt = start
    }
    return { spans, ...(openAt !== undefined && { openAt }) }
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The end of the string, number or other character at `start`. Not a regular expression, which runs out of stack on a
 *  string with millions of escapes. */
function endOfToken(json: string, start: number): number {
  let end = start + 1
  if (json.charCodeAt(start) !== QUOTE) {
    if (isOfNumber(json.charCodeAt(start))) while (isOfNumber(json.charCodeAt(end))) end += 1
    return end
  }
  for (; end < json.length; end += 1) {
    const code = json.charCodeAt(end)
    if (code === QUOTE) return end + 1
    if (code === BACKSLASH) end += 1
  }
  throw new Error('Invalid JSON: unterminated string')
}

/** Digits, signs, points and exponents. JSON's other words are shorter than any secret. */
function isOfNumber(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2d || code === 0x2e || code === 0x45 || code === 0x65
  )
}

function extend(hash: number, code: number): number {
  return (Math.imul(hash, BASE) + code) | 0
}

function addSpan(spans: Span[], start: number, end: number): void {
  const last = spans.at(-1)
  if (last && start < last.end) last.end = Math.max(last.end, end)
  else spans.push({ start, end })
}

/** A part of the text and the event it came with. */
interface Piece<Owner> {
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

type TextEvent = Extract<AgentEvent, { type: 'output' | 'thinking' }>
type CompleteEvent = Extract<AgentEvent, { type: 'complete' }>

/** The text of one kind on one stream, which may continue. */
interface OpenText {
  type: TextEvent['type']
  stream: unknown
  text: StreamedText<TextEvent>
}

/** Fields with words and objects of the contract. All other fields hold an agent's text. */
const OUR_WORDS = new Set(['type', 'stream', 'reason'])
const OUR_OBJECTS = new Set(['result', 'failure', 'usage', 'sessionUsage'])

/**
 * Removes known secrets from the events of one run.
 *
 * Contract: the output obeys the contract of `run`. Text that may be the beginning of a secret is held back until the
 * next event of its kind and stream, or until an event of another kind; then a long beginning is hidden as well. A
 * notice does not count: it is not from the agent, whose text continues after it. An event that is not text comes last
 * in the returned list.
 */
export class EventScrubber {
  readonly #texts: OpenText[] = []

  constructor(private readonly scrubber: Scrubber) {}

  scrub(event: AgentEvent): AgentEvent[] {
    if (event.type === 'complete') {
      const texts = toEvents(this.#texts.flatMap(({ text }) => text.end()))
      return [...texts, this.#hideRemainders(this.#scrubFields(event))]
    }
    if (event.type === 'notice') return [this.#scrubFields(event)]
    if (event.type !== 'output' && event.type !== 'thinking') {
      return [...toEvents(this.#texts.flatMap(({ text }) => text.flush())), this.#scrubFields(event)]
    }
    const others = this.#texts.filter(({ type }) => type !== event.type)
    const own = this.#textOf(event)
    const { content, ...rest } = event
    // Without metadata, as in nearly every event, there is nothing to scrub.
    const owner = { ...(rest.metadata ? this.#scrubFields(rest) : rest), content: '' }
    const events = toEvents([...others.flatMap(({ text }) => text.flush()), ...own.push(content, owner)])
    // An empty text would otherwise be lost.
    return content === '' ? [...events, owner] : events
  }

  /** Per stream: a command prints on two at once, and output on one must not split a secret on the other. */
  #textOf({ type, metadata }: TextEvent): StreamedText<TextEvent> {
    const stream = metadata?.['stream']
    const known = this.#texts.find((open) => open.type === type && open.stream === stream)
    if (known) return known.text
    const text = new StreamedText<TextEvent>(this.scrubber)
    this.#texts.push({ type, stream, text })
    return text
  }

  /** The final answer often starts after the last tool, so it may contain only the remainder of a secret. */
  #hideRemainders(event: CompleteEvent): CompleteEvent {
    const { finalOutput } = event.result
    if (finalOutput === undefined) return event
    const remainders = this.#texts.flatMap(({ text }) => [...text.remainders])
    const hidden = remainders.reduce((text, remainder) => text.replaceAll(remainder, MARK), finalOutput)
    return { ...event, result: { ...event.result, finalOutput: hidden } }
  }

  #scrubFields<Fields extends object>(fields: Fields): Fields {
    const entries = Object.entries(fields).map(([name, value]) => [name, this.#scrubField(name, value)])
    return Object.fromEntries(entries) as Fields
  }

  #scrubField(name: string, value: unknown): unknown {
    if (typeof value === 'string') return OUR_WORDS.has(name) ? value : this.scrubber.scrub(value)
    if (typeof value !== 'object' || value === null) return value
    return OUR_OBJECTS.has(name) ? this.#scrubFields(value) : this.#scrubObject(value)
  }

  #scrubObject(value: object): unknown {
    let json: string
    try {
      json = JSON.stringify(value)
    } catch {
      // Nested too deeply to be stored, and it must not pass unchecked.
      return { [MARK]: 'nested too deeply' }
    }
    const scrubbed = this.scrubber.scrubJson(json)
    return scrubbed === json ? value : JSON.parse(scrubbed)
  }
}

function toEvents(pieces: Piece<TextEvent>[]): AgentEvent[] {
  const events: TextEvent[] = []
  for (const { owner, text } of pieces) {
    const last = events.at(-1)
    if (last && isContinuedBy(last, owner)) events[events.length - 1] = { ...owner, content: last.content + text }
    else events.push({ ...owner, content: text })
  }
  return events
}

function isContinuedBy(earlier: TextEvent, later: TextEvent): boolean {
  if (earlier.metadata || later.metadata) return false
  if (earlier.type === 'output' && later.type === 'output') return earlier.stream === later.stream
  return earlier.type === later.type
}
