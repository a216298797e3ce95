// What is typed and not sent yet, for each conversation, for as long as the tab is open.

import type { NewConversation } from '../../../src/client/aetheel-client.js'

export interface Draft {
  text: string
  /** Under it the gateway takes the text once, however often it is sent. */
  key: string
  /** The conversation that was begun with it; whether the text got there is not known. */
  begun?: Begun
}

export interface Begun {
  id: string
  /** As what it was begun. */
  wanted: NewConversation
}

type Kept = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>

/** Contract: nothing throws; where a browser keeps nothing, there are no drafts. */
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
      // Not ours, or not to be read: as if there was none.
    }
    return { text: '', key: this.newKey() }
  }

  /** Another text is another message, with a key of its own. */
  change(id: string, text: string): Draft {
    const { begun } = this.get(id)
    const draft = { text, key: this.newKey(), ...(begun && { begun }) }
    if (text === '') this.#try((storage) => storage.removeItem(nameOf(id)))
    else this.#keep(id, draft)
    return draft
  }

  /** Sent again, also after the page was loaded anew, it goes to that one. */
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
      // Full, or forbidden: what is typed stays on the page.
    }
  }
}

export const drafts = new Drafts(
  () => sessionStorage,
  // `crypto.randomUUID` is not there without TLS.
  () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(''),
)

function nameOf(id: string): string {
  return `aetheel:draft:${id}`
}
