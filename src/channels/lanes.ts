/** Does what belongs to one key one after the other, and different keys side by side. */
export class Lanes {
  readonly #last = new Map<string, Promise<void>>()

  constructor(private readonly onError: (error: unknown) => void) {}

  run(key: string, work: () => Promise<void>): Promise<void> {
    const done = (this.#last.get(key) ?? Promise.resolve()).then(work).catch(this.onError)
    this.#last.set(key, done)
    void done.then(() => {
      if (this.#last.get(key) === done) this.#last.delete(key)
    })
    return done
  }

  async idle(): Promise<void> {
    await Promise.all(this.#last.values())
  }
}
