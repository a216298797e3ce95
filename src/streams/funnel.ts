/**
 * Merges several sources into one, in order of arrival.
 *
 * Contract: each source has at most one value waiting and continues when it is taken. Leaving the loop ends every
 * source.
 */
export class Funnel<T> {
  readonly #ready: Array<{ value: T; taken: () => void }> = []
  #wake = (): void => {}
  #isClosed = false

  /** Settles when the source has ended or the funnel is closed. Rejects with the source's error. */
  async add(source: AsyncIterable<T>): Promise<void> {
    for await (const value of source) {
      if (this.#isClosed) return
      await new Promise<void>((taken) => {
        this.#ready.push({ value, taken })
        this.#wake()
      })
      if (this.#isClosed) return
    }
  }

  async *values(signal: AbortSignal): AsyncGenerator<T, void> {
    const wake = (): void => this.#wake()
    signal.addEventListener('abort', wake)
    try {
      while (!signal.aborted) {
        const next = this.#ready.shift()
        if (next) {
          try {
            yield next.value
          } finally {
            next.taken()
          }
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
        }
      }
    } finally {
      signal.removeEventListener('abort', wake)
      this.#isClosed = true
      for (const { taken } of this.#ready.splice(0)) taken()
    }
  }
}
