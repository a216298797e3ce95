// The warm processes of all agents: which one takes a turn, how many there may be, and when they end.
//
// Traps that a careless edit would fall into:
// - A session is in one process at most: another one would not know what was said there, and some agents lock it.
// - Nobody waits for a place. Where there is none, the turn has a process of its own.

import { abortable, Lanes, within } from '../../../core/async.js'
import type { Log } from '../../../log.js'
import { memoryOfTrees } from '../../../processes/process-memory.js'
import { isRunning } from '../../../processes/process-table.js'
import { NO_PID } from '../../../processes/process-tree.js'
import { Backoffs, Pool, type PoolEntry } from '../pool.js'
import type { WarmProcess } from './warm-process.js'

export interface WarmLimits {
  /** A process that nobody has used for so long is ended. */
  idleMs: number
  mostProcesses: number
  /** Of all of them, with what hangs below them. */
  mostMemoryMb: number
  /** Whether one more is started ahead, for the next new session that is like the last. */
  hasSpare: boolean
}

export interface WarmNeeds {
  /** Two turns can be in one process when these are the same. */
  key: string
  /** Unlike any of another agent. Undefined for a new one. */
  session: string | undefined
  isShared: boolean
  /** As of the driver. */
  locksSessions: boolean
  /** Whether none is started ahead: where it starts must be looked at right before. */
  isUntrusted: boolean
  /** Contract: as `openWarmProcess`; for no session but that of these needs. */
  open(): Promise<WarmProcess>
}

export interface WarmLease {
  readonly process: WarmProcess
  /**
   * Contract: called once, when the turn is over. `session` is where it was, undefined when nothing can go on there.
   * Settles when nothing is alive that nobody will use.
   */
  release(session: string | undefined): Promise<void>
}

interface Noted extends Pick<WarmNeeds, 'locksSessions'> {
  /** Nobody has used it yet. */
  isSpare: boolean
  sessions: Set<string>
  /** How many wait for its end, to go on with a session of it elsewhere. */
  leavers: number
  /** When the last turn in it was over. */
  restsSince: number
  /** As last seen, with what hangs below it. */
  bytes: number
}

type Entry = PoolEntry<WarmProcess, Noted>

interface WarmPoolOptions {
  log: Log
  /** As they are now. */
  limits: () => WarmLimits
  /** As `memoryOfTrees`. */
  memory?: (pids: number[]) => number[] | undefined
  now?: () => number
  /** How long a process may take until it listens. */
  readyMs?: number
  /** How often it is looked how much memory they take. */
  lookMs?: number
  /** One that has rested for longer is asked whether it still answers. */
  freshMs?: number
  /** How long it may take for that. */
  answerMs?: number
}

const READY_MS = 20_000
const LOOK_MS = 15_000
/** To look means to go through all processes of the machine: not with every turn. */
const LOOK_AGAIN_MS = 1_000
const FRESH_MS = 10_000
const ANSWER_MS = 5_000
const BACKOFF = { firstMs: 1_000, longestMs: 600_000 }

export class WarmPool {
  /** One turn at a time in each session, whichever way it is taken. */
  readonly queue = new Lanes()
  readonly #pool: Pool<WarmProcess, Noted>
  /** By executable, of those whose processes did not get ready. */
  readonly backoffs: Backoffs
  readonly #now: () => number
  readonly #memory: (pids: number[]) => number[] | undefined
  #looking: NodeJS.Timeout | undefined
  #lookedAt = -Infinity
  #isStopped = false

  constructor(private readonly options: WarmPoolOptions) {
    this.#now = options.now ?? Date.now
    this.#memory = options.memory ?? memoryOfTrees
    this.backoffs = new Backoffs({ ...BACKOFF, now: this.#now })
    const { log } = options
    this.#pool = new Pool({
      idleMs: () => options.limits().idleMs,
      onOpened: ({ pid }) => log.debug('live.started', { pid }),
      onEnded({ isRetired, uses }, { pid }) {
        if (isRetired || uses > 0) log.debug('live.ended', { pid })
        else log.warn('live.died', { pid })
      },
    })
  }

  /** Undefined when all places are taken. Contract: rejects when the process cannot be prepared, or at the signal. */
  async acquire(needs: WarmNeeds, signal: AbortSignal): Promise<WarmLease | undefined> {
    const { session } = needs
    const home = this.#homeOf(session)
    const isUsable = home?.key === needs.key && (isOpen(home) || isStillBusy(home))
    if (!isUsable && session !== undefined) await this.leave(session, signal)
    const entry = isUsable ? home : (this.#fit(needs) ?? this.#makeRoom(needs))
    if (!entry) return undefined
    const mustAnswer = entry.uses === 0 && this.#now() - entry.restsSince > (this.options.freshMs ?? FRESH_MS)
    this.#pool.use(entry)
    entry.isSpare = false
    if (session !== undefined) entry.sessions.add(session)
    const release = (last: string | undefined): Promise<void> => this.#release(entry, needs, last)
    try {
      const process = entry.item ?? (await abortable(signal, () => entry.opening))
      if (!mustAnswer || (await abortable(signal, () => this.#answers(process)))) return { process, release }
      this.options.log.warn('live.silent', { pid: process.pid })
      process.stop()
    } catch (error) {
      await release(session)
      throw error
    }
    await release(session)
    return this.acquire(needs, signal)
  }

  /** For a turn of the session outside of it: the process that remembers it otherwise is ended. */
  async leave(session: string, signal: AbortSignal): Promise<void> {
    const home = this.#homeOf(session)
    if (!home) return
    this.#pool.retire(home)
    if (home.uses > 0 && !home.locksSessions) {
      // It takes no more turns, so it does not matter what it remembers.
      home.sessions.delete(session)
      return
    }
    home.leavers += 1
    try {
      await abortable(signal, () => home.gone)
    } finally {
      home.leavers -= 1
    }
  }

  /** No turn goes on in a process that is there now; those under way end first. */
  drain(): void {
    for (const entry of this.#pool.entries) this.#pool.retire(entry)
  }

  /** Ends all. Contract: no turn is under way; nothing is started afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#looking)
    await this.#pool.endAll()
  }

  #homeOf(session: string | undefined): Entry | undefined {
    return session === undefined ? undefined : [...this.#pool.entries].find(({ sessions }) => sessions.has(session))
  }

  /** One that takes other sessions than those it has. */
  #fit({ isShared, session, key }: WarmNeeds): Entry | undefined {
    return [...this.#pool.entries].find(
      (entry) => entry.key === key && isOpen(entry) && (isShared || (entry.isSpare && session === undefined)),
    )
  }

  #makeRoom(needs: WarmNeeds): Entry | undefined {
    const { mostProcesses } = this.options.limits()
    if (this.#isStopped || !this.#evict((count, excess) => count < mostProcesses && excess < 0)) return undefined
    return this.#begin(needs)
  }

  #begin(needs: WarmNeeds): Entry {
    const entry = this.#pool.begin(needs.key, this.#open(needs), {
      locksSessions: needs.locksSessions,
      isSpare: false,
      sessions: new Set<string>(),
      leavers: 0,
      restsSince: this.#now(),
      bytes: 0,
    })
    const look = (): boolean => this.#evict((_, excess) => excess <= 0)
    this.#looking ??= setInterval(look, this.options.lookMs ?? LOOK_MS).unref()
    return entry
  }

  async #open(needs: WarmNeeds): Promise<WarmProcess> {
    // Whose place it takes must have left it.
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

  /** `last` is the session it was in. */
  async #release(entry: Entry, needs: WarmNeeds, last: string | undefined): Promise<void> {
    entry.uses -= 1
    if (needs.session !== undefined) entry.sessions.delete(needs.session)
    if (last !== undefined) entry.sessions.add(last)
    // Nobody would find it again.
    else if (!needs.isShared) entry.isRetired = true
    if (entry.uses > 0) return
    if (entry.isRetired || entry.item?.isOver === true) return this.#pool.end(entry)
    this.#rest(entry)
    if (needs.session === undefined && !needs.isShared && !needs.isUntrusted) this.#startAhead(needs)
  }

  #rest(entry: Entry): void {
    entry.restsSince = this.#now()
    this.#pool.rest(entry)
  }

  /** No process that has a session makes place for it. */
  #startAhead(needs: WarmNeeds): void {
    const { hasSpare, mostProcesses } = this.options.limits()
    const spares = [...this.#pool.entries].filter(({ isSpare, isRetired }) => isSpare && !isRetired)
    if (!hasSpare || this.#isStopped || spares.some((spare) => spare.key === needs.key)) return
    for (const spare of spares) this.#pool.retire(spare)
    const { count, excess } = this.#weigh(this.#taken())
    if (count >= mostProcesses || excess >= 0) return
    const entry = this.#begin(needs)
    entry.isSpare = true
    this.#rest(entry)
  }

  /** Contract: never rejects. */
  async #answers({ connection, ended }: WarmProcess): Promise<boolean> {
    const no = (): boolean => false
    const answer = connection.ready.then(() => connection.ping()).then(() => true, no)
    const isThere = await within(this.options.answerMs ?? ANSWER_MS, Promise.race([answer, ended.then(no)]))
    return isThere === true
  }

  /** Ends those that were used longest ago, one after the other, until it is enough. Whether it is. */
  #evict(isEnough: (count: number, excessBytes: number) => boolean): boolean {
    const taken = this.#taken()
    let { count, excess } = this.#weigh(taken)
    const idle = taken.filter(({ uses }) => uses === 0)
    for (const entry of [...idle.filter(({ isSpare }) => isSpare), ...idle.filter(({ isSpare }) => !isSpare)]) {
      if (isEnough(count, excess)) return true
      this.#pool.retire(entry)
      count -= 1
      excess -= entry.bytes
    }
    return isEnough(count, excess)
  }

  /** Those that will be there, or will be for some time. */
  #taken(): Entry[] {
    return [...this.#pool.entries].filter(({ isRetired, uses }) => !isRetired || uses > 0)
  }

  #weigh(entries: Entry[]): { count: number; excess: number } {
    this.#look()
    const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
    return { count: entries.length, excess: bytes - this.options.limits().mostMemoryMb * 1024 * 1024 }
  }

  #look(): void {
    const now = this.#now()
    if (this.#pool.entries.size === 0 || now - this.#lookedAt < Math.min(LOOK_AGAIN_MS, this.options.lookMs ?? LOOK_MS))
      return
    this.#lookedAt = now
    const entries = [...this.#pool.entries]
    const seen = this.#memory(entries.map(({ item }) => item?.pid ?? NO_PID)) ?? []
    for (const [index, entry] of entries.entries()) entry.bytes = seen[index] ?? 0
  }
}

/** Whether it can take a turn. That it has ended may not have been told yet. */
function isOpen(entry: Entry): boolean {
  return !entry.isRetired && isAlive(entry)
}

/** It takes no other sessions, but those it has need not wait for the turns of others to end. */
function isStillBusy(entry: Entry): boolean {
  return entry.uses > 0 && entry.leavers === 0 && isAlive(entry)
}

function isAlive({ item }: Entry): boolean {
  return !item || (!item.isOver && item.pid !== undefined && isRunning(item.pid))
}
