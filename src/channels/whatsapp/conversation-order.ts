interface Task {
  done: Promise<void>
  /** It has files to fetch, or waits for a task that does. */
  waitsForFiles: boolean
}

/** Handles messages of each conversation in the order in which they arrived. */
export class ConversationOrder {
  readonly #open = new Map<string, Set<Task>>()

  /** Files may take long, and a "stop" in the meantime must work at once: a command never waits for them. */
  run(address: string, kind: { isCommand: boolean; hasFiles: boolean }, work: () => Promise<void>): Promise<void> {
    const { isCommand, hasFiles } = kind
    const open = this.#open.get(address) ?? new Set<Task>()
    const before = [...open].filter(({ waitsForFiles }) => !isCommand || !waitsForFiles)
    const waitsForFiles = !isCommand && (hasFiles || before.some((task) => task.waitsForFiles))
    const done = Promise.allSettled(before.map((task) => task.done)).then(work)
    const task = { done, waitsForFiles }
    this.#open.set(address, open.add(task))
    const leave = (): void => {
      open.delete(task)
      if (open.size === 0) this.#open.delete(address)
    }
    done.then(leave, leave)
    return done
  }
}
