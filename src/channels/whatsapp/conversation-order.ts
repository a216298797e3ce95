interface Piece {
  done: Promise<void>
  /** It has files to fetch, or comes after what has. */
  waitsForFiles: boolean
}

/** What people write is dealt with in the order in which it came, in each conversation. */
export class ConversationOrder {
  readonly #open = new Map<string, Set<Piece>>()

  /** Files may take long, and whoever says "stop" meanwhile means it: a command waits for none of them. */
  run(address: string, kind: { isCommand: boolean; hasFiles: boolean }, work: () => Promise<void>): Promise<void> {
    const { isCommand, hasFiles } = kind
    const open = this.#open.get(address) ?? new Set<Piece>()
    const before = [...open].filter(({ waitsForFiles }) => !isCommand || !waitsForFiles)
    const waitsForFiles = !isCommand && (hasFiles || before.some((piece) => piece.waitsForFiles))
    const done = Promise.allSettled(before.map((piece) => piece.done)).then(work)
    const piece = { done, waitsForFiles }
    this.#open.set(address, open.add(piece))
    const leave = (): void => {
      open.delete(piece)
      if (open.size === 0) this.#open.delete(address)
    }
    done.then(leave, leave)
    return done
  }
}
