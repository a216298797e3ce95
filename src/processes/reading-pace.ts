/** More than a short answer has. */
const TRICKLE_CHUNKS = 30
/** Half of what a pipe holds. */
const TRICKLE_BYTES = 32 * 1024
const TRICKLE_GAP_MS = 2

/** How long a trickle is left alone. No longer than texts wait for each other to become one event. */
export const TRICKLE_PAUSE_MS = 2

/** Recognises a trickle: many small chunks in quick succession. To look for each of them costs more than what is found. */
export class ReadingPace {
  #chunks = 0
  #readFrom = 0

  /** Whether it is one with this chunk, which was dealt with in that time. */
  isTrickle(bytes: number, startedAt: number, endedAt: number): boolean {
    const isSoon = startedAt - this.#readFrom <= TRICKLE_GAP_MS
    this.#chunks = isSoon && bytes <= TRICKLE_BYTES ? this.#chunks + 1 : 0
    this.#readFrom = endedAt
    return this.#chunks >= TRICKLE_CHUNKS
  }

  /** It is read again, after a pause. */
  resumed(at: number): void {
    this.#readFrom = at
  }
}
