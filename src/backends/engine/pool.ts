// The life cycle of items that are started once and used by many turns. Allocation and size limits are up to the pool's
// owner.

import { createHash } from 'node:crypto'
import { type Backoff, backoffMs } from '../../core/async.js'
import type { SecretFile } from '../types.js'

interface Pooled {
  /** Contract: never rejects; settles when none of its processes is alive. */
  readonly ended: Promise<unknown>
  stop(): void
}

/** Exists from the item's start until none of its processes is alive. `More` is the owner's own state. */
export type PoolEntry<Item, More> = More & {
  readonly key: string
  readonly opening: Promise<Item>
  /** Set once it is open. */
  item?: Item
  /** How many turns are running in it. */
  uses: number
  /** Set while it is idle. */
  idleTimer?: NodeJS.Timeout
  /** Takes no more turns, and ends after the running ones. */
  isRetired: boolean
  gone: Promise<void>
}

interface PoolOptions<Item, More> {
  /** An item that has been idle for this long is ended. */
  idleMs: () => number
  onOpened?(item: Item): void
  onNotOpened?(entry: PoolEntry<Item, More>, error: unknown): void
  /** Called when none of its processes is alive, while it is still an entry. */
  onEnded(entry: PoolEntry<Item, More>, item: Item, livedMs: number): void
  /** Called after its entry was removed. */
  onGone?(): void
}

export class Pool<Item extends Pooled, More extends object> {
  /** Least recently used first. */
  readonly entries = new Set<PoolEntry<Item, More>>()

  constructor(private readonly options: PoolOptions<Item, More>) {}

  add(key: string, opening: Promise<Item>, more: More): PoolEntry<Item, More> {
    const entry: PoolEntry<Item, More> = {
      ...more,
      ...{ key, opening, uses: 0, isRetired: false, gone: Promise.resolve() },
    }
    entry.gone = this.#track(entry)
    this.entries.add(entry)
    return entry
  }

  use(entry: PoolEntry<Item, More>): void {
    entry.uses += 1
    clearTimeout(entry.idleTimer)
    this.entries.delete(entry)
    this.entries.add(entry)
  }

  /** Starts the idle timer. */
  markIdle(entry: PoolEntry<Item, More>): void {
    entry.idleTimer = setTimeout(() => void this.end(entry), this.options.idleMs()).unref()
  }

  retire(entry: PoolEntry<Item, More>): void {
    entry.isRetired = true
    if (entry.uses === 0) void this.end(entry)
  }

  /** Contract: never rejects; settles when none of its processes is alive. */
  async end(entry: PoolEntry<Item, More>): Promise<void> {
    entry.isRetired = true
    clearTimeout(entry.idleTimer)
    // If it could not be opened, there is nothing to stop.
    await entry.opening.then(
      (item) => item.stop(),
      () => {},
    )
    await entry.gone
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.entries].map((entry) => this.end(entry)))
  }

  /** Settles when none of its processes is alive. */
  async #track(entry: PoolEntry<Item, More>): Promise<void> {
    const { onOpened, onNotOpened, onEnded, onGone } = this.options
    try {
      const item = await entry.opening
      entry.item = item
      onOpened?.(item)
      const openedAt = performance.now()
      await item.ended
      onEnded(entry, item, performance.now() - openedAt)
    } catch (error) {
      onNotOpened?.(entry, error)
    }
    clearTimeout(entry.idleTimer)
    this.entries.delete(entry)
    onGone?.()
  }
}

/** Back-off by key: repeated failures are retried at growing intervals. */
export class Backoffs {
  readonly #failures = new Map<string, { count: number; until: number }>()

  constructor(
    private readonly options: Backoff & {
      now: () => number
      /** Failures whose back-off ended this long ago are forgotten. If left out, never. */
      forgetMs?: number
    },
  ) {}

  /** Time until the next attempt; 0 if one may be made now. */
  remainingMs(what: string): number {
    return Math.max(0, (this.#failures.get(what)?.until ?? 0) - this.options.now())
  }

  /** Failures during a back-off count once. */
  failed(what: string): void {
    if (this.remainingMs(what) > 0) return
    const { now, forgetMs = Infinity } = this.options
    for (const [other, { until }] of this.#failures) if (now() - until > forgetMs) this.#failures.delete(other)
    const count = 1 + (this.#failures.get(what)?.count ?? 0)
    this.#failures.set(what, { count, until: now() + backoffMs(count, this.options) })
  }

  succeeded(what: string): void {
    this.#failures.delete(what)
  }
}

/** Turns with the same key may share a process. It is hashed because it covers secrets. */
export function poolKey(parts: unknown[], environment: Record<string, string>, secretFiles: SecretFile[]): string {
  const variables = Object.entries(environment).toSorted(byName)
  const files = secretFiles.map(({ variable, content }) => [variable, content]).toSorted(byName)
  return createHash('sha256')
    .update(JSON.stringify([...parts, variables, files]))
    .digest('hex')
}

function byName([one = '']: string[], [other = '']: string[]): number {
  return one < other ? -1 : 1
}
