// Starts one process of a run and guarantees that nothing of it outlives the run.

import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { startTimeOf } from './process-table.js'
import { endLeftovers, endTree, type RunRoot } from './process-tree.js'

/** The name of the variable that marks every process of a run. */
const MARKER_NAME = 'AETHEEL_RUN_ID'

const CLOSE_AFTER_EXIT_MS = 5_000
const LONG_WORK_MS = 20

export interface ProcessOptions {
  /** Absolute: with `cwd` set, a relative one would be looked up there. */
  executable: string
  args: string[]
  cwd: string
  environment: Record<string, string>
  /** Written whole, then closed: every CLI waits for the end of its input. */
  stdin: string
  runId: string
  /** The signal this CLI cleans up best on. */
  stopSignal: NodeJS.Signals
  /** Contract: returns at once. Reading never waits, since Claude Code drops output nobody takes. */
  onStdout(chunk: Buffer): void
  onStderr(chunk: Buffer): void
}

export type ProcessExit = { exitCode: number } | { spawnError: Error }

export interface LocalProcess {
  /** Contract: never rejects; settles when the process has exited, its output is read and nothing of it is alive. */
  ended: Promise<ProcessExit>
  /** Ends the process and everything it started; `ended` settles soon after. Safe to call twice, or late. */
  stop(): void
}

export function startProcess(options: ProcessOptions): LocalProcess {
  let child
  try {
    child = spawn(options.executable, options.args, {
      cwd: options.cwd,
      env: { ...options.environment, [MARKER_NAME]: options.runId },
      stdio: ['pipe', 'pipe', 'pipe'],
      // Its own process group, so that a signal reaches wrapper and agent alike and Ctrl-C in our terminal only us.
      detached: true,
    })
  } catch (error) {
    // Arguments that are too long or hold NUL make spawn throw instead of emitting `error`.
    return { ended: Promise.resolve({ spawnError: error as Error }), stop: () => {} }
  }

  const { pid } = child
  const root: RunRoot = {
    pid: pid ?? 0,
    startTime: pid === undefined ? 0 : startTimeOf(pid),
    marker: `${MARKER_NAME}=${options.runId}`,
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
  child.stdin.end(options.stdin)

  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
  })
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('error', (spawnError) => {
      if (pid === undefined) resolve({ spawnError })
    })
    child.once('exit', (code, signal) => resolve({ exitCode: code ?? 128 + constants.signals[signal ?? 'SIGKILL'] }))
  })

  let hasEnded = false
  let stopping: Promise<void> | undefined
  const stop = (): void => {
    if (pid !== undefined && !hasEnded) stopping ??= endTree(root, options.stopSignal)
  }

  const finish = async (): Promise<ProcessExit> => {
    const exit = await exited
    if ('spawnError' in exit) return exit
    // Leftovers first: one of them may hold the output open.
    await (stopping ?? endLeftovers(root))
    await Promise.race([closed, sleep(CLOSE_AFTER_EXIT_MS, undefined, { ref: false })])
    child.stdout.destroy()
    child.stderr.destroy()
    hasEnded = true
    return exit
  }

  return { ended: finish(), stop }
}
