// A gateway that is killed by SIGKILL can end nothing any more. The guardian is a shell beside it that waits for that.
//
// Traps that a careless edit would fall into:
// - It learns of the death by the end of its input, which nobody but the gateway may hold open: Node.js keeps the
//   writing end from every process that it starts.
// - It holds none of the gateway's files, so that whoever reads the gateway's output sees its end.
// - It is in a session of its own and ignores the signals that end a terminal or a service: they come to all at once.
// - The id of the owner goes to it without the name of the variable: `ps` shows arguments and environment alike, and
//   the guardian must not be taken for one of those it is to end.

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
  /** For an orderly end: settles when the guardian is gone. What still runs is not ended by it. */
  stop(): Promise<void>
}

// A line is the orderly end, no line the death of the gateway. Node.js stops ignoring signals when it starts: a sweep
// that was hit by one is started again.
const SCRIPT = `
trap '' HUP INT QUIT TERM
read -r line && exit
for attempt in 1 2 3; do "$@" && exit; done
`

const BACKOFF = { firstMs: 100, longestMs: 30_000 }
const LONG_LIFE_MS = 60_000
const KILL_AFTER_MS = 2_000

/** Watches over the processes of this owner until `stop`, and ends them should this process die before. */
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
      if (performance.now() - startedAt > LONG_LIFE_MS) failures = 0
      // One that cannot live must not be started all the time.
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
    // The temporary directory has the files of runs, which go too.
    env: { PATH: '/usr/bin:/bin', TMPDIR: tmpdir() },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  if (shell.pid === undefined) {
    shell.once('error', (error) => onDeath({ error: error.message }))
    return undefined
  }
  shell.once('exit', (code, signal) => onDeath({ pid: shell.pid, code, signal }))
  // Told by `exit`.
  shell.stdin.on('error', () => {})
  shell.unref()
  const pipe = shell.stdin as Socket
  pipe.unref()
  return shell
}
