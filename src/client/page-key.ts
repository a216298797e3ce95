const NAME = 'aetheel-page-key'

interface Shelf {
  getItem(name: string): string | null
  setItem(name: string, value: string): void
  removeItem(name: string): void
}

/** The part of a login that is not in its cookie: where pages of the gateway's origin keep it, and no others see it. */
export class PageKey {
  readonly #shelf = storage() ?? new Memory()

  header(): Record<string, string> {
    const key = this.#shelf.getItem(NAME)
    return key === null ? {} : { 'x-aetheel-page-key': key }
  }

  keep(key: string): void {
    this.#shelf.setItem(NAME, key)
  }

  forget(): void {
    this.#shelf.removeItem(NAME)
  }
}

/** Of a browser that keeps anything. */
function storage(): Shelf | undefined {
  try {
    const { document, localStorage } = globalThis as { document?: object; localStorage?: Shelf }
    return document && localStorage
  } catch {
    return undefined // A browser may forbid the look. Then a login lasts as long as its page.
  }
}

class Memory implements Shelf {
  readonly #items = new Map<string, string>()

  getItem(name: string): string | null {
    return this.#items.get(name) ?? null
  }

  setItem(name: string, value: string): void {
    this.#items.set(name, value)
  }

  removeItem(name: string): void {
    this.#items.delete(name)
  }
}
