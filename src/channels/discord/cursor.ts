import type { ChannelHost } from '../types.js'
import { isAfter, snowflakeAt } from './api.js'

const SAVE_EVERY_MS = 5_000
const NAME = 'cursor'
const FIRST = 'first-start'
const ONE_MINUTE = 60_000n << 22n

/**
 * The id up to which everything Discord delivered has been handled. Messages that arrived later while we were away are
 * fetched.
 *
 * Invariant: an id is saved only once everything before it has been fetched and handled.
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

  /** Contract: messages from before the very first start do not count as missed. */
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

  /** Where to start fetching. A little earlier than saved: messages of different channels may arrive out of order. */
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

  /** Blocks saving until released: older messages remain to be fetched. */
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
