import type { Line } from './styled-text.js'

export type Entry = 'text' | 'code' | 'tool' | 'note' | 'question' | 'you'

/** What stays on the screen, with blank lines between what does not belong together. */
export class Transcript {
  #last: Entry | undefined
  #finished: Line[] = []

  add(entry: Entry, lines: readonly Line[]): void {
    this.#finished.push(...this.gapBefore(entry), ...lines)
    this.#last = entry
  }

  /** What comes next does not belong to what is there, even if it is of the same kind. */
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
