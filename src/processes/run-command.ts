import { randomUUID } from 'node:crypto'
import { resolve, sep } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { BoundedText } from './output.js'
import { findExecutable } from '../core/paths.js'
import { type ProcessExit, startProcess } from './local-process.js'
import type { ProcessOwner } from './process-owner.js'

export interface CommandOptions {
  /** The command and its arguments, without a shell. A command with a slash is a path relative to `cwd`. */
  argv: string[]
  cwd: string
  environment: Record<string, string>
  stdin: string
  /** Without it, stdout is discarded. */
  onStdout?: (chunk: Buffer) => void
  timeoutMs: number
  /** Ends the command early. */
  signal?: AbortSignal | undefined
  owner?: ProcessOwner | undefined
}

/** `problem` is a sentence without its subject, to follow the command's name. */
export type CommandOutcome = { ok: true } | { ok: false; problem: string }

const COMPLAINT_CHARACTERS = 200

/**
 * Runs a command to its end. Of stderr, only the last line is kept, as part of the problem.
 *
 * Contract: never rejects; when it settles, nothing that the command started is alive.
 */
export async function runCommand(options: CommandOptions): Promise<CommandOutcome> {
  const { argv, cwd, environment, stdin, onStdout = () => {}, timeoutMs, signal, owner } = options
  const [command = '', ...args] = argv
  const executable = findExecutable(command.includes(sep) ? resolve(cwd, command) : command, environment['PATH'] ?? '')
  if (executable === undefined) return { ok: false, problem: 'was not found, or is not executable' }
  if (signal?.aborted) return { ok: false, problem: STOPPED }

  const stderr = new BoundedText()
  const decoder = new StringDecoder('utf8')
  const child = startProcess({
    executable,
    args,
    cwd,
    environment,
    stdin,
    runId: randomUUID(),
    owner,
    stopSignal: 'SIGTERM',
    onStdout,
    onStderr: (chunk) => stderr.append(decoder.write(chunk)),
  })

  let ownReason: string | undefined
  const stop = (reason: string): void => {
    ownReason ??= reason
    child.stop()
  }
  const onAbort = () => stop(STOPPED)
  signal?.addEventListener('abort', onAbort)
  const timer = setTimeout(() => stop(`did not finish within ${timeoutMs} ms`), timeoutMs)
  const exit = await child.ended
  clearTimeout(timer)
  signal?.removeEventListener('abort', onAbort)

  const problem = ownReason ?? problemOf(exit, stderr.toString())
  return problem === undefined ? { ok: true } : { ok: false, problem }
}

const STOPPED = 'was stopped'

function problemOf(exit: ProcessExit, stderr: string): string | undefined {
  if ('spawnError' in exit) return `could not be started: ${exit.spawnError.message}`
  if (exit.exitCode === 0) return undefined
  const complaint = stderr.trim().split('\n').at(-1) ?? ''
  const ending = `ended with exit code ${exit.exitCode}`
  return complaint === '' ? ending : `${ending}: ${complaint.slice(0, COMPLAINT_CHARACTERS)}`
}
