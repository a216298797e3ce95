// The servers that we start ourselves: one for all runs that need the same of its process, so that no run sees what is
// meant for another.

import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { abortable, backoffMs, wait } from '../../../core/async.js'
import type { Scrubber } from '../../../credentials/scrubber.js'
import { messageOf } from '../../../errors.js'
import type { Log } from '../../../log.js'
import type { ProcessOwner } from '../../../processes/process-owner.js'
import type { OpenCodeBackend } from '../backend.js'
import type { AgentProbe } from '../../types.js'
import { OpenCodeClient } from './client.js'
import { type ManagedServer, startManagedServer } from './managed-server.js'
import type { LeftBehind, OpenCodeServers, ServerLease, ServerNeeds } from './servers.js'

export interface ManagedLimits {
  startTimeoutMs: number
  /** A server that nobody has used for so long is ended. */
  idleMs: number
  /** Each takes some hundred megabytes. */
  mostServers: number
}

export const MANAGED_LIMITS: ManagedLimits = { startTimeoutMs: 60_000, idleMs: 600_000, mostServers: 4 }

interface ManagedOptions {
  /** The one in use now: the operator may name another executable meanwhile. */
  cli: () => Pick<OpenCodeBackend, 'serverProcess' | 'probe'>
  owner?: ProcessOwner
  scrubber: Scrubber
  log: Log
  limits?: ManagedLimits
}

/** From its start until nothing of it is alive. */
interface Entry {
  key: string
  ready: Promise<ManagedServer>
  /** Once it is ready. */
  server?: ManagedServer
  uses: number
  /** Set while nobody uses it. */
  idleTimer?: NodeJS.Timeout
  /** Whether tools may have left something. */
  isUntidy: boolean
  /** Under way: whoever comes meanwhile waits, for what it starts would be ended, too. */
  tidying: Promise<void>
  isEnding: boolean
  gone: Promise<void>
}

/** Of servers with the same needs that did not start, or died soon. */
interface Trouble {
  failures: number
  until: number
}

const BACKOFF = { firstMs: 500, longestMs: 15_000 }
const LONG_LIFE_MS = 60_000

export class ManagedServers implements OpenCodeServers {
  /** By needs, the one that was used last at the end. */
  readonly #entries = new Map<string, Entry>()
  readonly #troubles = new Map<string, Trouble>()
  readonly #stopping = new AbortController()
  /** Those who wait for a place. */
  #waiting: Array<() => void> = []
  readonly #limits: ManagedLimits

  constructor(private readonly options: ManagedOptions) {
    this.#limits = options.limits ?? MANAGED_LIMITS
  }

  async acquire(needs: ServerNeeds, signal: AbortSignal): Promise<ServerLease> {
    const key = this.#keyOf(needs)
    const entry = await this.#claim(key, needs, signal)
    let released: Promise<void> | undefined
    const release = (left: LeftBehind): Promise<void> => (released ??= this.#release(entry, left))
    try {
      const { endpoint } = await abortable(signal, () => entry.ready)
      await entry.tidying
      return { endpoint, release }
    } catch (error) {
      await release('nothing')
      this.#requireOpen()
      throw error
    }
  }

  probe(): Promise<AgentProbe> {
    return this.options.cli().probe()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wake()
    await Promise.all([...this.#entries.values()].map((entry) => this.#end(entry)))
  }

  /** Two runs share a server when its process would be the same in everything. */
  #keyOf(needs: ServerNeeds): string {
    const { executable, environment } = this.options.cli().serverProcess(needs)
    const files = needs.secretFiles.map(({ variable, content }) => [variable, content])
    // An update of OpenCode must not wait until nobody uses the old one.
    const { mtimeMs } = statSync(executable)
    const parts = [
      executable,
      mtimeMs,
      Object.entries(environment).toSorted(byName),
      files.toSorted(byName),
      needs.isUntrusted,
    ]
    return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  }

  /** Contract: what it gives is in use from the moment it is found, so that nobody ends it for being idle. */
  async #claim(key: string, needs: ServerNeeds, signal: AbortSignal): Promise<Entry> {
    for (;;) {
      this.#requireOpen()
      signal.throwIfAborted()
      const entry = this.#find(key, needs)
      if (entry) {
        entry.uses += 1
        clearTimeout(entry.idleTimer)
        this.#entries.delete(key)
        this.#entries.set(key, entry)
        return entry
      }
      await abortable(signal, () => new Promise<void>((resolve) => this.#waiting.push(resolve)))
    }
  }

  /** The server with this key, a new one, or none where there is no place; then one is made if somebody is idle. */
  #find(key: string, needs: ServerNeeds): Entry | undefined {
    const known = this.#entries.get(key)
    if (known) return known.isEnding || known.server?.hasExited() ? undefined : known
    if (this.#entries.size < this.#limits.mostServers) return this.#begin(key, needs)
    const entries = [...this.#entries.values()]
    const oldestIdle = entries.find(({ uses }) => uses === 0)
    if (oldestIdle && !entries.some(({ isEnding }) => isEnding)) void this.#end(oldestIdle)
    return undefined
  }

  #requireOpen(): void {
    if (this.#stopping.signal.aborted) throw new Error('The OpenCode servers are being stopped.')
  }

  #begin(key: string, needs: ServerNeeds): Entry {
    const ready = this.#start(key, needs)
    const entry: Entry = {
      key,
      ready,
      uses: 0,
      isUntidy: false,
      tidying: Promise.resolve(),
      isEnding: false,
      gone: Promise.resolve(),
    }
    entry.gone = this.#follow(entry)
    this.#entries.set(key, entry)
    return entry
  }

  async #start(key: string, needs: ServerNeeds): Promise<ManagedServer> {
    const { cli, log } = this.options
    const { signal } = this.#stopping
    const pauseMs = (this.#troubles.get(key)?.until ?? 0) - Date.now()
    if (pauseMs > 0) await wait(pauseMs, { signal })
    const startedAt = performance.now()
    const server = await startManagedServer(cli(), needs, { ...this.options, ...this.#limits }, signal)
    const { url } = server.endpoint
    log.info('opencode-server.started', { url, tookMs: Math.round(performance.now() - startedAt) })
    return server
  }

  /** Settles when nothing of it is alive. */
  async #follow(entry: Entry): Promise<void> {
    const { log } = this.options
    try {
      entry.server = await entry.ready
      const { endpoint, ended } = entry.server
      const readyAt = performance.now()
      await ended
      if (entry.isEnding) {
        log.info('opencode-server.ended', { url: endpoint.url })
        this.#troubles.delete(entry.key)
      } else {
        log.warn('opencode-server.died', { url: endpoint.url, uses: entry.uses })
        this.#noteTrouble(entry.key, performance.now() - readyAt)
      }
    } catch (error) {
      if (!this.#stopping.signal.aborted) log.warn('opencode-server.not-started', { error: messageOf(error) })
      this.#noteTrouble(entry.key, 0)
    }
    clearTimeout(entry.idleTimer)
    this.#entries.delete(entry.key)
    this.#wake()
  }

  #noteTrouble(key: string, livedMs: number): void {
    // Those long over say nothing any more, and credentials that change would make them many.
    for (const [other, { until }] of this.#troubles) if (Date.now() - until > LONG_LIFE_MS) this.#troubles.delete(other)
    const failures = 1 + (livedMs > LONG_LIFE_MS ? 0 : (this.#troubles.get(key)?.failures ?? 0))
    this.#troubles.set(key, { failures, until: Date.now() + backoffMs(failures, BACKOFF) })
  }

  async #release(entry: Entry, left: LeftBehind): Promise<void> {
    entry.uses -= 1
    if (left === 'broken' && !entry.isEnding && !(await this.#isWell(entry))) {
      this.options.log.warn('opencode-server.hung', { url: entry.server?.endpoint.url, uses: entry.uses })
      return await this.#end(entry)
    }
    entry.isUntidy ||= left !== 'nothing'
    // What the tools of one run have left cannot be told from the tools of another that is under way.
    if (entry.uses > 0) return
    entry.idleTimer = setTimeout(() => void this.#end(entry), this.#limits.idleMs).unref()
    this.#wake()
    if (!entry.isUntidy) return
    entry.isUntidy = false
    entry.tidying = entry.server?.tidy() ?? Promise.resolve()
    await entry.tidying
  }

  async #isWell({ server }: Entry): Promise<boolean> {
    if (!server) return true
    return new OpenCodeClient(server.endpoint).health().then(
      () => true,
      () => false,
    )
  }

  async #end(entry: Entry): Promise<void> {
    entry.isEnding = true
    // One that does not start needs no end.
    await entry.ready.then(
      ({ stop }) => stop(),
      () => {},
    )
    await entry.gone
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

function byName([one = '']: string[], [other = '']: string[]): number {
  return one < other ? -1 : 1
}
