const KEPT_CHARACTERS = 8 * 1024

/** Keeps the beginning and the end of a text of any length: a CLI's first error and last words. */
export class BoundedText {
  #head = ''
  #tail = ''
  #dropped = 0

  get isEmpty(): boolean {
    return this.#head === ''
  }

  append(text: string): void {
    const room = KEPT_CHARACTERS - this.#head.length
    this.#head += text.slice(0, room)
    if (text.length <= room) return
    const tail = this.#tail + text.slice(Math.max(room, 0))
    this.#dropped += Math.max(0, tail.length - KEPT_CHARACTERS)
    this.#tail = tail.slice(-KEPT_CHARACTERS)
  }

  toString(): string {
    if (this.#dropped === 0) return this.#head + this.#tail
    return `${this.#head}\n[… ${this.#dropped} characters …]\n${this.#tail}`
  }
}
