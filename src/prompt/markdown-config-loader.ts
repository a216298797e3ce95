// Reads the operator's prompt files each time. Nothing found there fails a run: unusable content is skipped or cut, and
// logged.
//
// Reads synchronously: these are a few small files in the page cache. Asynchronous reads take ten times as long, and a
// turn waits for them.

import { isUtf8 } from 'node:buffer'
import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'

/** In the order in which they use up `TOTAL_LIMIT_BYTES`; skills come last. */
const FILE_NAMES = ['identity', 'soul', 'user', 'memory', 'tools', 'agents', 'heartbeat'] as const

export type MarkdownFileName = (typeof FILE_NAMES)[number]

export interface Skill {
  name: string
  text: string
}

export interface MarkdownConfig extends Partial<Record<MarkdownFileName, string>> {
  skills: Skill[]
}

/** The model reads all of it on every turn: a file larger than this is more likely a mistake than intended. */
export const FILE_LIMIT_BYTES = 64 * 1024
export const TOTAL_LIMIT_BYTES = 256 * 1024

/** A pipe or a device under a file's name must neither block us nor become our controlling terminal. */
const READ_WITHOUT_WAITING = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

export class MarkdownConfigLoader {
  /** The problem of each file at the last load, so that it is logged once rather than with every message. */
  #logged: ReadonlyMap<string, string> = new Map()

  constructor(
    private readonly directory: string,
    private readonly log: Log,
  ) {}

  /** Contract: never rejects. Missing files or a missing directory are not a problem. */
  async load(): Promise<MarkdownConfig> {
    const reading = new Reading(this.directory)
    const markdown = reading.markdown()
    for (const [file, problem] of reading.problems) {
      if (this.#logged.get(file) !== problem) this.log.warn('prompt.file-problem', { file, problem })
    }
    this.#logged = reading.problems
    return markdown
  }
}

/** One pass over the directory. */
class Reading {
  readonly problems = new Map<string, string>()
  #bytesLeft = TOTAL_LIMIT_BYTES

  constructor(private readonly directory: string) {}

  markdown(): MarkdownConfig {
    const names = this.#list(this.directory, 'ENOENT')
    const markdown: MarkdownConfig = { skills: [] }
    for (const name of FILE_NAMES) {
      const file = this.#pick(this.directory, names, `${name}.md`)
      const text = file && this.#read(file)
      if (text !== undefined) markdown[name] = text
    }
    const skills = this.#pick(this.directory, names, 'skills')
    if (skills !== undefined) markdown.skills = this.#skills(skills)
    return markdown
  }

  #skills(directory: string): Skill[] {
    const files = this.#skillFiles(directory)
    const skills: Skill[] = []
    for (const [index, { name, file }] of files.entries()) {
      if (this.#bytesLeft === 0) {
        this.#note(directory, `${files.length - index} skills are skipped, since ${TOTAL_RULE}`)
        break
      }
      const text = this.#read(file)
      if (text !== undefined) skills.push({ name, text })
    }
    return skills
  }

  #skillFiles(directory: string): Array<{ name: string; file: string }> {
    const files: Array<{ name: string; file: string }> = []
    for (const entry of this.#list(directory)) {
      // Editors and version control use such names for their own files.
      if (entry.startsWith('.')) continue
      const path = join(directory, entry)
      if (/\.md$/i.test(entry)) {
        files.push({ name: entry.slice(0, -'.md'.length), file: path })
      } else {
        const file = this.#pick(path, this.#list(path, 'ENOTDIR'), 'SKILL.md')
        if (file !== undefined) files.push({ name: entry, file })
      }
    }
    return files.toSorted((a, b) => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1))
  }

  /** Sorted, since file systems return entries in any order. */
  #list(directory: string, harmlessCode?: string): string[] {
    try {
      return readdirSync(directory).toSorted()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== harmlessCode) this.#note(directory, messageOf(error))
      return []
    }
  }

  /** The path of the entry with that name, ignoring case; the usual spelling wins. */
  #pick(directory: string, names: string[], usual: string): string | undefined {
    const matching = names.filter((name) => name.toLowerCase() === usual.toLowerCase())
    const picked = matching.includes(usual) ? usual : matching[0]
    if (picked === undefined) return undefined
    for (const name of matching) {
      if (name !== picked) this.#note(join(directory, name), `not read, since ${picked} is in the same directory`)
    }
    return join(directory, picked)
  }

  #read(file: string): string | undefined {
    try {
      const descriptor = openSync(file, READ_WITHOUT_WAITING)
      try {
        return this.#readOpen(file, descriptor)
      } finally {
        closeSync(descriptor)
      }
    } catch (error) {
      this.#note(file, messageOf(error))
      return undefined
    }
  }

  #readOpen(file: string, descriptor: number): string | undefined {
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) {
      this.#note(file, 'not read, since it is not a regular file')
      return undefined
    }
    const limit = Math.min(FILE_LIMIT_BYTES, this.#bytesLeft)
    const bytes = readUpTo(descriptor, limit + 1)
    this.#bytesLeft -= Math.min(bytes.length, limit)
    if (bytes.length <= limit) return this.#decode(file, bytes)

    const kept = bytes.subarray(0, characterBoundary(bytes, limit))
    const rule = limit === FILE_LIMIT_BYTES ? `a file may have at most ${FILE_LIMIT_BYTES} bytes` : TOTAL_RULE
    // If it does not appear larger, the file may be growing, or not report its size.
    const size = Math.max(stat.size, bytes.length)
    const problem = `only the first ${kept.length} of ${size} bytes are used, since ${rule}`
    this.#note(file, problem)
    return `${this.#decode(file, kept)}\n[… cut: ${problem} …]`
  }

  #decode(file: string, bytes: Buffer): string {
    if (!isUtf8(bytes)) this.#note(file, 'not valid UTF-8; unreadable characters were replaced, so save it as UTF-8')
    // TextDecoder drops the byte order mark.
    return new TextDecoder().decode(bytes).replaceAll(/\r\n?/g, '\n')
  }

  #note(file: string, problem: string): void {
    const earlier = this.problems.get(file)
    this.problems.set(file, earlier === undefined ? problem : `${earlier}; ${problem}`)
  }
}

const TOTAL_RULE = `all files together may have at most ${TOTAL_LIMIT_BYTES} bytes`

/** Does not rely on the file's size: it may grow while it is read. */
function readUpTo(descriptor: number, limit: number): Buffer {
  const buffer = Buffer.allocUnsafe(limit)
  let length = 0
  while (length < limit) {
    const bytesRead = readSync(descriptor, buffer, length, limit - length, null)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}

/** The last position at or before `end` where a UTF-8 character begins. */
function characterBoundary(bytes: Buffer, end: number): number {
  // A character has at most three bytes after its first; longer runs are not UTF-8 and may be cut anywhere.
  for (let start = end; start > Math.max(0, end - 4); start -= 1) {
    if (((bytes[start] ?? 0) & 0b1100_0000) !== 0b1000_0000) return start
  }
  return end
}
