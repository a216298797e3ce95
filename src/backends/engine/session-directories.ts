const MAX_DIRECTORIES = 10_000

/** The directories of a backend's sessions: most CLIs find a session only in the directory where it began. */
export class SessionDirectories {
  readonly #directories = new Map<string, string>()

  get(sessionId: string | undefined): string | undefined {
    return this.#directories.get(sessionId ?? '')
  }

  remember(sessionId: string | undefined, directory: string): void {
    if (sessionId === undefined) return
    this.#directories.set(sessionId, directory)
    const [oldest] = this.#directories.keys()
    if (this.#directories.size > MAX_DIRECTORIES && oldest !== undefined) this.#directories.delete(oldest)
  }
}
