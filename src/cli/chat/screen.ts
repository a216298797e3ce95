// The live lines at the bottom of a terminal, below those that stay.
//
// Invariant: what is above the live lines is never rewritten; it belongs to the terminal's scrollback.

import type { Line, Painter } from './styled-text.js'
import { hardWrap, truncate } from './styled-text.js'

interface Output {
  columns?: number
  rows?: number
  write(text: string): unknown
}

export interface LiveRows {
  rows: Line[]
  cursor: { row: number; column: number }
}

const ESC = '\u001B['
const CLEAR_BELOW = `${ESC}J`
const HIDE_CURSOR = `${ESC}?25l`
const SHOW_CURSOR = `${ESC}?25h`
/** Terminals that support this show everything between the two at once. */
const BEGIN_UPDATE = `${ESC}?2026h`
const END_UPDATE = `${ESC}?2026l`

const NARROWEST = 20
const LOWEST = 4

export class Screen {
  #drawn: LiveRows | undefined
  #lastDrawn = ''

  constructor(
    private readonly output: Output,
    private readonly painter: Painter,
  ) {}

  /** Some terminals report nothing, or 0. */
  get #columns(): number {
    return this.output.columns || 80
  }

  get #rows(): number {
    return this.output.rows || 24
  }

  get width(): number {
    return Math.max(NARROWEST, this.#columns)
  }

  get height(): number {
    return Math.max(LOWEST, this.#rows)
  }

  /** Prints finished lines, which stay, and replaces the live lines below them. */
  draw(finished: Line[], live: LiveRows): void {
    const { rows, cursor } = this.#fitting(live)
    const painted = rows.map((row) => this.painter.paint(row))
    const { column } = cursor
    const below = rows.length - 1 - cursor.row
    const drawn = [
      painted.join('\r\n'),
      below > 0 ? `${ESC}${below}A` : '',
      '\r',
      column > 0 ? `${ESC}${column}C` : '',
    ].join('')
    const isSame = finished.length === 0 && drawn === this.#lastDrawn && this.#drawn !== undefined
    if (isSame) return
    const above = finished.map((line) => `${this.painter.paint(line)}\r\n`).join('')
    this.output.write(`${BEGIN_UPDATE}${HIDE_CURSOR}${this.#erase()}${above}${drawn}${SHOW_CURSOR}${END_UPDATE}`)
    this.#drawn = { rows, cursor }
    this.#lastDrawn = drawn
  }

  /** Removes the live lines. */
  clear(): void {
    const erased = this.#erase()
    if (erased !== '') this.output.write(erased)
    this.#drawn = undefined
  }

  /** Erases from the first live line on. A terminal that became narrower has wrapped the wider lines. */
  #erase(): string {
    if (!this.#drawn) return ''
    const { rows, cursor } = this.#drawn
    const columns = this.#columns
    const above = rows.slice(0, cursor.row).reduce((sum, row) => sum + hardWrap(row, columns).length, 0)
    const up = above + Math.floor(cursor.column / columns)
    return `${up > 0 ? `${ESC}${up}A` : ''}\r${CLEAR_BELOW}`
  }

  /** The last rows that fit, none wider than the terminal, so that it neither scrolls nor wraps. */
  #fitting({ rows, cursor }: LiveRows): LiveRows {
    const width = this.#columns
    const first = Math.max(0, rows.length - this.#rows)
    return {
      rows: rows.slice(first).map((row) => truncate(row, width)),
      cursor: { row: Math.max(0, cursor.row - first), column: Math.min(cursor.column, width - 1) },
    }
  }
}
