// Notifies the operator's commands and URLs of events in the gateway.
//
// A hook must never slow, stop or fail a run: `fire` only queues a call, and problems are only logged.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { agentEnvironment } from '../core/agent-environment.js'
import { startDeadline } from '../core/async.js'
import type { HookConfig, HookName } from '../config/schema.js'
import type { Scrubber } from '../credentials/scrubber.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { ProcessOwner } from '../processes/process-owner.js'
import { type CommandOutcome, runCommand } from '../processes/run-command.js'

export interface HookDependencies {
  log: Log
  /** The operator's environment; filtered before a command sees it. */
  environment: NodeJS.ProcessEnv
  /** Additional variables to pass, as names or `PREFIX_*`. */
  passVariables: readonly string[]
  /** The current directory for commands. */
  workingDir: () => string
  now: () => number
  owner?: ProcessOwner
  /** Redacts known secrets in the payload. */
  scrubber: Pick<Scrubber, 'scrubJson'>
}

/** Per definition, in addition to the call in progress. */
export const MAX_WAITING_CALLS = 100

export class HookManager {
  #queues: HookQueue[]
  /** Queues of removed definitions, which still make their waiting calls. */
  #retired: HookQueue[] = []

  constructor(
    hooks: HookConfig[],
    private readonly dependencies: HookDependencies,
  ) {
    this.#queues = hooks.map((definition) => new HookQueue(definition, dependencies))
  }

  replace(hooks: HookConfig[]): void {
    const retired = this.#queues
    this.#retired.push(...retired)
    this.#queues = hooks.map((definition) => new HookQueue(definition, this.dependencies))
    void Promise.all(retired.map((queue) => queue.drained())).then(() => {
      this.#retired = this.#retired.filter((queue) => !retired.includes(queue))
    })
  }

  /** Contract: returns at once and never throws. */
  fire(hook: HookName, payload: Record<string, unknown>): void {
    const queues = this.#queues.filter(({ definition }) => definition.on.includes(hook))
    if (queues.length === 0) return
    const { scrubber, log, now } = this.dependencies
    let body: string
    try {
      // Serialised now, since the caller may change its objects later.
      body = scrubber.scrubJson(JSON.stringify({ hook, at: new Date(now()).toISOString(), ...payload }))
    } catch (error) {
      log.warn('hook.failed', { hook, reason: `The payload cannot be written as JSON: ${messageOf(error)}` })
      return
    }
    for (const queue of queues) queue.add({ hook, body })
  }

  /** Settles when no call waits or runs. With slow hooks that can take long: see `stop`. */
  async drained(): Promise<void> {
    await Promise.all([...this.#queues, ...this.#retired].map((queue) => queue.drained()))
  }

  /**
   * Drops waiting calls and ends the one in progress; settles when nothing of it is alive. Later calls are dropped too.
   */
  async stop(): Promise<void> {
    await Promise.all([...this.#queues, ...this.#retired].map((queue) => queue.stop()))
  }
}

interface HookCall {
  hook: HookName
  body: string
}

/** The calls of one definition, one at a time, in order. */
class HookQueue {
  #waiting: HookCall[] = []
  #work: Promise<void> | undefined
  #current: AbortController | undefined
  #isDropping = false
  #isStopped = false
  readonly #target: string

  constructor(
    readonly definition: HookConfig,
    private readonly dependencies: HookDependencies,
  ) {
    this.#target = targetOf(definition)
  }

  add(call: HookCall): void {
    if (this.#isStopped) return
    if (this.#waiting.length >= MAX_WAITING_CALLS) {
      // Logged once until the queue is empty again: a slow hook must not fill the log.
      if (!this.#isDropping) this.#warnOfDropped(call.hook, `${MAX_WAITING_CALLS} calls are already waiting`)
      this.#isDropping = true
      return
    }
    this.#waiting.push(call)
    this.#work ??= this.#drain()
  }

  async drained(): Promise<void> {
    await this.#work
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const [first] = this.#waiting
    if (first) this.#warnOfDropped(first.hook, `the gateway stopped while ${this.#waiting.length} calls were waiting`)
    this.#waiting = []
    this.#current?.abort()
    await this.#work
  }

  async #drain(): Promise<void> {
    // Starting a process takes milliseconds that the caller should not spend.
    await nextTurn()
    for (let call = this.#waiting.shift(); call; call = this.#waiting.shift()) {
      this.#current = new AbortController()
      const outcome = await this.#make(call, this.#current.signal).catch(
        // Cannot happen by contract, but an unhandled rejection would end the gateway.
        (error: unknown): CommandOutcome => ({ ok: false, problem: `failed: ${messageOf(error)}` }),
      )
      if (outcome.ok) continue
      const reason = `${this.#target} ${outcome.problem}`
      this.dependencies.log.warn('hook.failed', { hook: call.hook, reason })
    }
    this.#current = undefined
    this.#work = undefined
    this.#isDropping = false
  }

  async #make({ hook, body }: HookCall, stopping: AbortSignal): Promise<CommandOutcome> {
    const { command = [], url, timeoutMs } = this.definition
    if (url !== undefined) return post(url, body, timeoutMs, stopping)
    const { environment, passVariables, workingDir, owner } = this.dependencies
    return runCommand({
      argv: command,
      cwd: workingDir(),
      environment: { ...agentEnvironment(environment, passVariables), AETHEEL_HOOK: hook },
      stdin: body,
      timeoutMs,
      signal: stopping,
      owner,
    })
  }

  #warnOfDropped(hook: HookName, reason: string): void {
    this.dependencies.log.warn('hook.dropped', { hook, target: this.#target, reason })
  }
}

/** The target as logged: arguments, paths and queries may contain secrets. */
function targetOf({ command, url }: HookConfig): string {
  return url === undefined ? (command?.[0] ?? 'nothing') : new URL(url).host
}

async function post(url: string, body: string, timeoutMs: number, stopping: AbortSignal): Promise<CommandOutcome> {
  const deadline = startDeadline(timeoutMs, stopping)
  try {
    const { address, headers } = splitCredentials(url)
    const response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      // The payload is meant for this address only.
      redirect: 'error',
      signal: deadline.signal,
    })
    // The response is not read: it may never end.
    await response.body?.cancel()
    return response.ok ? { ok: true } : { ok: false, problem: `answered with status ${response.status}` }
  } catch (error) {
    if (stopping.aborted) return { ok: false, problem: 'was stopped' }
    if (deadline.signal.aborted) return { ok: false, problem: `did not answer within ${timeoutMs} ms` }
    return { ok: false, problem: `could not be reached: ${networkProblem(error)}` }
  } finally {
    deadline.clear()
  }
}

/** `fetch` refuses a URL with a password in it, and its error prints the whole URL. */
function splitCredentials(url: string): { address: URL; headers: Record<string, string> } {
  const address = new URL(url)
  const { username, password } = address
  if (username === '' && password === '') return { address, headers: {} }
  address.username = ''
  address.password = ''
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  return { address, headers: { authorization: `Basic ${credentials}` } }
}

/** `fetch` itself only says that it failed; after trying several addresses, even the cause has no message. */
function networkProblem(error: unknown): string {
  const cause: NodeJS.ErrnoException | undefined =
    error instanceof Error && error.cause instanceof Error ? error.cause : undefined
  return cause?.message || cause?.code || messageOf(error)
}
