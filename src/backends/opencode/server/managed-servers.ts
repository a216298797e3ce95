// The servers that we start ourselves. Runs share one only if they need exactly the same process, so none sees another's
// secrets. Each `opencode serve` is on loopback, on a port that we chose, with a password that is only in its environment.
//
// Traps:
// - With `--port 0` it tries 4096 first, where clients of the operator may expect another server.
// - A free port may be taken a moment later by another program. So nothing is sent to it before the server has said on its
//   own stdout that it listens.
// - Its tools run in process sessions of their own and outlive it; `startProcess` finds them by their marker.

import { randomBytes, randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { createServer } from 'node:net'
import { abortable, deferred, wait } from '../../../core/async.js'
import type { Scrubber } from '../../../credentials/scrubber.js'
import { messageOf } from '../../../errors.js'
import type { Log } from '../../../log.js'
import { type ProcessExit, startProcess } from '../../../processes/local-process.js'
import type { ProcessOwner } from '../../../processes/process-owner.js'
import { createRunDirectory, type RunDirectory } from '../../../processes/run-directory.js'
import { runVariables } from '../../engine/agent-cli.js'
import { Stderr } from '../../engine/jsonl.js'
import { Backoffs, Pool, type PoolEntry, poolKey } from '../../engine/pool.js'
import type { AgentProbe, ProbeOptions } from '../../types.js'
import type { OpenCodeBackend } from '../backend.js'
import { OpenCodeClient } from './client.js'
import type { LeftBehind, OpenCodeEndpoint, OpenCodeServers, ServerLease, ServerNeeds } from './servers.js'

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

type StartOptions = ManagedOptions & Pick<ManagedLimits, 'startTimeoutMs'>

interface ManagedServer {
  endpoint: OpenCodeEndpoint
  /** Contract: never rejects; settles when nothing it started is alive and its files are removed. */
  ended: Promise<void>
  /** May be true before `ended`, while its tools are still alive. */
  hasExited(): boolean
  /** Ends processes that tools left in the background. Contract: never rejects; no turn is running meanwhile. */
  tidy(): Promise<void>
  stop(): void
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
    const { signal } = this.#stopping
    const pauseMs = this.#backoffs.remainingMs(key)
    if (pauseMs > 0) await wait(pauseMs, { signal })
    const startedAt = performance.now()
    const server = await startManagedServer(needs, { ...this.options, ...this.#limits }, signal)
    const { url } = server.endpoint
    this.options.log.info('opencode-server.started', { url, tookMs: Math.round(performance.now() - startedAt) })
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

const USERNAME = 'opencode'
const READY_LINE = /^opencode server listening on (http:\/\/\S+?)\/?\r?\n/m
const READY_LINE_WITHIN = 10_000
const PORTS_TO_TRY = 5
const LAST_WORDS = 500

/** Contract: rejects with a sentence for the operator; by then, nothing of the server is alive. */
async function startManagedServer(
  needs: ServerNeeds,
  options: StartOptions,
  signal: AbortSignal,
): Promise<ManagedServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort()
    const outcome = await startOn(port, needs, options, signal)
    if ('endpoint' in outcome) return outcome
    if (outcome.hasExited && attempt < PORTS_TO_TRY && !signal.aborted && (await isTaken(port))) continue
    const advice = 'Start "opencode serve" by hand to see why.'
    throw new Error(`The OpenCode server did not start: ${outcome.problem}. ${advice}`)
  }
}

interface NotStarted {
  problem: string
  hasExited: boolean
}

async function startOn(
  port: number,
  needs: ServerNeeds,
  { cli, owner, scrubber, log, startTimeoutMs }: StartOptions,
  signal: AbortSignal,
): Promise<ManagedServer | NotStarted> {
  const password = randomBytes(32).toString('base64url')
  // A tool may print its environment, and its output is shown to people.
  scrubber.add([password])
  const files = createRunDirectory(owner?.id)
  let process
  try {
    process = processOf(cli(), needs, files, password)
  } catch (error) {
    remove(files, log)
    throw error
  }
  let stdout = ''
  const stderr = new Stderr(scrubber)
  const ready = deferred<string>()
  const child = startProcess({
    ...process,
    args: ['serve', '--hostname', '127.0.0.1', '--port', String(port)],
    stdin: '',
    runId: randomUUID(),
    ...(owner && { owner }),
    stopSignal: 'SIGTERM',
    onStdout(chunk) {
      if (stdout.length > READY_LINE_WITHIN) return
      stdout += chunk.toString('utf8')
      const [, url] = READY_LINE.exec(stdout) ?? []
      if (url !== undefined) ready.resolve(url)
    },
    onStderr: (chunk) => stderr.push(chunk),
  })
  const exited = child.ended.then((exit) => {
    remove(files, log)
    return exit
  })

  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    child.stop()
  }, startTimeoutMs)
  signal.addEventListener('abort', child.stop)
  if (signal.aborted) child.stop()
  const outcome = await Promise.race([ready.promise, exited])
  clearTimeout(timer)
  signal.removeEventListener('abort', child.stop)
  if (typeof outcome === 'string') {
    return {
      endpoint: { url: outcome, username: USERNAME, password, advice: 'The next turn starts another one.' },
      ended: exited.then(() => {}),
      hasExited: child.hasExited,
      tidy: () =>
        child.endStrays('group').catch((error: unknown) => log.warn('run.not-tidied', { error: messageOf(error) })),
      stop: child.stop,
    }
  }
  const problem = signal.aborted ? 'it was stopped' : isLate ? lateness(startTimeoutMs) : describeExit(outcome)
  const words = stderr.read().trim().slice(-LAST_WORDS)
  return { problem: words === '' ? problem : `${problem}. Its last output: ${words}`, hasExited: !isLate }
}

function processOf(
  cli: Pick<OpenCodeBackend, 'serverProcess'>,
  needs: ServerNeeds,
  files: RunDirectory,
  password: string,
): ReturnType<OpenCodeBackend['serverProcess']> {
  const process = cli.serverProcess({ environment: runVariables(needs, files), isUntrusted: needs.isUntrusted })
  const access = { OPENCODE_SERVER_USERNAME: USERNAME, OPENCODE_SERVER_PASSWORD: password }
  return { ...process, environment: { ...process.environment, ...access } }
}

function lateness(timeoutMs: number): string {
  return `it was not ready within ${timeoutMs / 1000} s`
}

function describeExit(exit: ProcessExit): string {
  return 'spawnError' in exit ? exit.spawnError.message : `it ended with exit code ${exit.exitCode}`
}

function remove(files: RunDirectory, log: Log): void {
  try {
    files.remove()
  } catch (error) {
    log.warn('run.files-left', { path: files.path, error: messageOf(error) })
  }
}

function freePort(): Promise<number> {
  return listenOnce(0)
}

async function isTaken(port: number): Promise<boolean> {
  return listenOnce(port).then(
    () => false,
    () => true,
  )
}

/** Settles with the port, once it is free again. */
function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : port))
    })
  })
}
