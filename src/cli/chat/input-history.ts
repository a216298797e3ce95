// What was typed before: one entry per line, the latest last. An entry of several lines is JSON behind a mark, so that a
// file of an earlier version, which has none, is read as it is.

import { readFileSync, renameSync, writeFileSync } from 'node:fs'

const MARK = '\u001E'
const MAX_ENTRIES = 500
/** Longer ones, such as a pasted log, are not kept. */
export const LONGEST_ENTRY = 10_000

export class InputHistory {
  #entries: string[]
  /** Equal to the number of entries while none is shown. */
  #index: number
  /** What was being written when the first entry was shown. */
  #draft = ''

  constructor(
    private readonly file: string,
    private readonly onProblem: (error: unknown) => void,
  ) {
    this.#entries = readEntries(file)
    this.#index = this.#entries.length
  }

  /** Contract: the same text is kept once, as the latest. */
  add(text: string): void {
    if (text.length <= LONGEST_ENTRY) {
      this.#entries = [...this.#entries.filter((entry) => entry !== text), text].slice(-MAX_ENTRIES)
      this.#write()
    }
    this.#index = this.#entries.length
  }

  #write(): void {
    // Several chats may be open: each has a file of its own until it is whole.
    const temporary = `${this.file}.${process.pid}`
    try {
      writeFileSync(temporary, encodeEntries(this.#entries), { mode: 0o600 })
      renameSync(temporary, this.file)
    } catch (error) {
      this.onProblem(error)
    }
  }

  /** The entry before (-1) or after (1) the one shown. Contract: undefined if there is none. */
  step(direction: -1 | 1, current: string): string | undefined {
    const index = this.#index + direction
    if (index < 0 || index > this.#entries.length) return undefined
    if (this.#index === this.#entries.length) this.#draft = current
    this.#index = index
    return this.#entries[index] ?? this.#draft
  }
}

export function encodeEntries(entries: string[]): string {
  return entries
    .map((entry) => `${/[\n\r]/.test(entry) || entry.startsWith(MARK) ? MARK + JSON.stringify(entry) : entry}\n`)
    .join('')
}

export function decodeEntries(content: string): string[] {
  return content
    .split('\n')
    .filter((line) => line !== '')
    .map(decode)
}

function decode(line: string): string {
  if (!line.startsWith(MARK)) return line
  try {
    const entry: unknown = JSON.parse(line.slice(MARK.length))
    return typeof entry === 'string' ? entry : line
  } catch {
    return line // Cut off, or not ours: shown as it is.
  }
}

function readEntries(file: string): string[] {
  try {
    return decodeEntries(readFileSync(file, 'utf8')).slice(-MAX_ENTRIES)
  } catch {
    return [] // No history yet.
  }
}
