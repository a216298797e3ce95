// One process in a pod, from its start until nothing of it is alive there.
//
// Traps:
// - kubectl's exit code says nothing: it is 0 for a stream closed in mid-run, and 1 for everything else. Only the
//   supervisor's own report counts as the end.
// - An unconfirmed run may still be alive: a second exec then ends it by its marker.
// - A frozen stream looks like an agent that is thinking. Only the heartbeat tells them apart; but much output delays the
//   heartbeat, so output counts as a sign of life as well.

import { randomBytes } from 'node:crypto'
import { wait } from '../core/async.js'
import { BoundedText } from '../processes/output.js'
import type { LocalProcess } from '../processes/local-process.js'
import type { ProcessOwner } from '../processes/process-owner.js'
import { ControlLines } from './control-lines.js'
import { execArgs, type Kubectl } from './kubectl.js'
import { errorFromStderr, podError } from './pod-problems.js'
import { encodeValue, LOADER, POD_MARKER, RUN_SCRIPT, SCRIPT_VARIABLES } from './supervisor.js'
import {
  type PodAddress,
  PodError,
  type PodExit,
  type PodFile,
  type PodProcess,
  type PodProcessOptions,
  podFilesPath,
} from './types.js'

/** All in milliseconds. */
export interface PodLimits {
  /** From the start of kubectl to the supervisor's first record. */
  readyMs: number
  /** How often each side sends a heartbeat. After three missed ones the stream counts as dead. */
  beatMs: number
  /** From `stop` to the supervisor's confirmation that nothing is left. */
  confirmMs: number
  /** For kubectl to end after the supervisor's last record. */
  closeMs: number
  /** For one question to the cluster or the container. */
  answerMs: number
  /** How long a pod that was found is assumed to exist. */
  freshMs: number
}

export const POD_LIMITS: PodLimits = {
  readyMs: 30_000,
  beatMs: 10_000,
  confirmMs: 10_000,
  closeMs: 5_000,
  answerMs: 20_000,
  freshMs: 10_000,
}

const END_ATTEMPTS = 2

export interface PodProcessContext {
  kubectl: Kubectl
  /** With the pod's name. */
  address: PodAddress
  /** What the container sets for every process in it. */
  environment: Record<string, string>
  limits: PodLimits
  endRun(runId: string): Promise<boolean>
  /** What happened to the container since it was opened; undefined if nothing did, or if it is unknown. */
  findLoss(): Promise<PodError | undefined>
}

export function startInPod(context: PodProcessContext, options: PodProcessOptions): PodProcess {
  const { kubectl, address, limits } = context
  const { runId, owner } = options
  const nonce = randomBytes(16).toString('hex')
  const stderrText = new BoundedText()
  let isReady = false
  let isThere = false
  let outcome: PodExit | undefined
  let stopping = false
  let lastSignOfLife = performance.now()

  const control = new ControlLines(nonce, onRecord, (bytes) => {
    stderrText.append(bytes.toString('utf8'))
    options.onStderr(bytes)
  })

  let child: LocalProcess
  try {
    child = kubectl.start(execArgs(address, ['sh', '-c', LOADER, runName(runId)]), {
      stdin: `${RUN_SCRIPT}${headerOf(nonce, context, options)}`,
      keepsInput: true,
      runId,
      owner: owner && recordedBy(owner, address),
      onStdout(chunk) {
        lastSignOfLife = performance.now()
        // It may arrive before the record on stderr.
        begin()
        options.onStdout(chunk)
      },
      onStderr(chunk) {
        lastSignOfLife = performance.now()
        control.push(chunk)
      },
    })
  } catch (error) {
    return { ended: Promise.resolve(exitOf(error)), stop: () => {} }
  }

  function onRecord([word, value]: string[]): void {
    if (word === 'ready') begin()
    else if (word === 'there') isThere = true
    else if (word === 'exit') conclude({ exitCode: Number(value), hasExpected: isThere })
    else if (word === 'problem') conclude(problemOf(value, address, options))
  }

  function begin(): void {
    isReady = true
    clearTimeout(readyTimer)
  }

  function conclude(exit: PodExit): void {
    outcome = exit
    setTimeout(child.stop, limits.closeMs).unref()
  }

  const readyTimer = setTimeout(child.stop, limits.readyMs)
  const beat = setInterval(() => {
    if (isReady && performance.now() - lastSignOfLife > 2.5 * limits.beatMs) child.stop()
    else if (!stopping) child.write('beat\n')
  }, limits.beatMs)

  function stop(): void {
    if (stopping) return
    stopping = true
    // If the run may not have started yet, it must not start at all.
    if (!isReady) {
      child.stop()
      return
    }
    child.write('stop\n')
    child.endInput()
    setTimeout(child.stop, limits.confirmMs).unref()
  }

  /** How it ended, if the supervisor did not report it. */
  async function findOutcome(): Promise<PodExit> {
    const stderr = stderrText.toString()
    const refusal = isReady ? undefined : errorFromStderr(address, stderr)
    const isEnded = refusal !== undefined || (await endWithRetry(context, runId, () => stopping))
    if (isEnded) await owner?.ended(runId)
    // After a stop, the pod's fate does not matter.
    const loss = refusal ?? (stopping ? undefined : await context.findLoss())
    if (loss) return exitOf(loss)
    return isReady
      ? exitOf(podError('stream_lost', address, 'was disconnected before the agent ended', { stderr }))
      : exitOf(podError('unreachable', address, 'did not answer', { stderr }))
  }

  async function finish(): Promise<PodExit> {
    const exit = await child.ended
    clearTimeout(readyTimer)
    clearInterval(beat)
    control.end()
    const known = outcome ?? ('spawnError' in exit ? exit : undefined)
    if (!known) return findOutcome()
    await owner?.ended(runId)
    return known
  }

  return { ended: finish(), stop }
}

/** A word on a command line and the name of a directory in the pod. */
function runName(runId: string): string {
  if (!/^[\w-]{1,100}$/.test(runId)) throw new TypeError(`${JSON.stringify(runId)} cannot be the id of a run in a pod`)
  return `aetheel-run-${runId}`
}

/** We report the end ourselves: kubectl may be dead while the agent is alive. */
function recordedBy(owner: ProcessOwner, address: PodAddress): ProcessOwner {
  return {
    id: owner.id,
    started: (process) => owner.started({ ...process, pod: JSON.stringify(address) }),
    ended: async () => {},
  }
}

/** A run that cannot be ended stays on record: its supervisor ends it after missed heartbeats, or a gateway does later.
 *  A stop does not wait for a second attempt. */
async function endWithRetry(
  { endRun, limits }: PodProcessContext,
  runId: string,
  isStopping: () => boolean,
): Promise<boolean> {
  for (let attempt = 1; attempt <= END_ATTEMPTS; attempt += 1) {
    if (await endRun(runId)) return true
    if (isStopping()) return false
    if (attempt < END_ATTEMPTS) await wait(limits.beatMs / 4)
  }
  return false
}

/** What the supervisor reads before the run starts. */
export function headerOf(
  nonce: string,
  { environment: container, limits }: Pick<PodProcessContext, 'environment' | 'limits'>,
  { executable, args, directory, environment, defaults, stdin, files, runId, stopSignal, expects }: PodProcessOptions,
): string {
  const unset = Object.entries(defaults).filter(([name]) => container[name] === undefined)
  const own = Object.entries(container).filter(([name]) => SCRIPT_VARIABLES.includes(name))
  const variables = {
    ...Object.fromEntries(own),
    ...Object.fromEntries(unset),
    ...environment,
    [POD_MARKER]: runId,
  }
  return [
    nonce,
    `beat ${Math.max(1, Math.round(limits.beatMs / 1000))}`,
    `signal ${stopSignal.replace(/^SIG/, '')}`,
    `directory ${encodeValue(directory)}`,
    `executable ${encodeValue(executable)}`,
    ...(expects === undefined ? [] : [`expected ${expects}`]),
    ...Object.entries(variables).map(([name, value]) => `variable ${name}=${encodeValue(value)}`),
    ...args.map((argument) => `argument ${encodeValue(argument)}`),
    ...files.flatMap(linesOf),
    ...linesOf({ name: '.input', content: stdin }),
    'go',
    '',
  ].join('\n')
}

/** Some shells limit the length of a word, and have no built-in printf. */
const CHUNK_CHARACTERS = 16 * 1024

function linesOf(file: PodFile): string[] {
  if ('directory' in file) return [`folder ${encodeValue(file.directory)}`]
  const { name } = file
  if ('linkTo' in file) return [`file ${encodeValue(name)}`, `link ${encodeValue(file.linkTo)}`]
  // Creates the file even if it is empty.
  const lines = [`file ${encodeValue(name)}`, 'data ']
  for (let from = 0; from < file.content.length;) {
    let to = Math.min(from + CHUNK_CHARACTERS, file.content.length)
    // Not inside a surrogate pair.
    if (/[\uD800-\uDBFF]/.test(file.content.charAt(to - 1)) && to < file.content.length) to += 1
    lines.push(`data ${encodeValue(file.content.slice(from, to))}`)
    from = to
  }
  return lines
}

function problemOf(word: string | undefined, address: PodAddress, options: PodProcessOptions): PodExit {
  if (word === 'executable') {
    return exitOf(podError('cli_missing', address, `has no ${JSON.stringify(options.executable)}`))
  }
  if (word === 'directory') {
    return exitOf(podError('directory_missing', address, `has no directory ${options.directory}`))
  }
  const advice = 'Mount a volume at /tmp, such as an emptyDir.'
  return exitOf(podError('directory_missing', address, `cannot write ${podFilesPath(options.runId)}`, { advice }))
}

function exitOf(error: unknown): PodExit {
  if (error instanceof PodError) return { problem: error.problem, message: error.message }
  return { spawnError: error instanceof Error ? error : new Error(String(error)) }
}
