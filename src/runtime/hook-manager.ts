// Tells the operator's own commands and URLs what happens in the gateway.
//
// A hook must never slow, stop or fail a run: `fire` only puts a call in line, and whatever goes wrong ends in the log.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { agentEnvironment } from '../core/agent-environment.js'
import type { HookConfig, HookName } from '../config/schema.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { ProcessOwner } from '../processes/process-owner.js'
import { type CommandOutcome, runCommand } from '../processes/run-command.js'

export interface HookDependencies {
  log: Log
  /** The operator's environment; filtered before a command sees it. */
  environment: NodeJS.ProcessEnv
  /** Further variables to pass on, as names or `PREFIX_*`. */
  passVariables: readonly string[]
  /** Where commands run now. */
  workingDir: () => string
  now: () => number
  owner?: ProcessOwner
}

/** For each definition, beside the one call that is under way. */
export const MOST_WAITING_CALLS = 100

export class HookManager {
  #lines: HookLine[]
  /** Of definitions that are no more: what waited is still called. */
  #former: HookLine[] = []

  constructor(
    hooks: HookConfig[],
    private readonly dependencies: HookDependencies,
  ) {
    this.#lines = hooks.map((definition) => new HookLine(definition, dependencies))
  }

  /** Calls these from now on. */
  replace(hooks: HookConfig[]): void {
    const former = this.#lines
    this.#former.push(...former)
    this.#lines = hooks.map((definition) => new HookLine(definition, this.dependencies))
    void Promise.all(former.map((line) => line.drained())).then(() => {
      this.#former = this.#former.filter((line) => !former.includes(line))
    })
  }

  /** Contract: returns at once and never throws. */
  fire(hook: HookName, payload: Record<string, unknown>): void {
    const lines = this.#lines.filter(({ definition }) => definition.on.includes(hook))
    if (lines.length === 0) return
    const { log, now } = this.dependencies
    let body: string
    try {
      // Now, and not when its turn comes: the caller may go on to change what it gave.
      body = JSON.stringify({ hook, at: new Date(now()).toISOString(), ...payload })
    } catch (error) {
      log.warn('hook.failed', { hook, reason: `The payload is no JSON: ${messageOf(error)}` })
      return
    }
    for (const line of lines) line.add({ hook, body })
  }

  /** Settles when nothing waits and nothing is under way. With slow hooks that can take long: see `stop`. */
  async drained(): Promise<void> {
    await Promise.all([...this.#lines, ...this.#former].map((line) => line.drained()))
  }

  /** Drops what waits and ends what is under way; settles when nothing of it is alive. Later calls are dropped too. */
  async stop(): Promise<void> {
    await Promise.all([...this.#lines, ...this.#former].map((line) => line.stop()))
  }
}

interface HookCall {
  hook: HookName
  body: string
}

/** The calls of one definition, one at a time and in order. */
class HookLine {
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
    if (this.#waiting.length >= MOST_WAITING_CALLS) {
      // Told once until the line is empty again: a hook that cannot keep up would fill the log too.
      if (!this.#isDropping) this.#warnOfDropped(call.hook, `${MOST_WAITING_CALLS} calls of it wait already`)
      this.#isDropping = true
      return
    }
    this.#waiting.push(call)
    this.#work ??= this.#workOff()
  }

  async drained(): Promise<void> {
    await this.#work
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const [first] = this.#waiting
    if (first) this.#warnOfDropped(first.hook, `the gateway stops while ${this.#waiting.length} calls of it wait`)
    this.#waiting = []
    this.#current?.abort()
    await this.#work
  }

  async #workOff(): Promise<void> {
    // Starting a process takes milliseconds, which are not the caller's.
    await nextTurn()
    for (let call = this.#waiting.shift(); call; call = this.#waiting.shift()) {
      this.#current = new AbortController()
      const outcome = await this.#make(call, this.#current).catch(
        // Not by the contract of what is below; but a rejection that nobody takes would end the gateway.
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

  async #make({ hook, body }: HookCall, stopping: AbortController): Promise<CommandOutcome> {
    const { command = [], url, timeoutMs } = this.definition
    if (url !== undefined) return post(url, body, timeoutMs, stopping)
    const { environment, passVariables, workingDir, owner } = this.dependencies
    return runCommand({
      argv: command,
      cwd: workingDir(),
      environment: { ...agentEnvironment(environment, passVariables), AETHEEL_HOOK: hook },
      stdin: body,
      timeoutMs,
      signal: stopping.signal,
      owner,
    })
  }

  #warnOfDropped(hook: HookName, reason: string): void {
    this.dependencies.log.warn('hook.dropped', { hook, target: this.#target, reason })
  }
}

/** What stands in the log: arguments, paths and queries may hold secrets. */
function targetOf({ command, url }: HookConfig): string {
  return url === undefined ? (command?.[0] ?? 'nothing') : new URL(url).host
}

async function post(url: string, body: string, timeoutMs: number, stopping: AbortController): Promise<CommandOutcome> {
  let isTimeUp = false
  const timer = setTimeout(() => {
    isTimeUp = true
    stopping.abort()
  }, timeoutMs)
  try {
    const { address, headers } = splitCredentials(url)
    const response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      // What the gateway tells is meant for this address and no other.
      redirect: 'error',
      signal: stopping.signal,
    })
    // The answer is not read: there may be no end to it.
    await response.body?.cancel()
    return response.ok ? { ok: true } : { ok: false, problem: `answered with status ${response.status}` }
  } catch (error) {
    if (isTimeUp) return { ok: false, problem: `did not answer within ${timeoutMs} ms` }
    if (stopping.signal.aborted) return { ok: false, problem: 'was stopped' }
    return { ok: false, problem: `could not be reached: ${networkProblem(error)}` }
  } finally {
    clearTimeout(timer)
  }
}

/** `fetch` refuses an address with a password in it, and prints it whole. */
function splitCredentials(url: string): { address: URL; headers: Record<string, string> } {
  const address = new URL(url)
  const { username, password } = address
  if (username === '' && password === '') return { address, headers: {} }
  address.username = ''
  address.password = ''
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  return { address, headers: { authorization: `Basic ${credentials}` } }
}

/** `fetch` itself only says that it failed; of several addresses tried, not even the cause has words. */
function networkProblem(error: unknown): string {
  const cause: NodeJS.ErrnoException | undefined =
    error instanceof Error && error.cause instanceof Error ? error.cause : undefined
  return cause?.message || cause?.code || messageOf(error)
}
