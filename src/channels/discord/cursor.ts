import type { ChannelHost } from '../types.js'
import { isAfter, snowflakeAt } from './snowflake.js'

const SAVE_EVERY_MS = 5_000
const NAME = 'cursor'
const FIRST = 'first-start'
const ONE_MINUTE = 60_000n << 22n

/**
 * Up to which id everything that Discord has delivered is dealt with. What came later while we were away is asked for.
 *
 * What must stay true: an id is saved only when nothing before it is still being dealt with, or not yet asked for.
 */
export class Cursor {
  readonly #open = new Set<string>()
  #highest = '0'
  #saved = '0'
  #first = '0'
  #holds = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    private readonly host: Pick<ChannelHost, 'recall' | 'remember'>,
    private readonly now: () => number,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Contract: what was said before the first start of all has not been missed. */
  async load(): Promise<void> {
    const known = await this.host.recall(NAME)
    this.#saved = known ?? snowflakeAt(this.now())
    this.#first = (await this.host.recall(FIRST)) ?? this.#saved
    this.#highest = this.#saved
    if (known === undefined) {
      await this.host.remember(FIRST, this.#first)
      await this.host.remember(NAME, this.#saved)
    }
    this.#timer = setInterval(() => void this.save(), SAVE_EVERY_MS).unref()
  }

  /** From where to ask. A little before: of two channels the newer message may come first. */
  get after(): string {
    const earlier = String(BigInt(this.#saved) - ONE_MINUTE)
    return isAfter(earlier, this.#first) ? earlier : this.#first
  }

  begin(id: string): void {
    this.#open.add(id)
    if (isAfter(id, this.#highest)) this.#highest = id
  }

  end(id: string): void {
    this.#open.delete(id)
  }

  /** Nothing is saved until it is released: there are older ones to ask for. */
  hold(): () => void {
    this.#holds += 1
    let isHeld = true
    return () => {
      if (isHeld) this.#holds -= 1
      isHeld = false
    }
  }

  async save(): Promise<void> {
    if (this.#holds > 0) return
    let reached = this.#highest
    for (const id of this.#open) if (!isAfter(id, reached)) reached = String(BigInt(id) - 1n)
    if (!isAfter(reached, this.#saved)) return
    try {
      await this.host.remember(NAME, reached)
      this.#saved = reached
    } catch (error) {
      this.onError(error)
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.save()
  }
}
