// Earlier input: one entry per line, the latest last. A multi-line entry is JSON after a mark, so files from earlier
// versions, which have no mark, still read correctly.
//
// Several chats may write at once, and none may lose what another one wrote. So the file is only appended to, by its
// name and in one write, and a full file is renamed to a unique name. A chat that opened it just before still writes to
// it; a chat that renames at the same moment renames the next file, which is then small. Both are read.

import {
  appendFileSync,
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'

const MARK = '\u001E'
const MAX_ENTRIES = 500
/** Longer entries, such as a pasted log, are not kept. */
export const LONGEST_ENTRY = 10_000
const FULL_BYTES = 128 * 1024

export class InputHistory {
  #entries: string[]
  /** Equal to the number of entries while none is shown. */
  #index: number
  /** The text in progress when the first entry was shown. */
  #draft = ''

  constructor(
    private readonly file: string,
    private readonly now: () => number,
    private readonly onProblem: (error: unknown) => void,
  ) {
    // Read this file before the full ones: if it is renamed in between, it is read twice rather than not at all.
    const latest = readEntries(file)
    this.#entries = latestOf([...fullFiles(file).toReversed().flatMap(readEntries), ...latest])
    this.#index = this.#entries.length
  }

  /** Contract: the same text is offered once, as the latest. */
  add(text: string): void {
    if (text.length <= LONGEST_ENTRY) {
      this.#entries = latestOf([...this.#entries, text])
      try {
        if (append(this.file, encodeEntries([text])) >= FULL_BYTES) this.#beginAnother()
      } catch (error) {
        this.onProblem(error)
      }
    }
    this.#index = this.#entries.length
  }

  /** Starts a new file, and deletes files whose entries are no longer offered. */
  #beginAnother(): void {
    try {
      renameSync(this.file, `${this.file}.${this.now()}-${process.pid}`)
    } catch (error) {
      // Another chat has renamed it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    let entries = 0
    for (const name of fullFiles(this.file)) {
      if (entries >= MAX_ENTRIES) rmSync(name, { force: true })
      else entries += readEntries(name).length
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
    return line // Truncated, or not ours: show it as it is.
  }
}

/** Returns the size of the file. */
function append(file: string, lines: string): number {
  const fd = openSync(file, 'a+', 0o600)
  try {
    const { size } = fstatSync(fd)
    const last = Buffer.alloc(1)
    const isCutOff = readSync(fd, last, 0, 1, size - 1) === 1 && last.toString() !== '\n'
    // A truncated entry, such as after a full disk, must not swallow the next one.
    appendFileSync(fd, isCutOff ? `\n${lines}` : lines)
    return fstatSync(fd).size
  } finally {
    closeSync(fd)
  }
}

/** The latest first. */
function fullFiles(file: string): string[] {
  try {
    const directory = dirname(file)
    const isFull = (name: string): boolean =>
      name.startsWith(`${basename(file)}.`) && /^\d+-\d+$/.test(name.slice(basename(file).length + 1))
    const names = readdirSync(directory).filter(isFull).toSorted().toReversed()
    return names.map((name) => join(directory, name))
  } catch {
    return [] // No history yet.
  }
}

function latestOf(entries: string[]): string[] {
  return [...new Set(entries.toReversed())].slice(0, MAX_ENTRIES).toReversed()
}

function readEntries(file: string): string[] {
  try {
    return decodeEntries(readFileSync(file, 'utf8'))
  } catch {
    return [] // No history yet.
  }
}
