// Runs an operator's commands in an agent's directory, through the same queue and with the same events.
//
// A command may run only once: deploying twice is a problem. If it exits on its own, that is an answer, whatever the
// exit code. If it was stopped or could not be started, that is a failure, which the queue does not retry.

import { resolve, sep } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { withDeadline } from '../core/async.js'
import { agentEnvironment } from '../core/agent-environment.js'
import { localPlace, type Place, podPlace } from '../backends/engine/place.js'
import { failureOfPod } from '../backends/engine/failures.js'
import { shellsVariable } from '../backends/engine/refusals.js'
import { startTimer } from '../backends/engine/turn.js'
import type { AgentEvent, AgentEventBody, AgentFailure, AgentResult, FailureReason } from '../backends/types.js'
import { gitObstacle, UNTRUSTED_CHECK_MS, UNTRUSTED_GIT } from '../backends/engine/untrusted-git.js'
import { messageOf } from '../errors.js'
import { EventScrubber, type Scrubber } from '../credentials/scrubber.js'
import { isShellVariable } from '../kubernetes/supervisor.js'
import { type PodAddress, PodError, type PodLoss, type Pods } from '../kubernetes/types.js'
import { BoundedText } from '../processes/output.js'
import { findExecutable } from '../core/paths.js'
import type { ProcessOwner } from '../processes/process-owner.js'

export interface CommandRequest {
  /** The executable and its arguments, without a shell. An executable with a slash is relative to the directory. */
  argv: string[]
  directory: string
  /** The pod with the directory; this machine if omitted. */
  pod?: PodAddress
  runId: string
  timeoutMs: number
  /** Variables for this run only. */
  environment?: Record<string, string>
  /** Files for this run only, each named by a variable. */
  secretFiles?: Array<{ variable: string; content: string }>
  /** Nothing in the directory may run on its own. */
  isUntrusted?: boolean
}

export interface CommandDependencies {
  /** The operator's environment; filtered before a command sees it. */
  environment: NodeJS.ProcessEnv
  /** Additional variables to pass, as names or `PREFIX_*`. */
  passVariables: readonly string[]
  now: () => number
  owner?: ProcessOwner
  /** Required to run commands in pods. */
  pods?: Pods
  /** Hides secrets in events. */
  scrubber: Scrubber
}

const EXIT_TIMED_OUT = 124
const EXIT_NOT_STARTED = 126
const EXIT_NOT_FOUND = 127

/** Limit of stored output: a command that never stops printing must not fill the disk. */
const MAX_OUTPUT_CHARACTERS = 8 * 1024 * 1024
/** Limit for opening a pod. */
const OPEN_MS = 30_000

/** The name under which a command's run is recorded. */
export function commandRunner([executable]: string[]): 'git' | 'shell' {
  return executable === 'git' ? 'git' : 'shell'
}

export class CommandRuntime {
  constructor(private readonly dependencies: CommandDependencies) {}

  /** Contract: never rejects. Events come in the order that an agent's `run` guarantees. */
  async run(request: CommandRequest, signal: AbortSignal, onEvent: (event: AgentEvent) => void): Promise<AgentResult> {
    const { now, scrubber } = this.dependencies
    const startedAt = now()
    const record = new CommandRecord(scrubber, now, onEvent)
    record.add({ type: 'started' })
    const { exitCode, problem } = await this.#runInPlace(request, signal, record)
    if (problem) record.add({ type: 'error', content: problem.message, reason: problem.reason })
    return record.complete({
      isError: exitCode !== 0,
      ...(exitCode !== undefined && { exitCode }),
      durationMs: now() - startedAt,
      ...(problem && { failure: { ...problem, report: problem.message } }),
    })
  }

  async #runInPlace(request: CommandRequest, signal: AbortSignal, record: CommandRecord): Promise<Ending> {
    let place: Place | undefined
    try {
      place = await this.#place(request, signal)
      const { files } = place
      const paths = (request.secretFiles ?? []).map(({ variable, content }) => [
        variable,
        files.write(variable, content),
      ])
      const environment = { ...request.environment, ...Object.fromEntries(paths) }
      return await this.#runProcess({ ...request, environment }, place, signal, record)
    } catch (error) {
      if (signal.aborted) return { problem: CANCELLED }
      if (error instanceof PodError) return endingOfPod(error)
      const message = `The files for the command could not be written: ${messageOf(error)}`
      return { exitCode: EXIT_NOT_STARTED, problem: { reason: 'spawn', message } }
    } finally {
      place?.leave()
    }
  }

  async #place({ pod, runId, timeoutMs }: CommandRequest, signal: AbortSignal): Promise<Place> {
    const { environment, passVariables, owner, pods } = this.dependencies
    if (!pod) {
      return localPlace({
        operator: environment,
        environment: agentEnvironment(environment, passVariables),
        ownerId: owner?.id,
      })
    }
    if (!pods) throw new PodError('unreachable', 'Commands in pods need kubectl, which this gateway cannot use.')
    return podPlace(await withDeadline(Math.min(timeoutMs, OPEN_MS), signal, (look) => pods.open(pod, look)), runId)
  }

  async #runProcess(
    request: CommandRequest,
    place: Place,
    signal: AbortSignal,
    record: CommandRecord,
  ): Promise<Ending> {
    const { owner } = this.dependencies
    const { directory, runId, timeoutMs, environment, isUntrusted } = request
    const [command = '', ...args] = request.argv
    const executable = place.isPod ? command : this.#findExecutable(command, directory)
    const shells = place.isPod ? Object.keys(environment ?? {}).find(isShellVariable) : undefined
    const untrusted = isUntrusted ? await this.#obstacle(request, signal) : undefined
    const obstacle = shells === undefined ? untrusted : shellsVariable(shells)
    if (signal.aborted) return { problem: CANCELLED }
    if (obstacle !== undefined) {
      return { exitCode: EXIT_NOT_STARTED, problem: { reason: 'refused', message: obstacle } }
    }
    if (executable === undefined) {
      const advice = 'Install it where the gateway runs, or give its path.'
      const message = `${command} was not found, or is not executable. ${advice}`
      return { exitCode: EXIT_NOT_FOUND, problem: { reason: 'spawn', message } }
    }

    let stopped: Problem | undefined
    const child = place.start({
      executable,
      args,
      directory,
      defaults: {},
      environment: {
        ...environment,
        ...(isUntrusted && UNTRUSTED_GIT),
        // Nobody is at a terminal to type a password.
        GIT_TERMINAL_PROMPT: '0',
      },
      stdin: '',
      runId,
      ...(owner && { owner }),
      stopSignal: 'SIGTERM',
      onStdout: (chunk) => record.print('stdout', chunk),
      onStderr: (chunk) => record.print('stderr', chunk),
    })
    const stop = (problem: Problem): void => {
      stopped ??= problem
      child.stop()
    }
    const cancel = (): void => stop(CANCELLED)
    const late = `The command did not finish within ${timeoutMs / 1000} s and was stopped. Give it a longer timeout.`
    const timer = startTimer(() => stop({ reason: 'timeout', message: late }), timeoutMs)
    signal.addEventListener('abort', cancel)
    const exit = await child.ended
    clearTimeout(timer)
    signal.removeEventListener('abort', cancel)
    record.print('stdout')
    record.print('stderr')

    if ('spawnError' in exit) {
      const message = `${command} could not be started: ${exit.spawnError.message}`
      return { exitCode: EXIT_NOT_STARTED, problem: stopped ?? { reason: 'spawn', message } }
    }
    if (!stopped) return 'problem' in exit ? endingOfPod(exit) : { exitCode: exit.exitCode }
    const exitCode = 'exitCode' in exit ? exit.exitCode : undefined
    if (stopped.reason === 'timeout') return { exitCode: EXIT_TIMED_OUT, problem: stopped }
    return { ...(exitCode !== undefined && { exitCode }), problem: stopped }
  }

  #findExecutable(command: string, directory: string): string | undefined {
    const path = command.includes(sep) ? resolve(directory, command) : command
    return findExecutable(path, this.dependencies.environment['PATH'] ?? '')
  }

  #obstacle({ directory, timeoutMs }: CommandRequest, signal: AbortSignal): Promise<string | undefined> {
    const { environment, passVariables } = this.dependencies
    const own = agentEnvironment(environment, passVariables)
    return withDeadline(Math.min(timeoutMs, UNTRUSTED_CHECK_MS), signal, (look) => gitObstacle(directory, own, look))
  }
}

type Problem = Pick<AgentFailure, 'message' | 'isLasting' | 'podProblem'> & {
  reason: FailureReason
}

/** Without a code if no process ran. */
interface Ending {
  exitCode?: number
  problem?: Problem
}

/** With a shell's exit code if nothing was started. */
function endingOfPod(loss: PodLoss): Ending {
  const problem = failureOfPod(loss)
  if (problem.reason !== 'spawn') return { problem }
  return { exitCode: loss.problem === 'cli_missing' ? EXIT_NOT_FOUND : EXIT_NOT_STARTED, problem }
}

const CANCELLED: Problem = { reason: 'cancelled', message: 'The command was cancelled.' }

/** Collects a command's events. Secrets are hidden before text is cut, since half a secret is not recognised. */
class CommandRecord {
  readonly #events: EventScrubber
  readonly #decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  readonly #printed = new BoundedText()
  #characters = 0

  constructor(
    scrubber: Scrubber,
    private readonly now: () => number,
    private readonly onEvent: (event: AgentEvent) => void,
  ) {
    this.#events = new EventScrubber(scrubber)
  }

  /** Without a chunk, the stream has ended. */
  print(stream: 'stdout' | 'stderr', chunk?: Buffer): void {
    const decoder = this.#decoders[stream]
    const content = chunk ? decoder.write(chunk) : decoder.end()
    // Agent events only know the stream `stdout`.
    const origin = stream === 'stderr' && { metadata: { stream } }
    if (content !== '') this.add({ type: 'output', content, stream: 'stdout', ...origin })
  }

  add(event: AgentEventBody): void {
    for (const scrubbed of this.#scrub(event)) this.#emit(scrubbed)
  }

  complete(result: AgentResult): AgentResult {
    let scrubbedResult = result
    for (const event of this.#scrub({ type: 'complete', result })) {
      if (event.type === 'complete') scrubbedResult = { ...event.result, finalOutput: this.#printed.toString() }
      this.#emit(event.type === 'complete' ? { ...event, result: scrubbedResult } : event)
    }
    return scrubbedResult
  }

  #scrub(event: AgentEventBody): AgentEvent[] {
    return this.#events.scrub({ ...event, timestamp: this.now() })
  }

  #emit(event: AgentEvent): void {
    if (event.type !== 'output') {
      this.onEvent(event)
      return
    }
    const { content, timestamp } = event
    this.#printed.append(content)
    const room = MAX_OUTPUT_CHARACTERS - this.#characters
    if (room <= 0) return
    this.#characters += content.length
    this.onEvent({ ...event, content: content.slice(0, room) })
    if (content.length < room) return
    this.onEvent({ type: 'notice', content: 'The command printed too much; the rest is omitted.', timestamp })
  }
}
