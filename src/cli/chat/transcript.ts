import type { Line } from './styled-text.js'

export type Entry = 'text' | 'code' | 'tool' | 'note' | 'question' | 'you'

/** The lines that stay on the screen, with blank lines between separate parts. */
export class Transcript {
  #last: Entry | undefined
  #finished: Line[] = []

  add(entry: Entry, lines: readonly Line[]): void {
    this.#finished.push(...this.gapBefore(entry), ...lines)
    this.#last = entry
  }

  /** The next entry starts a new part, even if it is of the same kind. */
  separate(): void {
    if (this.#last !== undefined) this.#last = 'text'
  }

  gapBefore(entry: Entry): Line[] {
    const belongsTogether = entry === this.#last && entry !== 'text' && entry !== 'question'
    return this.#last === undefined || belongsTogether ? [] : [[]]
  }

  /** The lines since the last call. */
  takeFinished(): Line[] {
    return this.#finished.splice(0)
  }
}
