// Flushes commits to disk in the background.
//
// SQLite would flush within each commit, which blocks the whole process: no agent is read, no reply is sent. Here one flush
// runs at a time in the background, and commits made meanwhile share the next one.

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
   * Contract: settles when everything committed before the call is on disk. Once a flush has failed, it always rejects: the
   * system may drop what it could not write, and reports that only once.
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
    // Otherwise the next one starts when this one has settled.
    if (!this.#next) this.#underWay = undefined
  }

  /** To be called before a change. Contract: throws if changes no longer get to disk. */
  requireSound(): void {
    if (this.#failure) throw this.#failure
  }

  /** Contract: nothing is committed after the call. */
  async close(): Promise<void> {
    // Whoever committed gets the failure.
    await Promise.allSettled([this.#next ?? this.#underWay])
    const [log] = await Promise.allSettled([this.#log])
    if (log.status === 'fulfilled') await log.value?.close()
  }
}
