// Brings what was committed to the disk while everything else goes on.
//
// SQLite would do it within each commit, and nothing else happens in the process meanwhile: no agent is read, no reply is
// sent. Here it happens beside, one at a time, and those who commit while it is under way share the next.

import { GatewayError, messageOf } from '../errors.js'

/** The write-ahead log of SQLite. */
export interface CommitLog {
  datasync(): Promise<void>
  close(): Promise<void>
}

export class LogFlush {
  #log: Promise<CommitLog> | undefined
  #underWay: Promise<void> | undefined
  #next: Promise<void> | undefined
  #failure: GatewayError | undefined

  constructor(private readonly open: () => Promise<CommitLog>) {}

  /**
   * Contract: settles when all that was committed before the call is on the disk. When that has failed once, it rejects for
   * ever: the system may forget what it could not write, and tells it once.
   */
  flush(): Promise<void> {
    if (!this.#underWay) return this.#begin()
    this.#next ??= this.#underWay.then(() => this.#begin())
    return this.#next
  }

  #begin(): Promise<void> {
    this.#next = undefined
    this.#underWay = this.#sync()
    return this.#underWay
  }

  async #sync(): Promise<void> {
    try {
      this.#log ??= this.open()
      await (await this.#log).datasync()
    } catch (error) {
      const problem = `What was written last may not be on the disk: ${messageOf(error)}.`
      const advice = 'Look after the disk, then start the gateway again.'
      this.#failure = new GatewayError('store_unavailable', `${problem} ${advice}`, { cause: error })
      throw this.#failure
    }
    // What waits goes on from this one.
    if (!this.#next) this.#underWay = undefined
  }

  /** For who is about to change something. Contract: throws when that could not get to the disk any more. */
  requireSound(): void {
    if (this.#failure) throw this.#failure
  }

  /** Contract: nothing is committed any more. */
  async close(): Promise<void> {
    // Whoever has committed hears of a failure.
    await Promise.allSettled([this.#next ?? this.#underWay])
    const [log] = await Promise.allSettled([this.#log])
    if (log.status === 'fulfilled') await log.value?.close()
  }
}
