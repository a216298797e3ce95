// Shared by agents whose single process takes the turns of several sessions.

import { Lanes } from '../../../core/async.js'
import type { Translation } from '../translation.js'
import type { Turn } from '../turn.js'
import type { WarmTurn } from './types.js'

/** A turn that may have to wait or be prepared before the agent gets the prompt. */
export abstract class SharedTurn implements WarmTurn {
  readonly done: Promise<void>
  isInterrupted = false
  #settle = (): void => {}
  #isPrompted = false

  constructor(
    readonly turn: Turn,
    readonly translation: Translation,
  ) {
    this.done = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  get isPending(): boolean {
    return !this.#isPrompted
  }

  /** Returns whether the prompt may still be sent. From then on, an interrupt goes to the agent. */
  mayPrompt(): boolean {
    this.#isPrompted = !this.isInterrupted
    return this.#isPrompted
  }

  /** A turn that the agent knows nothing about ends at once. */
  interrupt(): void {
    this.isInterrupted = true
    if (this.#isPrompted) this.stop()
    else this.finish()
  }

  finish(): void {
    this.#settle()
  }

  /** Reports why the turn could not run. */
  abstract fail(error: unknown): void

  protected abstract stop(): void
}

/** Runs the turns of all sessions, one at a time in each. */
export class SessionQueues {
  readonly #lanes = new Lanes()

  /** Runs a turn to its end, in a new session if it names none. Contract: never rejects. */
  async run(
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
