// A gateway killed with SIGKILL cannot clean up. The guardian is a shell beside it that waits for its death.
//
// Traps:
// - It learns of the death from end-of-file on stdin, so only the gateway may hold the pipe open: Node.js keeps the
//   writing end from every process it starts.
// - It holds none of the gateway's file descriptors, so that readers of the gateway's output see end-of-file.
// - It has its own session and ignores the signals that end a terminal or a service, which go to everyone at once.
// - It gets the owner id without the variable's name: `ps` shows arguments like environment, and the guardian must not
//   be taken for one of the processes that it must end.

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import type { Writable } from 'node:stream'
import { backoffMs } from '../core/async.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { ownCommand } from './own-program.js'

export interface Guardian {
  /** For an orderly shutdown: settles when the guardian is gone. It ends no processes. */
  stop(): Promise<void>
}

// A line means orderly shutdown; end-of-file means the gateway died. Node.js resets ignored signals when it starts, so
// a sweep that was hit by one is started again.
const SCRIPT = `
trap '' HUP INT QUIT TERM
read -r line && exit
for attempt in 1 2 3; do "$@" && exit; done
`

const BACKOFF = { firstMs: 100, longestMs: 30_000 }
const STABLE_AFTER_MS = 60_000
const KILL_AFTER_MS = 2_000

/** Ends the owner's processes if this process dies before `stop`. */
export function startGuardian(ownerId: string, log: Log): Guardian {
  let shell: Shell | undefined
  let failures = 0
  let timer: NodeJS.Timeout | undefined
  let stopped: Promise<void> | undefined
  start()

  function start(): void {
    const startedAt = performance.now()
    const restart = (fields: Record<string, unknown>): void => {
      shell = undefined
      if (stopped) return
      if (performance.now() - startedAt > STABLE_AFTER_MS) failures = 0
      // Back off if it keeps dying.
      const pauseMs = failures === 0 ? 0 : backoffMs(failures, BACKOFF)
      failures += 1
      log.warn('guardian.died', { ...fields, restartInMs: pauseMs })
      timer = setTimeout(start, pauseMs).unref()
    }
    try {
      shell = startShell(ownerId, restart)
    } catch (error) {
      restart({ error: messageOf(error) })
    }
  }

  async function stop(): Promise<void> {
    clearTimeout(timer)
    if (!shell) return
    const { stdin } = shell
    const exited = once(shell, 'exit')
    shell.ref()
    stdin.end('\n')
    const killTimer = setTimeout(() => shell?.kill('SIGKILL'), KILL_AFTER_MS)
    await exited
    clearTimeout(killTimer)
  }

  return { stop: () => (stopped ??= stop()) }
}

type Shell = ChildProcessByStdio<Writable, null, null>

function startShell(ownerId: string, onDeath: (fields: Record<string, unknown>) => void): Shell | undefined {
  const sweep = [...ownCommand('./sweep', import.meta.url), ownerId]
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'aetheel-guardian', ...sweep], {
    cwd: '/',
    // Run directories are in the temporary directory and are removed too.
    env: { PATH: '/usr/bin:/bin', TMPDIR: tmpdir() },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  if (shell.pid === undefined) {
    shell.once('error', (error) => onDeath({ error: error.message }))
    return undefined
  }
  shell.once('exit', (code, signal) => onDeath({ pid: shell.pid, code, signal }))
  // `exit` reports it.
  shell.stdin.on('error', () => {})
  shell.unref()
  const pipe = shell.stdin as Socket
  pipe.unref()
  return shell
}
