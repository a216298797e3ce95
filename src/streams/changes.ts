/** Tells any number of waiters about each change. */
export class Changes {
  readonly #waiting = new Set<() => void>()
  #version = 0

  /** The number of changes so far. */
  get version(): number {
    return this.#version
  }

  tell(): void {
    this.#version += 1
    for (const wake of this.#waiting) wake()
  }

  /** Settles when there has been a change since that version, or at the signal. */
  async since(version: number, signal: AbortSignal): Promise<void> {
    if (version !== this.#version || signal.aborted) return
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake)
    })
  }
}
