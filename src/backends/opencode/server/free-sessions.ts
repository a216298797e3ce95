const MOST_SESSIONS = 10_000

/** Sessions whose last turn here was one with all tools: another such turn needs no rules again. Where somebody else has
 *  kept the session to some tools since, such a turn has only those. */
export class FreeSessions {
  readonly #ids = new Set<string>()

  has(sessionId: string | undefined): boolean {
    return this.#ids.has(sessionId ?? '')
  }

  add(sessionId: string | undefined): void {
    if (sessionId === undefined) return
    this.#ids.add(sessionId)
    const [oldest] = this.#ids
    if (this.#ids.size > MOST_SESSIONS && oldest !== undefined) this.#ids.delete(oldest)
  }

  delete(sessionId: string | undefined): void {
    this.#ids.delete(sessionId ?? '')
  }
}
