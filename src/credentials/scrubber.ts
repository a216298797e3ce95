// Finds known secrets in texts.
//
// What must stay true:
// - Of a secret that stands in a text, in any of its forms, no character is left, also where two overlap.
// - The time depends on the length of the text and hardly on how many secrets there are.

import { formsOf, SHORTEST_SECRET } from './secret-forms.js'

export const MARK = '[secret]'

export interface Span {
  start: number
  /** Behind the last character. */
  end: number
}

export interface Findings {
  /** In order, and without overlaps. */
  spans: Span[]
  /** Where something begins that may become a form when the text goes on. */
  openAt?: number
}

export interface Scrubber {
  /** Contract: holds from now on and for good, since a value that was replaced may still be in somebody's hands. Values
   *  that are too short are left out. */
  add(values: Iterable<string>): void
  scrub(text: string): string
  /** Contract: what was JSON is JSON afterwards. Names of fields and numbers are looked at, too. */
  scrubJson(json: string): string
  find(text: string): Findings
  /** Every text that is looked for. */
  readonly forms: ReadonlySet<string>
}

/** Every form is at least so long: its beginning is looked up by a hash that rolls over the text. */
const WINDOW = SHORTEST_SECRET
const BASE = 0x9e3779b1
/** What the character that leaves the window has been multiplied with. */
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
  /** By the hash of their beginning, the longest first. */
  readonly #byHash = new Map<number, string[]>()
  /** Whether a hash with these first bits is known: most places of a text are passed by this look alone. */
  readonly #filter = new Uint8Array(1 << FILTER_BITS)
  /** Beginnings of forms that are shorter than the window. */
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
      // Shorter than any secret.
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

/** Where the string, the number or the other character that begins at `start` is over. By hand: a regular expression runs out
 *  of stack on a string with millions of escapes. */
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
  throw new Error('This is no JSON: a string in it has no end')
}

/** Digits, signs, points and exponents. No other word of JSON is as long as a secret. */
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
