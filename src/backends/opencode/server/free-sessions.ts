const MAX_SESSIONS = 10_000

/** Sessions whose last turn here had all tools, so another such turn need not reset the rules. If another client has
 *  restricted the session since, that turn stays restricted. */
export class FreeSessions {
  readonly #ids = new Set<string>()

  has(sessionId: string | undefined): boolean {
    return this.#ids.has(sessionId ?? '')
  }

  add(sessionId: string | undefined): void {
    if (sessionId === undefined) return
    this.#ids.add(sessionId)
    const [oldest] = this.#ids
    if (this.#ids.size > MAX_SESSIONS && oldest !== undefined) this.#ids.delete(oldest)
  }

  delete(sessionId: string | undefined): void {
    this.#ids.delete(sessionId ?? '')
  }
}
