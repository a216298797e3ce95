// One `opencode serve` of our own: on loopback, on a port that we chose, with a password that is only in its environment.
//
// Traps:
// - With `--port 0` it tries 4096 first, where clients of the operator may expect another server.
// - A free port may be taken a moment later by another program. So nothing is sent to it before the server has said on its
//   own stdout that it listens.
// - Its tools run in process sessions of their own and outlive it; `startProcess` finds them by their marker.

import { randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import { deferred } from '../../../core/async.js'
import type { Scrubber } from '../../../credentials/scrubber.js'
import { messageOf } from '../../../errors.js'
import type { Log } from '../../../log.js'
import { BoundedText } from '../../../processes/bounded-text.js'
import { type ProcessExit, startProcess } from '../../../processes/local-process.js'
import type { ProcessOwner } from '../../../processes/process-owner.js'
import { createRunDirectory, type RunDirectory } from '../../../processes/run-directory.js'
import { runVariables } from '../../engine/agent-cli.js'
import { stripAnsi } from '../../engine/jsonl.js'
import type { OpenCodeBackend } from '../backend.js'
import type { OpenCodeEndpoint, ServerNeeds } from './servers.js'

export interface ManagedServer {
  endpoint: OpenCodeEndpoint
  /** Contract: never rejects; settles when nothing it started is alive and its files are removed. */
  ended: Promise<void>
  /** May be true before `ended`, while its tools are still alive. */
  hasExited(): boolean
  /** Ends processes that tools left in the background. Contract: never rejects; no turn is running meanwhile. */
  tidy(): Promise<void>
  stop(): void
}

export interface ServerDependencies {
  owner?: ProcessOwner
  scrubber: Scrubber
  log: Log
  startTimeoutMs: number
}

const USERNAME = 'opencode'
const READY_LINE = /^opencode server listening on (http:\/\/\S+?)\/?\r?\n/m
const READY_LINE_WITHIN = 10_000
const PORTS_TO_TRY = 5
const LAST_WORDS = 500

/** Contract: rejects with a sentence for the operator; by then, nothing of the server is alive. */
export async function startManagedServer(
  cli: Pick<OpenCodeBackend, 'serverProcess'>,
  needs: ServerNeeds,
  dependencies: ServerDependencies,
  signal: AbortSignal,
): Promise<ManagedServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort()
    const outcome = await startOn(port, cli, needs, dependencies, signal)
    if ('endpoint' in outcome) return outcome
    if (outcome.hasExited && attempt < PORTS_TO_TRY && !signal.aborted && (await isTaken(port))) continue
    const advice = 'Start "opencode serve" by hand to see what it lacks.'
    throw new Error(`The OpenCode server did not start: ${outcome.problem}. ${advice}`)
  }
}

interface NotStarted {
  problem: string
  hasExited: boolean
}

async function startOn(
  port: number,
  cli: Pick<OpenCodeBackend, 'serverProcess'>,
  needs: ServerNeeds,
  { owner, scrubber, log, startTimeoutMs }: ServerDependencies,
  signal: AbortSignal,
): Promise<ManagedServer | NotStarted> {
  const password = randomBytes(32).toString('base64url')
  // A tool may print its environment, and its output is shown to people.
  scrubber.add([password])
  const files = createRunDirectory(owner?.id)
  let process
  try {
    process = processOf(cli, needs, files, password)
  } catch (error) {
    remove(files, log)
    throw error
  }
  let stdout = ''
  const stderr = new BoundedText()
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
    onStderr: (chunk) => stderr.append(chunk.toString('utf8')),
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
      endpoint: { url: outcome, username: USERNAME, password, advice: 'Another is started for the next turn.' },
      ended: exited.then(() => {}),
      hasExited: child.hasExited,
      tidy: () =>
        child.endStrays('group').catch((error: unknown) => log.warn('run.not-tidied', { error: messageOf(error) })),
      stop: child.stop,
    }
  }
  const problem = signal.aborted ? 'it was stopped' : isLate ? lateness(startTimeoutMs) : describeExit(outcome)
  const words = scrubber.scrub(stripAnsi(stderr.toString())).trim().slice(-LAST_WORDS)
  return { problem: words === '' ? problem : `${problem}, and said last: ${words}`, hasExited: !isLate }
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
