// Reads what a CLI prints. Stdout has JSON values, usually one per line, but sometimes one value over many lines, such
// as the array of `--output-format json`. Anything that is not JSON is passed on as text, never lost. Stderr is text,
// of which the beginning and the end are kept.

import { StringDecoder } from 'node:string_decoder'
import { type Scrubber, StreamedText } from '../../credentials/scrubber.js'
import { BoundedText } from '../../processes/output.js'

export type JsonObject = { [key: string]: unknown }

export interface JsonSink {
  /** A JSON object; objects in an array arrive one by one. */
  object(value: JsonObject): void
  /** A line that is not a JSON object, without colour codes. */
  text(line: string): void
}

// oxlint-disable-next-line no-control-regex -- the codes of a terminal begin with a control character
const ANSI_CODES = /\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\))/g

export function stripAnsi(text: string): string {
  return text.includes('\u001B') ? text.replace(ANSI_CODES, '') : text
}

/** Secrets are hidden as text arrives: a truncated secret would not be recognised. */
export class Stderr {
  #kept = new BoundedText()
  readonly #decoder = new StringDecoder('utf8')
  readonly #text: StreamedText<'stderr'>

  constructor(scrubber: Scrubber) {
    this.#text = new StreamedText(scrubber)
  }

  push(chunk: Buffer): void {
    for (const { text } of this.#text.push(this.#decoder.write(chunk), 'stderr')) this.#kept.append(text)
  }

  /** Everything since the start or the last `clear`, without colour codes. */
  read(): string {
    for (const { text } of this.#text.flush()) this.#kept.append(text)
    return stripAnsi(this.#kept.toString())
  }

  clear(): void {
    this.#text.flush()
    this.#kept = new BoundedText()
  }
}

/** Cost of a kept line in addition to its characters. */
const LINE_OVERHEAD = 64

export class JsonReader {
  /** The lines of an incomplete value. */
  #open: string[] = []
  #openCharacters = 0
  #prefix = new JsonPrefix()

  constructor(
    private readonly sink: JsonSink,
    private readonly maxCharacters: number,
  ) {}

  line(line: string): void {
    if (this.#open.length > 0) return this.#continue(line)
    // Fast path for nearly every line: nothing to clean.
    const value = line.startsWith('{') ? parseJson(line) : undefined
    if (isObject(value)) return this.sink.object(value)

    const text = clean(line)
    if (this.#single(text)) return
    this.#prefix = new JsonPrefix()
    if (this.#prefix.feed(text) === 'open') this.#keep(text)
    else this.sink.text(text)
  }

  end(): void {
    this.#giveUp()
  }

  /** Handles a line that is a complete value. Returns whether it was one. */
  #single(text: string): boolean {
    const trimmed = text.trim()
    if (trimmed === '') return true
    if (trimmed[0] !== '{' && trimmed[0] !== '[') {
      this.sink.text(text)
      return true
    }
    const value = parseJson(trimmed)
    if (value !== undefined) this.#emit(value, text)
    return value !== undefined
  }

  #continue(raw: string): void {
    const line = clean(raw)
    const state = this.#prefix.feed(line)
    if (state === 'invalid' || this.#openCharacters + line.length > this.maxCharacters) {
      this.#giveUp()
      this.line(line)
      return
    }
    this.#keep(line)
    if (state === 'open') return
    const text = this.#open.join('\n').trim()
    const value = parseJson(text)
    if (value === undefined) return this.#giveUp()
    this.#forget()
    this.#emit(value, text)
  }

  /** What looked like the start of a value was not: handles each line separately. */
  #giveUp(): void {
    const lines = this.#open
    this.#forget()
    for (const line of lines) {
      if (!this.#single(line)) this.sink.text(line)
    }
  }

  #keep(line: string): void {
    this.#open.push(line)
    this.#openCharacters += line.length + LINE_OVERHEAD
  }

  #forget(): void {
    this.#open = []
    this.#openCharacters = 0
  }

  #emit(value: unknown, text: string): void {
    const elements: unknown[] = Array.isArray(value) ? value : [value]
    if (!elements.every(isObject)) this.sink.text(text)
    for (const element of elements) if (isObject(element)) this.sink.object(element)
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Strips colour codes, a byte order mark and the CR of a Windows line ending. */
function clean(line: string): string {
  const text = stripAnsi(line)
  return text.slice(text.startsWith('\uFEFF') ? 1 : 0, text.endsWith('\r') ? -1 : undefined)
}

/** Undefined if it is not JSON. A failing JSON.parse is slow, so obviously truncated text is not parsed. */
export function parseJson(text: string): unknown {
  if (!text.endsWith('}') && !text.endsWith(']')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined // Not JSON: the caller treats it as text.
  }
}

const TOKEN = /[ \t\r]+|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/y

type Expected = 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' | 'nothing'

/** Checks, line by line, whether a text can still become one JSON value. No JSON token spans two lines. */
class JsonPrefix {
  #closers: Array<'}' | ']'> = []
  #expected: Expected = 'value'

  feed(line: string): 'open' | 'closed' | 'invalid' {
    for (let start = 0, end = 0; start < line.length; start = end) {
      end = endOfToken(line, start)
      if (end === -1) return 'invalid'
      const token = line.slice(start, end)
      if (token.trim() !== '' && !this.#accept(token)) return 'invalid'
    }
    return this.#expected === 'nothing' ? 'closed' : 'open'
  }

  #accept(token: string): boolean {
    const closer = this.#closers.at(-1)
    switch (token) {
      case '{':
      case '[':
        if (this.#expected !== 'value' && this.#expected !== 'value-or-end') return false
        this.#closers.push(token === '{' ? '}' : ']')
        this.#expected = token === '{' ? 'key-or-end' : 'value-or-end'
        return true
      case '}':
      case ']':
        if (token !== closer || !this.#expected.endsWith('-or-end')) return false
        this.#closers.pop()
        this.#expected = this.#afterValue()
        return true
      case ',':
        if (this.#expected !== 'comma-or-end') return false
        this.#expected = closer === '}' ? 'key' : 'value'
        return true
      case ':':
        if (this.#expected !== 'colon') return false
        this.#expected = 'value'
        return true
      default:
        if (this.#expected === 'key' || this.#expected === 'key-or-end') {
          this.#expected = 'colon'
          return token.startsWith('"')
        }
        if (this.#expected !== 'value' && this.#expected !== 'value-or-end') return false
        this.#expected = this.#afterValue()
        return true
    }
  }

  #afterValue(): Expected {
    return this.#closers.length > 0 ? 'comma-or-end' : 'nothing'
  }
}

/** The end of the token that begins at `start`; -1 if none does. */
function endOfToken(line: string, start: number): number {
  if (line[start] !== '"') {
    TOKEN.lastIndex = start
    return TOKEN.test(line) ? TOKEN.lastIndex : -1
  }
  // By hand: a regular expression overflows the stack on a string of several megabytes.
  for (let index = start + 1; index < line.length; index += 1) {
    if (line[index] === '"') return index + 1
    if (line[index] === '\\') index += 1
  }
  return -1
}
