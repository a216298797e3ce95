// Reads what a process prints, within limits. Lines are split as bytes and decoded whole, so a character split over two
// chunks survives.

const NEWLINE = 0x0a
const EMPTY = Buffer.alloc(0)
const KEPT_CHARACTERS = 8 * 1024

export interface OutputLimits {
  lineBytes: number
  totalBytes: number
}

/** Pi repeats the whole answer with every few characters, so a long answer really is hundreds of megabytes. */
export const OUTPUT_LIMITS: OutputLimits = { lineBytes: 32 * 1024 * 1024, totalBytes: 4 * 1024 * 1024 * 1024 }

/** The only part of a line that is needed, given its first and last chunks; undefined to decode it all. Contract: pure
 *  and fast. */
export type ShortenLine = (beginning: Buffer, end: Buffer) => string | undefined

/** Contract: calls `onLine` once per line, without its newline, with the line's length in bytes; after `onOverflow` it
 *  ignores all further input. */
export class LineSplitter {
  #parts: Buffer[] = []
  #partsBytes = 0
  #totalBytes = 0
  #isOver = false

  constructor(
    private readonly limits: OutputLimits,
    private readonly onLine: (line: string, bytes: number) => void,
    private readonly onOverflow: (problem: string) => void,
    private readonly shorten: ShortenLine = () => undefined,
  ) {}

  push(chunk: Buffer): void {
    if (this.#isOver) return
    this.#totalBytes += chunk.length
    if (this.#totalBytes > this.limits.totalBytes) return this.#overflow('in total', this.limits.totalBytes)

    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#append(chunk.subarray(start, end))
      if (this.#isOver) return
      this.#flush()
      start = end + 1
    }
    if (start < chunk.length) this.#append(chunk.subarray(start))
  }

  /** The last line may lack its newline. */
  end(): void {
    if (!this.#isOver && this.#partsBytes > 0) this.#flush()
  }

  #append(part: Buffer): void {
    this.#parts.push(part)
    this.#partsBytes += part.length
    if (this.#partsBytes > this.limits.lineBytes) this.#overflow('on one line', this.limits.lineBytes)
  }

  #flush(): void {
    const [parts, bytes] = [this.#parts, this.#partsBytes]
    this.#parts = []
    this.#partsBytes = 0
    const [beginning = EMPTY, end = beginning] = [parts[0], parts.at(-1)]
    const short = this.shorten(beginning, end)
    // Nearly all lines are in one part.
    const whole = short ?? (parts.length === 1 ? beginning : Buffer.concat(parts, bytes)).toString('utf8')
    this.onLine(whole, bytes)
  }

  #overflow(where: string, bytes: number): void {
    this.#isOver = true
    this.#parts = []
    this.onOverflow(`more than ${Math.floor(bytes / (1024 * 1024))} MiB ${where}`)
  }
}

/** Keeps the beginning and the end of a text of any length: a CLI's first error and last words. */
export class BoundedText {
  #head = ''
  #tail = ''
  #dropped = 0

  get isEmpty(): boolean {
    return this.#head === ''
  }

  append(text: string): void {
    const room = KEPT_CHARACTERS - this.#head.length
    this.#head += text.slice(0, room)
    if (text.length <= room) return
    const tail = this.#tail + text.slice(Math.max(room, 0))
    this.#dropped += Math.max(0, tail.length - KEPT_CHARACTERS)
    this.#tail = tail.slice(-KEPT_CHARACTERS)
  }

  toString(): string {
    if (this.#dropped === 0) return this.#head + this.#tail
    return `${this.#head}\n[… ${this.#dropped} characters …]\n${this.#tail}`
  }
}
