// Unsent text of each conversation, kept for as long as the tab is open.

import type { NewConversation } from '../../../src/client/aetheel-client.js'

export interface Draft {
  text: string
  /** The idempotency key: the gateway takes the text once, however often it is sent. */
  key: string
  /** The conversation created for it. Whether the text got there is unknown. */
  begun?: Begun
}

export interface Begun {
  id: string
  /** The choices it was created with. */
  wanted: NewConversation
}

type Kept = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>

/** Contract: never throws. If the browser stores nothing, there are no drafts. */
export class Drafts {
  constructor(
    private readonly storage: () => Kept,
    private readonly newKey: () => string,
  ) {}

  get(id: string): Draft {
    try {
      const { text, key, begun } = JSON.parse(this.storage().getItem(nameOf(id)) ?? '{}') as Partial<Draft>
      const isBegun = typeof begun?.id === 'string' && typeof begun.wanted === 'object'
      if (typeof text === 'string' && typeof key === 'string') return { text, key, ...(isBegun && { begun }) }
    } catch {
      // Not ours, or unreadable: the same as no draft.
    }
    return { text: '', key: this.newKey() }
  }

  /** A changed text is a new message, with a new key. */
  change(id: string, text: string): Draft {
    const { begun } = this.get(id)
    const draft = { text, key: this.newKey(), ...(begun && { begun }) }
    if (text === '') this.#try((storage) => storage.removeItem(nameOf(id)))
    else this.#keep(id, draft)
    return draft
  }

  /** Sent again, even after a reload, it goes to the same conversation. */
  begin(id: string, begun: Begun): void {
    this.#keep(id, { ...this.get(id), begun })
  }

  #keep(id: string, draft: Draft): void {
    this.#try((storage) => storage.setItem(nameOf(id), JSON.stringify(draft)))
  }

  #try(act: (storage: Kept) => void): void {
    try {
      act(this.storage())
    } catch {
      // Storage is full or forbidden: the text is only on the page.
    }
  }
}

export const drafts = new Drafts(
  () => sessionStorage,
  // Without TLS there is no `crypto.randomUUID`.
  () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(''),
)

function nameOf(id: string): string {
  return `aetheel:draft:${id}`
}
