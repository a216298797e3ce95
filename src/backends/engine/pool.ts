// What is started once and used by many turns: it is used, rests and ends. Who gets which, and how many there may be, is
// for those who have such a pool to say.

import { createHash } from 'node:crypto'
import { type Backoff, backoffMs } from '../../core/async.js'
import type { SecretFile } from '../types.js'

interface Pooled {
  /** Contract: never rejects; settles when nothing of it is alive. */
  readonly ended: Promise<unknown>
  stop(): void
}

/** From its start until nothing of it is alive. `More` is what its owner notes of it. */
export type PoolEntry<Item, More> = More & {
  readonly key: string
  readonly opening: Promise<Item>
  /** Once it is open. */
  item?: Item
  /** How many turns are under way in it. */
  uses: number
  /** Set while nobody uses it. */
  idleTimer?: NodeJS.Timeout
  /** It takes no more turns, and ends after those under way. */
  isRetired: boolean
  gone: Promise<void>
}

interface PoolOptions<Item, More> {
  /** One that nobody has used for so long is ended. */
  idleMs: () => number
  onOpened?(item: Item): void
  onNotOpened?(entry: PoolEntry<Item, More>, error: unknown): void
  /** When nothing of it is alive, and it is still an entry. */
  onEnded(entry: PoolEntry<Item, More>, item: Item, livedMs: number): void
  /** When it is an entry no more. */
  onGone?(): void
}

export class Pool<Item extends Pooled, More extends object> {
  /** The one that was used last at the end. */
  readonly entries = new Set<PoolEntry<Item, More>>()

  constructor(private readonly options: PoolOptions<Item, More>) {}

  begin(key: string, opening: Promise<Item>, more: More): PoolEntry<Item, More> {
    const entry: PoolEntry<Item, More> = {
      ...more,
      ...{ key, opening, uses: 0, isRetired: false, gone: Promise.resolve() },
    }
    entry.gone = this.#follow(entry)
    this.entries.add(entry)
    return entry
  }

  use(entry: PoolEntry<Item, More>): void {
    entry.uses += 1
    clearTimeout(entry.idleTimer)
    this.entries.delete(entry)
    this.entries.add(entry)
  }

  /** Nobody uses it for now. */
  rest(entry: PoolEntry<Item, More>): void {
    entry.idleTimer = setTimeout(() => void this.end(entry), this.options.idleMs()).unref()
  }

  retire(entry: PoolEntry<Item, More>): void {
    entry.isRetired = true
    if (entry.uses === 0) void this.end(entry)
  }

  /** Contract: never rejects; settles when nothing of it is alive. */
  async end(entry: PoolEntry<Item, More>): Promise<void> {
    entry.isRetired = true
    clearTimeout(entry.idleTimer)
    // One that could not be opened needs no end.
    await entry.opening.then(
      (item) => item.stop(),
      () => {},
    )
    await entry.gone
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.entries].map((entry) => this.end(entry)))
  }

  /** Settles when nothing of it is alive. */
  async #follow(entry: PoolEntry<Item, More>): Promise<void> {
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

/** Of what fails again and again: it is left alone for a while, the longer the more often. */
export class Backoffs {
  readonly #failures = new Map<string, { count: number; until: number }>()

  constructor(
    private readonly options: Backoff & {
      now: () => number
      /** Those over for so long say nothing any more. Left out, for ever. */
      forgetMs?: number
    },
  ) {}

  /** How long it is still left alone; 0 where it is not. */
  leftMs(what: string): number {
    return Math.max(0, (this.#failures.get(what)?.until ?? 0) - this.options.now())
  }

  /** What fails at the same time counts once. */
  failed(what: string): void {
    if (this.leftMs(what) > 0) return
    const { now, forgetMs = Infinity } = this.options
    for (const [other, { until }] of this.#failures) if (now() - until > forgetMs) this.#failures.delete(other)
    const count = 1 + (this.#failures.get(what)?.count ?? 0)
    this.#failures.set(what, { count, until: now() + backoffMs(count, this.options) })
  }

  succeeded(what: string): void {
    this.#failures.delete(what)
  }
}

/** Turns may share a process when these are the same. Secrets are part of it: hashed, so that it can be kept. */
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
