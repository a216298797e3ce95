import type { Channel, LiveEvent, OutgoingReply } from './types.js'

/** Somebody who looks at a conversation now. */
export interface Onlooker {
  /** Contract: returns at once and never throws. */
  onEvent(event: LiveEvent): void
  /** A reply that could not be shown comes again. */
  onReply(reply: OutgoingReply): Promise<void>
}

/**
 * The conversations of `aetheel chat`. A reply is on the gateway's own record before it comes here, and whoever attaches
 * reads it there: it counts as delivered at once, also when nobody looks.
 */
export class TerminalChannel implements Channel {
  readonly name = 'terminal'
  readonly takesFiles = true
  readonly #onlookers = new Map<string, Set<Onlooker>>()

  /** `closeDoor` ends what onlookers come in by; it is called when nothing more will be shown. */
  constructor(private readonly closeDoor: () => Promise<void> = async () => {}) {}

  /** Returns what ends it. */
  attach(address: string, onlooker: Onlooker): () => void {
    const others = this.#onlookers.get(address) ?? new Set()
    this.#onlookers.set(address, others.add(onlooker))
    return () => {
      others.delete(onlooker)
      if (others.size === 0 && this.#onlookers.get(address) === others) this.#onlookers.delete(address)
    }
  }

  /** Messages come by the gateway's control socket. */
  async start(): Promise<void> {}

  async send(reply: OutgoingReply): Promise<void> {
    await Promise.all([...(this.#onlookers.get(reply.address) ?? [])].map((onlooker) => onlooker.onReply(reply)))
  }

  show(event: LiveEvent): void {
    for (const onlooker of this.#onlookers.get(event.address) ?? []) onlooker.onEvent(event)
  }

  async stop(): Promise<void> {}

  async close(): Promise<void> {
    await this.closeDoor()
  }
}
