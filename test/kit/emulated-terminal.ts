// A terminal that keeps what is written to it: enough of one for what the chat uses. It wraps lines that are too wide,
// scrolls, and rewraps when resized.

import stringWidth from 'fast-string-width'

const ESC = '\u001B'
const SEQUENCE = new RegExp(String.raw`${ESC}\[([<=>?]?)([\d;]*)([A-Za-z])`, 'y')
/** Line ends one by one, anything else together. */
const PLAIN = new RegExp(String.raw`[^${ESC}\r\n]+|[\r\n]`, 'y')

interface Cell {
  text: string
  width: number
}

export class EmulatedTerminal {
  /** Unknown escape sequences: there should be none. */
  readonly unknown: string[] = []
  /** Lines as written; each is shown in one or more rows. */
  #lines: Cell[][] = [[]]
  /** The row of the cursor, counted from the first line ever written, and its column. */
  #row = 0
  #column = 0
  #rest = ''

  constructor(
    public columns: number,
    public rows: number,
  ) {}

  write(chunk: string): void {
    const text = this.#rest + chunk
    this.#rest = ''
    let index = 0
    while (index < text.length) {
      if (text[index] === ESC) {
        SEQUENCE.lastIndex = index
        const found = SEQUENCE.exec(text)
        if (!found && text.length - index < 12) {
          this.#rest = text.slice(index)
          return
        }
        this.#sequence(found)
        index += found?.[0].length ?? 1
        continue
      }
      PLAIN.lastIndex = index
      const [plain = ''] = PLAIN.exec(text) ?? []
      if (plain === '\r') this.#column = 0
      else if (plain === '\n') this.#down()
      else for (const { segment } of new Intl.Segmenter().segment(plain)) this.#put(segment)
      index += Math.max(1, plain.length)
    }
  }

  resize(columns: number, rows: number): void {
    const { line, offset } = this.#place()
    this.columns = columns
    this.rows = rows
    const before = this.#lines.slice(0, line).reduce((sum, one) => sum + this.#heightOf(one), 0)
    this.#row = before + Math.floor(offset / columns)
    this.#column = offset % columns
  }

  /** Everything that was written and not erased, scrolled away or not. */
  get text(): string {
    return this.#lines
      .map((line) =>
        line
          .map(({ text }) => text)
          .join('')
          .trimEnd(),
      )
      .join('\n')
      .trimEnd()
  }

  get cursor(): { line: number; column: number } {
    const { line, offset } = this.#place()
    return { line, column: offset }
  }

  #put(text: string): void {
    const width = stringWidth(text)
    if (this.#column + width > this.columns) {
      // The line continues in the next row.
      const { line, offset } = this.#place()
      const cells = this.#lines[line] ?? []
      const next = (Math.floor((offset - 1) / this.columns) + 1) * this.columns
      while (cells.length < next) cells.push({ text: ' ', width: 1 })
      cells.splice(next, width, ...cellsOf(text, width))
      this.#row += 1
      this.#column = width
      return
    }
    const { line, offset } = this.#place()
    const cells = this.#lines[line] ?? []
    while (cells.length < offset) cells.push({ text: ' ', width: 1 })
    cells.splice(offset, width, ...cellsOf(text, width))
    this.#column += width
  }

  #down(): void {
    const { line } = this.#place()
    const start = this.#lines.slice(0, line + 1).reduce((sum, one) => sum + this.#heightOf(one), 0)
    if (line + 1 === this.#lines.length) this.#lines.push([])
    this.#row = Math.max(this.#row + 1, start)
  }

  #sequence(found: RegExpExecArray | null): void {
    const [whole = 'ESC', mark = '', parameters = '', final = ''] = found ?? []
    const count = Math.max(1, Number(parameters) || 1)
    if (mark !== '' || final === 'm') return
    if (final === 'A') this.#row = Math.max(this.#firstVisible(), this.#row - count)
    else if (final === 'C') this.#column = Math.min(this.columns - 1, this.#column + count)
    else if (final === 'J' && parameters === '') this.#eraseBelow()
    else if (final === 'H' && parameters === '') [this.#row, this.#column] = [this.#firstVisible(), 0]
    else if (final === 'J' && parameters === '2') this.#eraseBelow()
    else this.unknown.push(whole)
  }

  #eraseBelow(): void {
    const { line, offset } = this.#place()
    this.#lines = [...this.#lines.slice(0, line), (this.#lines[line] ?? []).slice(0, offset)]
  }

  #firstVisible(): number {
    const all = this.#lines.reduce((sum, one) => sum + this.#heightOf(one), 0)
    return Math.max(0, Math.max(all, this.#row + 1) - this.rows)
  }

  #heightOf(line: Cell[]): number {
    return Math.max(1, Math.ceil(line.length / this.columns))
  }

  /** The cursor's line, and the offset in it. */
  #place(): { line: number; offset: number } {
    let row = 0
    for (const [line, cells] of this.#lines.entries()) {
      const height = this.#heightOf(cells)
      const isLast = line === this.#lines.length - 1
      if (this.#row < row + height || isLast) {
        return { line, offset: (this.#row - row) * this.columns + this.#column }
      }
      row += height
    }
    return { line: 0, offset: this.#column }
  }
}

/** A wide character takes two cells. */
function cellsOf(text: string, width: number): Cell[] {
  return [{ text, width }, ...Array.from({ length: Math.max(0, width - 1) }, () => ({ text: '', width: 0 }))]
}
