const MOST_DIRECTORIES = 10_000

/** Where the sessions of a backend are at home: most CLIs find one only in the directory where it began. */
export class SessionDirectories {
  readonly #directories = new Map<string, string>()

  get(sessionId: string | undefined): string | undefined {
    return this.#directories.get(sessionId ?? '')
  }

  remember(sessionId: string | undefined, directory: string): void {
    if (sessionId === undefined) return
    this.#directories.set(sessionId, directory)
    const [oldest] = this.#directories.keys()
    if (this.#directories.size > MOST_DIRECTORIES && oldest !== undefined) this.#directories.delete(oldest)
  }
}
