// Lines are cut as bytes and decoded whole, so a character split over two chunks stays one character.

const NEWLINE = 0x0a

export interface OutputLimits {
  lineBytes: number
  totalBytes: number
}

/** Pi repeats the whole answer with every few characters of it: a long answer is honestly hundreds of megabytes. */
export const OUTPUT_LIMITS: OutputLimits = { lineBytes: 32 * 1024 * 1024, totalBytes: 4 * 1024 * 1024 * 1024 }

/** Contract: calls `onLine` once per line, without its newline; after `onOverflow` it ignores all further input. */
export class LineSplitter {
  #parts: Buffer[] = []
  #partsBytes = 0
  #totalBytes = 0
  #isOver = false

  constructor(
    private readonly limits: OutputLimits,
    private readonly onLine: (line: string) => void,
    private readonly onOverflow: (problem: string) => void,
  ) {}

  push(chunk: Buffer): void {
    if (this.#isOver) return
    this.#totalBytes += chunk.length
    if (this.#totalBytes > this.limits.totalBytes) return this.#overflow('in all', this.limits.totalBytes)

    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (this.#partsBytes === 0 && end - start <= this.limits.lineBytes) {
        // Whole in this chunk, as nearly all are.
        this.onLine(chunk.toString('utf8', start, end))
      } else {
        this.#append(chunk.subarray(start, end))
        if (this.#isOver) return
        this.#flush()
      }
      start = end + 1
    }
    this.#append(chunk.subarray(start))
  }

  /** The last line may lack its newline. */
  end(): void {
    if (!this.#isOver && this.#partsBytes > 0) this.#flush()
  }

  #append(part: Buffer): void {
    if (part.length === 0) return
    this.#parts.push(part)
    this.#partsBytes += part.length
    if (this.#partsBytes > this.limits.lineBytes) this.#overflow('on one line', this.limits.lineBytes)
  }

  #flush(): void {
    const [only] = this.#parts
    const line = this.#parts.length === 1 && only ? only : Buffer.concat(this.#parts, this.#partsBytes)
    this.#parts = []
    this.#partsBytes = 0
    this.onLine(line.toString('utf8'))
  }

  #overflow(where: string, bytes: number): void {
    this.#isOver = true
    this.#parts = []
    this.onOverflow(`more than ${Math.floor(bytes / (1024 * 1024))} MiB ${where}`)
  }
}
