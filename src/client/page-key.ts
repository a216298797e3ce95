import { PAGE_KEY_HEADER } from '../core/wire-names.js'

const NAME = 'aetheel-page-key'

interface KeyStorage {
  getItem(name: string): string | null
  setItem(name: string, value: string): void
  removeItem(name: string): void
}

/** The part of a login that is not in its cookie, kept where only pages of the gateway's origin can read it. */
export class PageKey {
  readonly #storage = storage() ?? new Memory()

  header(): Record<string, string> {
    const key = this.#storage.getItem(NAME)
    return key === null ? {} : { [PAGE_KEY_HEADER]: key }
  }

  save(key: string): void {
    this.#storage.setItem(NAME, key)
  }

  clear(): void {
    this.#storage.removeItem(NAME)
  }
}

/** Undefined outside browsers. */
function storage(): KeyStorage | undefined {
  try {
    const { document, localStorage } = globalThis as { document?: object; localStorage?: KeyStorage }
    return document && localStorage
  } catch {
    return undefined // A browser may deny access. Then a login lasts as long as its page.
  }
}

class Memory implements KeyStorage {
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
