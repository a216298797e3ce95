import type { Channel, LiveEvent, NextAttempt, OutgoingReply } from './types.js'

/** Someone attached to a conversation right now. */
export interface Viewer {
  /** Contract: returns at once and never throws. */
  onEvent(event: LiveEvent): void
  /** Contract: returns at once and never throws. */
  onRetry(next: NextAttempt): void
  /** A rejection makes the reply come again. */
  onReply(reply: OutgoingReply): Promise<void>
}

/**
 * The conversations of `aetheel chat`. A reply is stored before it gets here, and anyone who attaches later reads it
 * from the store, so it counts as delivered at once, even if nobody is attached.
 */
export class TerminalChannel implements Channel {
  readonly name = 'terminal'
  readonly takesFiles = true
  readonly #viewers = new Map<string, Set<Viewer>>()

  /** `closeServer` ends the server that viewers connect to; called when nothing more will be shown. */
  constructor(private readonly closeServer: () => Promise<void> = async () => {}) {}

  /** Returns a function that detaches the viewer. */
  attach(address: string, viewer: Viewer): () => void {
    const others = this.#viewers.get(address) ?? new Set()
    this.#viewers.set(address, others.add(viewer))
    return () => {
      others.delete(viewer)
      if (others.size === 0 && this.#viewers.get(address) === others) this.#viewers.delete(address)
    }
  }

  /** Messages arrive through the gateway's control socket. */
  async start(): Promise<void> {}

  async send(reply: OutgoingReply): Promise<void> {
    await Promise.all([...(this.#viewers.get(reply.address) ?? [])].map((viewer) => viewer.onReply(reply)))
  }

  show(event: LiveEvent): void {
    for (const viewer of this.#viewers.get(event.address) ?? []) viewer.onEvent(event)
  }

  retry(next: NextAttempt): void {
    for (const viewer of this.#viewers.get(next.address) ?? []) viewer.onRetry(next)
  }

  async stop(): Promise<void> {}

  async close(): Promise<void> {
    await this.closeServer()
  }
}
