// Starts one process of a run and guarantees that nothing of it outlives the run.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { within } from '../core/async.js'
import { OWNER_MARKER, type ProcessOwner, RUN_MARKER } from './process-owner.js'
import { type ProcessEntry, startTimeOf } from './process-table.js'
import { endLeftovers, endStrays, endTree, type RunRoot, type Spared, toolsBelow } from './process-tree.js'

const CLOSE_AFTER_EXIT_MS = 5_000
const RECORD_AFTER_EXIT_MS = 1_000
const LONG_WORK_MS = 20

export interface ProcessOptions {
  /** Absolute: with `cwd` set, a relative one would be looked up there. */
  executable: string
  args: string[]
  cwd: string
  environment: Record<string, string>
  /** Written whole, then closed unless it `keepsInput`: every CLI that takes one prompt waits for the end of its input. */
  stdin: string
  /** For who is told more while it runs. */
  keepsInput?: boolean
  runId: string
  /** Hears of the process before it gets its input, and when nothing of it is alive. */
  owner?: ProcessOwner
  /** The signal this CLI cleans up best on. */
  stopSignal: NodeJS.Signals
  /** Contract: returns at once. Reading never waits, since Claude Code drops output nobody takes. */
  onStdout(chunk: Buffer): void
  onStderr(chunk: Buffer): void
}

export type ProcessExit = { exitCode: number } | { spawnError: Error }

export interface LocalProcess {
  /** Absent where it could not be started. */
  pid?: number
  /** Contract: never rejects; settles when the process has exited, its output is read and nothing of it is alive. */
  ended: Promise<ProcessExit>
  /** True before `ended`, while others of its processes may be alive. */
  hasExited(): boolean
  /** To a process that `keepsInput`. What comes before it is on record waits; what comes when it has ended is lost. */
  write(text: string): void
  /** The end of its input. */
  endInput(): void
  /** Ends what the process has started, but for what is spared; the process goes on. */
  endStrays(spared: Spared): Promise<void>
  /** The tools that it runs now. */
  tools(): ProcessEntry[]
  /** Ends the process and everything it started; `ended` settles soon after. Safe to call twice, or late. */
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
      // Its own process group, so that a signal reaches wrapper and agent alike and Ctrl-C in our terminal only us.
      detached: true,
    })
  } catch (error) {
    // Arguments that are too long or hold NUL make spawn throw instead of emitting `error`.
    return { ended: Promise.resolve({ spawnError: error as Error }), ...NOTHING_TO_DO }
  }

  const { pid } = child
  if (pid === undefined) {
    // Nothing more may be asked of it: with too many open files, not even its pipes are there.
    const failed = once(child, 'error').then(([spawnError]: Error[]) => ({ spawnError: spawnError as Error }))
    return { ended: failed, ...NOTHING_TO_DO }
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
    if (performance.now() - startedAt < LONG_WORK_MS) return
    // A flood. Others get their turn before the next chunk; nothing is lost in that time.
    child.stdout.pause()
    setImmediate(() => child.stdout.resume())
  })
  child.stderr.on('data', options.onStderr)
  // A CLI that exits without reading its input breaks the pipe; how it exited says all there is to say.
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

  /** Of a process that is not on record yet, which must not begin to work. */
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
    // Leftovers first: one of them may hold the output open.
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
      // By then its pid may be another's.
      if (!root.hasExited()) await endStrays(root, spared)
    },
    tools: () => (root.hasExited() ? [] : toolsBelow(root)),
    stop,
  }
}

const NOTHING_TO_DO = {
  hasExited: () => true,
  write: () => {},
  endInput: () => {},
  endStrays: async () => {},
  tools: () => [],
  stop: () => {},
}
