// Starts a run's process and guarantees that nothing it started outlives the run.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { within } from '../core/async.js'
import { OWNER_MARKER, type ProcessOwner, RUN_MARKER } from './process-owner.js'
import { type ProcessEntry, startTimeOf } from './process-table.js'
import { endLeftovers, endStrays, endTree, type RunRoot, type Spared, toolsBelow } from './process-tree.js'

const CLOSE_AFTER_EXIT_MS = 5_000
const RECORD_AFTER_EXIT_MS = 1_000
const SLOW_CHUNK_MS = 20

export interface ProcessOptions {
  /** Absolute: a relative one would be resolved against `cwd`. */
  executable: string
  args: string[]
  cwd: string
  environment: Record<string, string>
  /** Written whole, then closed unless `keepsInput`: a CLI that takes one prompt waits for end-of-file. */
  stdin: string
  /** Keeps stdin open for `write`. */
  keepsInput?: boolean
  runId: string
  /** Notified before the process gets its input, and when nothing of it is alive. */
  owner?: ProcessOwner | undefined
  /** The signal on which this CLI cleans up best. */
  stopSignal: NodeJS.Signals
  /** Contract: returns at once. Reading never waits, since Claude Code drops output that nobody reads. */
  onStdout(chunk: Buffer): void
  onStderr(chunk: Buffer): void
}

export type ProcessExit = { exitCode: number } | { spawnError: Error }

export interface LocalProcess {
  /** Absent if it could not be started. */
  pid?: number
  /** Contract: never rejects; settles when the process has exited, its output is read and nothing of it is alive. */
  ended: Promise<ProcessExit>
  /** May be true before `ended`, while descendants are still alive. */
  hasExited(): boolean
  /** Requires `keepsInput`. Input is held until the process is on record, and dropped after it has ended. */
  write(text: string): void
  endInput(): void
  /** Ends what the process has started, except what is spared. The process itself continues. */
  endStrays(spared: Spared): Promise<void>
  /** Tools running now. */
  tools(): ProcessEntry[]
  /** Ends the process and everything it started; `ended` settles soon after. Idempotent. */
  stop(): void
}

export function startProcess(options: ProcessOptions): LocalProcess {
  const { owner, runId } = options
  let child
  try {
    child = spawn(options.executable, options.args, {
      cwd: options.cwd,
      env: { ...options.environment, [RUN_MARKER]: runId, ...(owner && { [OWNER_MARKER]: owner.id }) },
      stdio: ['pipe', 'pipe', 'pipe'],
      // Its own process group: a signal reaches both wrapper and agent, and Ctrl-C in our terminal reaches only us.
      detached: true,
    })
  } catch (error) {
    // Arguments that are too long or contain NUL make spawn throw instead of emitting `error`.
    return { ended: Promise.resolve({ spawnError: error as Error }), ...NO_PROCESS }
  }

  const { pid } = child
  if (pid === undefined) {
    // Touch nothing else on it: with too many open files, not even its pipes exist.
    const failed = once(child, 'error').then(([spawnError]: Error[]) => ({ spawnError: spawnError as Error }))
    return { ended: failed, ...NO_PROCESS }
  }
  const root: RunRoot = {
    pid,
    startTime: startTimeOf(pid),
    marker: `${RUN_MARKER}=${runId}`,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
  }

  child.stdout.on('data', (chunk: Buffer) => {
    const startedAt = performance.now()
    options.onStdout(chunk)
    if (performance.now() - startedAt < SLOW_CHUNK_MS || root.hasExited()) return
    // A flood: let others run before the next chunk. What is left after the exit is no flood, and is read at once.
    child.stdout.pause()
    setImmediate(() => child.stdout.resume())
  })
  child.stderr.on('data', options.onStderr)
  // A CLI that exits without reading its input breaks the pipe; its exit says enough.
  child.stdin.on('error', () => {})

  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
  })
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ exitCode: code ?? 128 + constants.signals[signal ?? 'SIGKILL'] }))
  })

  let hasEnded = false
  let stopping: Promise<void> | undefined
  const stop = (): void => {
    if (!hasEnded) stopping ??= endTree(root, options.stopSignal)
  }

  /** Input held back until the process is on record: before that it must not start to work. */
  const waiting: string[] = [options.stdin]
  let hasInputEnded = options.keepsInput !== true
  let isRecorded = false
  const flush = (): void => {
    if (!isRecorded || stopping) return
    for (const text of waiting.splice(0)) if (text !== '') child.stdin.write(text)
    if (hasInputEnded) child.stdin.end()
  }
  const begin = (): void => {
    isRecorded = true
    flush()
  }

  let recordError: Error | undefined
  const record = async (owner: ProcessOwner): Promise<void> => {
    try {
      await owner.started({ runId, pid, startTime: root.startTime })
      begin()
    } catch (error) {
      if (stopping) return
      recordError = error instanceof Error ? error : new Error(String(error))
      stop()
    }
  }
  const recorded = owner && record(owner)
  if (!recorded) begin()

  const finish = async (): Promise<ProcessExit> => {
    const exit = await exited
    // Leftovers first: they may hold the output open.
    await (stopping ?? endLeftovers(root))
    await within(CLOSE_AFTER_EXIT_MS, closed)
    child.stdout.destroy()
    child.stderr.destroy()
    hasEnded = true
    if (recorded) await within(RECORD_AFTER_EXIT_MS, recorded)
    await owner?.ended(runId)
    return recordError ? { spawnError: recordError } : exit
  }

  return {
    pid,
    ended: finish(),
    hasExited: root.hasExited,
    write(text) {
      waiting.push(text)
      flush()
    },
    endInput() {
      hasInputEnded = true
      flush()
    },
    endStrays: async (spared) => {
      // After its exit the pid may be reused.
      if (!root.hasExited()) await endStrays(root, spared)
    },
    tools: () => (root.hasExited() ? [] : toolsBelow(root)),
    stop,
  }
}

const NO_PROCESS = {
  hasExited: () => true,
  write: () => {},
  endInput: () => {},
  endStrays: async () => {},
  tools: () => [],
  stop: () => {},
}
