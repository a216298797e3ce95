// The warm processes of all agents: which one takes a turn, how many there may be, and when they end.
//
// Traps:
// - A session is in at most one process: a second one would not know what was said in the first, and some agents lock it.
// - Nothing waits for a free slot. If there is none, the turn runs one-shot.

import { abortable, Lanes, within } from '../../../core/async.js'
import type { Log } from '../../../log.js'
import { memoryOfTrees } from '../../../processes/process-memory.js'
import { isRunning } from '../../../processes/process-table.js'
import { NO_PID } from '../../../processes/process-tree.js'
import { Backoffs, Pool, type PoolEntry } from '../pool.js'
import type { WarmProcess } from './warm-process.js'

/** Settings of the gateway. They may change while it runs, so they are read each time. */
export interface WarmLimits {
  /** A process that has been idle for this long is ended. */
  liveIdleMs: number
  liveMaxProcesses: number
  /** Of all processes together, including their children. */
  liveMaxMemoryMb: number
  /** Whether to keep one spare process, started like the last one, ready for the next new session. */
  liveSpare: boolean
}

export interface WarmNeeds {
  /** Turns with the same key can share a process. */
  key: string
  /** Unique across agents. Undefined for a new session. */
  session: string | undefined
  isShared: boolean
  /** As in the driver. */
  locksSessions: boolean
  /** Rules out a spare: the directory must be checked right before each start. */
  isUntrusted: boolean
  /** Contract: as `openWarmProcess`; only for the session given here. */
  open(): Promise<WarmProcess>
}

export interface WarmLease {
  readonly process: WarmProcess
  /**
   * Contract: called once, when the turn is over. `session` is the turn's session, undefined if it cannot continue in this
   * process. Settles when everything that will not be reused has ended.
   */
  release(session: string | undefined): Promise<void>
}

interface EntryState extends Pick<WarmNeeds, 'locksSessions'> {
  /** Not used yet. */
  isSpare: boolean
  sessions: Set<string>
  /** How many turns wait for its end, to continue one of its sessions elsewhere. */
  leavers: number
  /** The end of its last turn. */
  idleSince: number
  /** Memory as last measured, including its children. */
  bytes: number
}

type Entry = PoolEntry<WarmProcess, EntryState>

interface WarmPoolOptions {
  log: Log
  limits: Readonly<WarmLimits>
  /** Defaults to `memoryOfTrees`. */
  memory?: (pids: number[]) => number[] | undefined
  now?: () => number
  /** How long a process may take to become ready. */
  readyMs?: number
  /** How often memory is measured. */
  measureMs?: number
  /** A process that has been idle for longer is pinged before use. */
  freshMs?: number
  /** How long it may take to answer the ping. */
  answerMs?: number
}

const READY_MS = 20_000
const MEASURE_MS = 15_000
/** Measuring scans all processes of the machine, which is too slow for every turn. */
const MEASURE_AGAIN_MS = 1_000
const FRESH_MS = 10_000
const ANSWER_MS = 5_000
const BACKOFF = { firstMs: 1_000, longestMs: 600_000 }

export class WarmPool {
  /** One turn at a time in each session, whatever process takes it. */
  readonly queue = new Lanes()
  readonly #pool: Pool<WarmProcess, EntryState>
  /** By executable, for processes that did not become ready. */
  readonly backoffs: Backoffs
  readonly #now: () => number
  readonly #memory: (pids: number[]) => number[] | undefined
  #measureTimer: NodeJS.Timeout | undefined
  #measuredAt = -Infinity
  #isStopped = false

  constructor(private readonly options: WarmPoolOptions) {
    this.#now = options.now ?? Date.now
    this.#memory = options.memory ?? memoryOfTrees
    this.backoffs = new Backoffs({ ...BACKOFF, now: this.#now })
    const { log } = options
    this.#pool = new Pool({
      idleMs: () => options.limits.liveIdleMs,
      onOpened: ({ pid }) => log.debug('live.started', { pid }),
      onEnded({ isRetired, uses }, { pid }) {
        if (isRetired || uses > 0) log.debug('live.ended', { pid })
        else log.warn('live.died', { pid })
      },
    })
  }

  /** Undefined if the pool is full. Contract: rejects if the process cannot be prepared, or at the signal. */
  async acquire(needs: WarmNeeds, signal: AbortSignal): Promise<WarmLease | undefined> {
    const { session } = needs
    const holder = this.#holderOf(session)
    const isUsable = holder?.key === needs.key && (isOpen(holder) || isStillBusy(holder))
    if (!isUsable && session !== undefined) await this.leave(session, signal)
    const entry = isUsable ? holder : (this.#findReusable(needs) ?? this.#makeRoom(needs))
    if (!entry) return undefined
    const mustAnswer = entry.uses === 0 && this.#now() - entry.idleSince > (this.options.freshMs ?? FRESH_MS)
    this.#pool.use(entry)
    entry.isSpare = false
    if (session !== undefined) entry.sessions.add(session)
    const release = (last: string | undefined): Promise<void> => this.#release(entry, needs, last)
    try {
      const process = entry.item ?? (await abortable(signal, () => entry.opening))
      if (!mustAnswer || (await abortable(signal, () => this.#isResponsive(process)))) return { process, release }
      this.options.log.warn('live.silent', { pid: process.pid })
      process.stop()
    } catch (error) {
      await release(session)
      throw error
    }
    await release(session)
    return this.acquire(needs, signal)
  }

  /** Frees the session for a turn outside the pool: the process whose memory of it would go stale is ended. */
  async leave(session: string, signal: AbortSignal): Promise<void> {
    const holder = this.#holderOf(session)
    if (!holder) return
    this.#pool.retire(holder)
    if (holder.uses > 0 && !holder.locksSessions) {
      // It takes no more turns, so its stale memory does not matter.
      holder.sessions.delete(session)
      return
    }
    holder.leavers += 1
    try {
      await abortable(signal, () => holder.gone)
    } finally {
      holder.leavers -= 1
    }
  }

  /** Retires all current processes; running turns finish first. */
  drain(): void {
    for (const entry of this.#pool.entries) this.#pool.retire(entry)
  }

  /** Ends all processes. Contract: no turn is running, and nothing is started afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#measureTimer)
    await this.#pool.endAll()
  }

  #holderOf(session: string | undefined): Entry | undefined {
    return session === undefined ? undefined : [...this.#pool.entries].find(({ sessions }) => sessions.has(session))
  }

  /** A process that can take a session it does not have yet. */
  #findReusable({ isShared, session, key }: WarmNeeds): Entry | undefined {
    return [...this.#pool.entries].find(
      (entry) => entry.key === key && isOpen(entry) && (isShared || (entry.isSpare && session === undefined)),
    )
  }

  #makeRoom(needs: WarmNeeds): Entry | undefined {
    const { liveMaxProcesses } = this.options.limits
    if (this.#isStopped || !this.#evict((count, excess) => count < liveMaxProcesses && excess < 0)) return undefined
    return this.#begin(needs)
  }

  #begin(needs: WarmNeeds): Entry {
    const entry = this.#pool.add(needs.key, this.#open(needs), {
      locksSessions: needs.locksSessions,
      isSpare: false,
      sessions: new Set<string>(),
      leavers: 0,
      idleSince: this.#now(),
      bytes: 0,
    })
    const evictExcess = (): boolean => this.#evict((_, excess) => excess <= 0)
    this.#measureTimer ??= setInterval(evictExcess, this.options.measureMs ?? MEASURE_MS).unref()
    return entry
  }

  async #open(needs: WarmNeeds): Promise<WarmProcess> {
    // An evicted process must be gone before another takes its slot.
    await Promise.all(
      [...this.#pool.entries].filter(({ isRetired, uses }) => isRetired && uses === 0).map(({ gone }) => gone),
    )
    const process = await needs.open()
    const late = setTimeout(() => process.stop(), this.options.readyMs ?? READY_MS)
    const settle = (): void => clearTimeout(late)
    void process.connection.ready.then(settle, settle)
    void process.ended.then(settle)
    return process
  }

  /** `last` is the turn's session. */
  async #release(entry: Entry, needs: WarmNeeds, last: string | undefined): Promise<void> {
    entry.uses -= 1
    if (needs.session !== undefined) entry.sessions.delete(needs.session)
    if (last !== undefined) entry.sessions.add(last)
    // Without a session, nothing would ever use it again.
    else if (!needs.isShared) entry.isRetired = true
    if (entry.uses > 0) return
    if (entry.isRetired || entry.item?.isOver === true) return this.#pool.end(entry)
    this.#markIdle(entry)
    if (needs.session === undefined && !needs.isShared && !needs.isUntrusted) this.#startSpare(needs)
  }

  #markIdle(entry: Entry): void {
    entry.idleSince = this.#now()
    this.#pool.markIdle(entry)
  }

  /** Never evicts a process that has a session. */
  #startSpare(needs: WarmNeeds): void {
    const { liveSpare, liveMaxProcesses } = this.options.limits
    const spares = [...this.#pool.entries].filter(({ isSpare, isRetired }) => isSpare && !isRetired)
    if (!liveSpare || this.#isStopped || spares.some((spare) => spare.key === needs.key)) return
    for (const spare of spares) this.#pool.retire(spare)
    const { count, excess } = this.#load(this.#taken())
    if (count >= liveMaxProcesses || excess >= 0) return
    const entry = this.#begin(needs)
    entry.isSpare = true
    this.#markIdle(entry)
  }

  /** Contract: never rejects. */
  async #isResponsive({ connection, ended }: WarmProcess): Promise<boolean> {
    const no = (): boolean => false
    const answer = connection.ready.then(() => connection.ping()).then(() => true, no)
    const isThere = await within(this.options.answerMs ?? ANSWER_MS, Promise.race([answer, ended.then(no)]))
    return isThere === true
  }

  /** Ends the least recently used processes, spares first, until it is enough. Returns whether it is. */
  #evict(isEnough: (count: number, excessBytes: number) => boolean): boolean {
    const taken = this.#taken()
    let { count, excess } = this.#load(taken)
    const idle = taken.filter(({ uses }) => uses === 0)
    for (const entry of [...idle.filter(({ isSpare }) => isSpare), ...idle.filter(({ isSpare }) => !isSpare)]) {
      if (isEnough(count, excess)) return true
      this.#pool.retire(entry)
      count -= 1
      excess -= entry.bytes
    }
    return isEnough(count, excess)
  }

  /** Entries that count against the limits: all but those about to end. */
  #taken(): Entry[] {
    return [...this.#pool.entries].filter(({ isRetired, uses }) => !isRetired || uses > 0)
  }

  #load(entries: Entry[]): { count: number; excess: number } {
    this.#measureMemory()
    const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
    return { count: entries.length, excess: bytes - this.options.limits.liveMaxMemoryMb * 1024 * 1024 }
  }

  #measureMemory(): void {
    const now = this.#now()
    if (
      this.#pool.entries.size === 0 ||
      now - this.#measuredAt < Math.min(MEASURE_AGAIN_MS, this.options.measureMs ?? MEASURE_MS)
    )
      return
    this.#measuredAt = now
    const entries = [...this.#pool.entries]
    const seen = this.#memory(entries.map(({ item }) => item?.pid ?? NO_PID)) ?? []
    for (const [index, entry] of entries.entries()) entry.bytes = seen[index] ?? 0
  }
}

/** Whether it can take a turn. Checks the pid too, since its exit may not have been reported yet. */
function isOpen(entry: Entry): boolean {
  return !entry.isRetired && isAlive(entry)
}

/** A retired process that is still busy takes no new sessions, but its own need not wait for other turns to end. */
function isStillBusy(entry: Entry): boolean {
  return entry.uses > 0 && entry.leavers === 0 && isAlive(entry)
}

function isAlive({ item }: Entry): boolean {
  return !item || (!item.isOver && item.pid !== undefined && isRunning(item.pid))
}
