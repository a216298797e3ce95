// The servers that we start ourselves. Runs share one only if they need exactly the same process, so none sees another's
// secrets.

import { statSync } from 'node:fs'
import { abortable, wait } from '../../../core/async.js'
import type { Scrubber } from '../../../credentials/scrubber.js'
import { messageOf } from '../../../errors.js'
import type { Log } from '../../../log.js'
import type { ProcessOwner } from '../../../processes/process-owner.js'
import { Backoffs, Pool, type PoolEntry, poolKey } from '../../engine/pool.js'
import type { OpenCodeBackend } from '../backend.js'
import type { AgentProbe, ProbeOptions } from '../../types.js'
import { OpenCodeClient } from './client.js'
import { type ManagedServer, startManagedServer } from './managed-server.js'
import type { LeftBehind, OpenCodeServers, ServerLease, ServerNeeds } from './servers.js'

export interface ManagedLimits {
  startTimeoutMs: number
  /** A server that has been idle for this long is ended. */
  idleMs: number
  /** Each takes a few hundred megabytes. */
  maxServers: number
}

export const MANAGED_LIMITS: ManagedLimits = { startTimeoutMs: 60_000, idleMs: 600_000, maxServers: 4 }

interface ManagedOptions {
  /** A function, because the operator may change the executable at any time. */
  cli: () => Pick<OpenCodeBackend, 'serverProcess' | 'validate' | 'probe'>
  owner?: ProcessOwner
  scrubber: Scrubber
  log: Log
  limits?: ManagedLimits
}

interface EntryState {
  /** Whether tools may have left processes behind. */
  isUntidy: boolean
  /** New runs wait for it: otherwise what they start would be ended too. */
  tidying: Promise<void>
}

type Entry = PoolEntry<ManagedServer, EntryState>

const BACKOFF = { firstMs: 500, longestMs: 15_000 }
const LONG_LIFE_MS = 60_000

export class ManagedServers implements OpenCodeServers {
  readonly #pool: Pool<ManagedServer, EntryState>
  /** By key, for servers that did not start or died early. */
  readonly #backoffs = new Backoffs({ ...BACKOFF, now: Date.now, forgetMs: LONG_LIFE_MS })
  readonly #stopping = new AbortController()
  /** Runs that wait for a free slot. */
  #waiting: Array<() => void> = []
  readonly #limits: ManagedLimits

  constructor(private readonly options: ManagedOptions) {
    this.#limits = options.limits ?? MANAGED_LIMITS
    this.#pool = new Pool({
      idleMs: () => this.#limits.idleMs,
      onNotOpened: (entry, error) => this.#notStarted(entry, error),
      onEnded: (entry, server, livedMs) => this.#ended(entry, server, livedMs),
      onGone: () => this.#wake(),
    })
  }

  async acquire(needs: ServerNeeds, signal: AbortSignal): Promise<ServerLease> {
    const key = this.#keyOf(needs)
    const entry = await this.#claim(key, needs, signal)
    let released: Promise<void> | undefined
    const release = (left: LeftBehind): Promise<void> => (released ??= this.#release(entry, left))
    try {
      const { endpoint } = await abortable(signal, () => entry.opening)
      await entry.tidying
      return { endpoint, release }
    } catch (error) {
      await release('nothing')
      this.#requireOpen()
      throw error
    }
  }

  isFound(): Promise<boolean> {
    return this.options.cli().validate()
  }

  probe(options?: ProbeOptions): Promise<AgentProbe> {
    return this.options.cli().probe(options)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wake()
    await this.#pool.endAll()
  }

  /** Runs share a server if its process would be identical for both. */
  #keyOf(needs: ServerNeeds): string {
    const { executable, environment } = this.options.cli().serverProcess(needs)
    // An update of OpenCode takes effect even while the old version is in use.
    const { mtimeMs } = statSync(executable)
    return poolKey([executable, mtimeMs, needs.isUntrusted], environment, needs.secretFiles)
  }

  /** Contract: marks the entry as used as soon as it is found, so it cannot be ended as idle. */
  async #claim(key: string, needs: ServerNeeds, signal: AbortSignal): Promise<Entry> {
    for (;;) {
      this.#requireOpen()
      signal.throwIfAborted()
      const entry = this.#find(key, needs)
      if (entry) {
        this.#pool.use(entry)
        return entry
      }
      await abortable(signal, () => new Promise<void>((resolve) => this.#waiting.push(resolve)))
    }
  }

  /** The server with this key or a new one. If there is no free slot, evicts an idle server and returns undefined. */
  #find(key: string, needs: ServerNeeds): Entry | undefined {
    const entries = [...this.#pool.entries]
    const known = entries.find((entry) => entry.key === key)
    if (known) return known.isRetired || known.item?.hasExited() ? undefined : known
    if (entries.length < this.#limits.maxServers) {
      return this.#pool.add(key, this.#start(key, needs), { isUntidy: false, tidying: Promise.resolve() })
    }
    const oldestIdle = entries.find(({ uses }) => uses === 0)
    if (oldestIdle && !entries.some(({ isRetired }) => isRetired)) void this.#pool.end(oldestIdle)
    return undefined
  }

  #requireOpen(): void {
    if (this.#stopping.signal.aborted) throw new Error('The OpenCode servers are being stopped.')
  }

  async #start(key: string, needs: ServerNeeds): Promise<ManagedServer> {
    const { cli, log } = this.options
    const { signal } = this.#stopping
    const pauseMs = this.#backoffs.remainingMs(key)
    if (pauseMs > 0) await wait(pauseMs, { signal })
    const startedAt = performance.now()
    const server = await startManagedServer(cli(), needs, { ...this.options, ...this.#limits }, signal)
    const { url } = server.endpoint
    log.info('opencode-server.started', { url, tookMs: Math.round(performance.now() - startedAt) })
    return server
  }

  #notStarted({ key }: Entry, error: unknown): void {
    if (!this.#stopping.signal.aborted) {
      this.options.log.warn('opencode-server.not-started', { error: messageOf(error) })
    }
    this.#backoffs.failed(key)
  }

  #ended({ key, uses, isRetired }: Entry, { endpoint }: ManagedServer, livedMs: number): void {
    const { log } = this.options
    if (isRetired || livedMs > LONG_LIFE_MS) this.#backoffs.succeeded(key)
    if (isRetired) log.info('opencode-server.ended', { url: endpoint.url })
    else {
      log.warn('opencode-server.died', { url: endpoint.url, uses })
      this.#backoffs.failed(key)
    }
  }

  async #release(entry: Entry, left: LeftBehind): Promise<void> {
    entry.uses -= 1
    if (left === 'broken' && !entry.isRetired && !(await this.#isWell(entry))) {
      this.options.log.warn('opencode-server.hung', { url: entry.item?.endpoint.url, uses: entry.uses })
      return await this.#pool.end(entry)
    }
    entry.isUntidy ||= left !== 'nothing'
    // Leftovers of one run cannot be distinguished from running tools of another.
    if (entry.uses > 0) return
    this.#pool.markIdle(entry)
    this.#wake()
    if (!entry.isUntidy) return
    entry.isUntidy = false
    entry.tidying = entry.item?.tidy() ?? Promise.resolve()
    await entry.tidying
  }

  async #isWell({ item }: Entry): Promise<boolean> {
    if (!item) return true
    return new OpenCodeClient(item.endpoint).health().then(
      () => true,
      () => false,
    )
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }
}
