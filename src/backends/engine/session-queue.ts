/** One turn at a time in each session: a server would mix the answers of two. */
export class SessionQueue {
  readonly #tails = new Map<string, Promise<void>>()

  /** Waits until it is its turn. Contract: what it returns is called once, also when the signal ended the waiting. */
  async enter(sessionId: string, signal: AbortSignal): Promise<() => void> {
    const before = this.#tails.get(sessionId)
    let leave = () => {}
    const left = new Promise<void>((resolve) => {
      leave = resolve
    })
    // Who gives up waiting keeps those behind it waiting for those before it.
    const tail = before ? before.then(() => left) : left
    this.#tails.set(sessionId, tail)
    void tail.then(() => {
      if (this.#tails.get(sessionId) === tail) this.#tails.delete(sessionId)
    })
    if (before) await Promise.race([before, aborted(signal)])
    return leave
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
