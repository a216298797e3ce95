// What is the same for agents whose one process takes the turns of several sessions.

import { Lanes } from '../../../core/async.js'
import type { Translation } from '../translation.js'
import type { Turn } from '../turn.js'
import type { WarmTurn } from './types.js'

/** A turn that may have to wait, or to be prepared, before the agent is asked. */
export abstract class SharedTurn implements WarmTurn {
  readonly done: Promise<void>
  isInterrupted = false
  #settle = (): void => {}
  #isAsked = false

  constructor(
    readonly turn: Turn,
    readonly translation: Translation,
  ) {
    this.done = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  get isPending(): boolean {
    return !this.#isAsked
  }

  /** Whether the agent is still to be asked; from then on it is told of an interrupt. */
  mayAsk(): boolean {
    this.#isAsked = !this.isInterrupted
    return this.#isAsked
  }

  /** A turn of which the agent knows nothing is over at once. */
  interrupt(): void {
    this.isInterrupted = true
    if (this.#isAsked) this.stop()
    else this.finish()
  }

  finish(): void {
    this.#settle()
  }

  /** Why it could not be had. */
  abstract fail(error: unknown): void

  protected abstract stop(): void
}

/** The turns of all sessions: one at a time in each. */
export class SessionLines {
  readonly #lanes = new Lanes()

  /** Takes a turn to its end, in a session that is opened where it names none. Contract: never rejects. */
  async play(
    warm: SharedTurn,
    open: () => Promise<{ id: string }>,
    talk: (sessionId: string) => Promise<void>,
  ): Promise<void> {
    try {
      const id = warm.turn.sessionId?.toLowerCase() ?? (await open()).id
      await this.#lanes.run(id, () => talk(id))
    } catch (error) {
      warm.fail(error)
    }
    warm.finish()
  }
}
