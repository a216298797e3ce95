/** Extracts the supervisor's records from an agent's stderr. Contract: the rest passes unchanged. */
export class ControlLines {
  readonly #opening: Buffer
  #pending: Buffer = Buffer.alloc(0)

  constructor(
    nonce: string,
    private readonly onRecord: (words: string[]) => void,
    private readonly onRest: (bytes: Buffer) => void,
  ) {
    this.#opening = Buffer.from(`\x1e${nonce} `)
  }

  push(chunk: Buffer): void {
    let bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    for (let at = bytes.indexOf(this.#opening); at !== -1; at = bytes.indexOf(this.#opening)) {
      const from = at + this.#opening.length
      const end = bytes.indexOf(SEPARATOR, from)
      this.#rest(bytes.subarray(0, at))
      if (end === -1) {
        this.#pending = bytes.subarray(at)
        return
      }
      this.onRecord(bytes.toString('utf8', from, end).split(' '))
      bytes = bytes.subarray(end + 1)
    }
    const kept = this.#openingAtEnd(bytes)
    this.#rest(bytes.subarray(0, bytes.length - kept))
    this.#pending = bytes.subarray(bytes.length - kept)
  }

  /** Passes on what only looked like the beginning of a record. */
  end(): void {
    this.#rest(this.#pending)
    this.#pending = Buffer.alloc(0)
  }

  #rest(bytes: Buffer): void {
    if (bytes.length > 0) this.onRest(bytes)
  }

  /** How many trailing bytes may be the beginning of a record. */
  #openingAtEnd(bytes: Buffer): number {
    const longest = Math.min(this.#opening.length - 1, bytes.length)
    for (let length = longest; length > 0; length -= 1) {
      if (bytes.subarray(bytes.length - length).equals(this.#opening.subarray(0, length))) return length
    }
    return 0
  }
}

const SEPARATOR = 0x1e
