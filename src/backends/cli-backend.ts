// Everything about driving a command line that is the same for all five agents. A subclass says how its CLI is
// started (`invocation`) and what its output means (`translation`).

import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { canBeSetForRun, operatorEnvironment } from '../environment.js'
import { createScrubber, type Scrubber } from '../credentials/scrubber.js'
import { GatewayError, messageOf } from '../errors.js'
import { isDirectory } from '../is-directory.js'
import { createLog, type Log } from '../log.js'
import { findExecutable } from '../processes/find-executable.js'
import { OUTPUT_LIMITS, type OutputLimits } from '../processes/line-splitter.js'
import { OWNER_MARKER, type ProcessOwner } from '../processes/process-owner.js'
import { createRunDirectory, type RunDirectory } from '../processes/run-directory.js'
import { agentEnvironment } from './agent-environment.js'
import { type Run, type RunPlan, startRun } from './cli-run.js'
import { type CliOption, namesOption, withoutOptions } from './command-args.js'
import { EventQueue } from './event-queue.js'
import type { FailureSign } from './failures.js'
import { PlainTranslation } from './plain-translation.js'
import { pumpStream } from './stream-pump.js'
import { type Failed, foldOutput, type Translation } from './translation.js'
import type { Turn } from './turn.js'
import type {
  AgentBackend,
  AgentCapabilities,
  AgentCommand,
  AgentEvent,
  AgentEventBody,
  AgentProbe,
  AgentRequest,
  AgentResult,
  BackendAdapterConfig,
  BackendEventResult,
  BackendName,
  StreamCallback,
} from './types.js'
import { gitObstacle, UNTRUSTED_GIT } from './untrusted-git.js'
import { compareVersions, problemsOfVersion, readVersion, type VersionKnowledge } from './version.js'

export const DEFAULT_IDLE_TIMEOUT_MS = 600_000

const VERSION_TIMEOUT_MS = 10_000
/** Before a turn: better without knowing the version than late. */
const VERSION_BEFORE_TURN_MS = 2_000
/** To look at an untrusted project; what is not seen by then keeps the agent from it. */
const UNTRUSTED_LOOK_MS = 30_000

export interface BackendDependencies {
  /** The operator's environment; filtered before an agent sees it. */
  environment: NodeJS.ProcessEnv
  /** Further variables to pass on, as names or `PREFIX_*`. */
  passVariables: readonly string[]
  log: Log
  now: () => number
  limits: OutputLimits
  /** Without one, nobody ends the agents of a gateway that was itself killed. */
  owner?: ProcessOwner
  /** Knows secrets. What is not told whole is scrubbed here: of half a secret nobody above could know. */
  scrubber: Scrubber
}

/** What is fixed about one CLI. */
export interface CliTraits {
  /** As it stands in error sentences: `Claude CLI error (exit 1): …`. */
  label: string
  /** The npm package that installs it. */
  packageName: string
  /** The agent's own variables, as names or `PREFIX_*`. */
  variables: readonly string[]
  sessionId: RegExp
  /** The signal it cleans up best on. */
  stopSignal: NodeJS.Signals
  /** The longest prompt the CLI takes whole. */
  promptLimit?: { size: number; unit: 'bytes' | 'characters' }
  /** What it prints on stderr when it fails before it can say so in its wire format. */
  failureSigns: readonly FailureSign[]
  supportsMaxTurns: boolean
  supportsToolControl: boolean
  supportsStreaming: boolean
  versions: VersionKnowledge
  /** The first word of its command line, where it has several commands. */
  subcommand?: string
  /** What a command template cannot change: how the CLI speaks with us, and in which session and directory. */
  ownOptions: readonly CliOption[]
  modelOption: CliOption
}

/** How a turn is really started; the prompt goes by stdin. */
export interface Invocation {
  args: string[]
  /** Set whatever the operator's environment says. */
  environment?: Record<string, string>
  /** Set where the operator's environment says nothing. */
  defaults?: Record<string, string>
  /** Looked at when the process has ended; a sentence to tell, if something did not go as intended. */
  check?(): string | undefined
}

/** What a finished output came to. */
export interface ReadOutput extends Pick<
  AgentResult,
  'isError' | 'sessionId' | 'usage' | 'sessionUsage' | 'costUsd' | 'metadata'
> {
  text?: string
  model?: string
}

export abstract class CliBackend implements AgentBackend {
  protected abstract readonly traits: CliTraits
  protected readonly dependencies: BackendDependencies
  #warned = new Set<string>()
  /** Where the sessions of this backend are at home, by id. */
  #directories = new Map<string, string>()
  /** What was read of executables, by path. */
  #versions = new Map<string, { mtimeMs: number; text: string | undefined }>()

  constructor(
    protected readonly config: BackendAdapterConfig,
    dependencies: Partial<BackendDependencies> = {},
  ) {
    this.dependencies = {
      environment: dependencies.environment ?? operatorEnvironment(),
      passVariables: dependencies.passVariables ?? [],
      log: dependencies.log ?? createLog(),
      now: dependencies.now ?? Date.now,
      limits: dependencies.limits ?? OUTPUT_LIMITS,
      ...(dependencies.owner && { owner: dependencies.owner }),
      scrubber: dependencies.scrubber ?? createScrubber(),
    }
  }

  abstract name(): BackendName

  /**
   * The arguments as the gateway document defines them; what is spawned is `invocation`.
   *
   * Contract: pure and trusting. It never validates, alters or throws; options stand before prompt and file names.
   */
  abstract buildArgs(prompt: string, systemPromptOrFile: string, sessionId?: string): string[]

  /** How today's CLI is started. Contract: changes nothing but `files`, which are gone after the run. */
  protected abstract invocation(turn: Turn, files: RunDirectory, signal: AbortSignal): Invocation | Promise<Invocation>

  /** The prompt with the one space or escape that keeps this CLI from running or replacing parts of it. */
  protected neutralise(prompt: string): string {
    return prompt
  }

  /** Contract: a fresh translation for one turn, or for one finished output when there is no turn. */
  protected abstract translation(emit: (event: AgentEventBody) => void, turn?: Turn): Translation

  /** Contract: pure; the same translation as in `run`, over an output that is complete. */
  parseOutput(stdout: string): BackendEventResult {
    return foldOutput(
      stdout,
      this.translation(() => {}),
      this.traits.failureSigns,
    )
  }

  /** As `parseOutput`, with all that the CLI told; without a text when it did not say how it ended. */
  readOutput(stdout: string, format?: AgentCommand['format']): ReadOutput {
    let model: string | undefined
    const emit = (event: AgentEventBody): void => {
      if (event.type === 'started') model = event.model
    }
    const plain = format === 'text' ? new PlainTranslation(emit, Infinity) : undefined
    const translation = plain ?? this.translation(emit)
    const { isError, responseText, sessionId } = foldOutput(stdout, translation, this.traits.failureSigns, plain)
    const { usage, sessionUsage, costUsd, metadata, verdict } = translation
    return {
      isError,
      ...(verdict && responseText !== undefined && { text: responseText }),
      ...(sessionId !== undefined && { sessionId }),
      ...(model !== undefined && { model }),
      ...(usage && { usage }),
      ...(sessionUsage && { sessionUsage }),
      ...(costUsd !== undefined && { costUsd }),
      ...(metadata && { metadata }),
    }
  }

  async execute(
    prompt: string,
    systemPrompt: string,
    sessionId?: string,
    onStream?: StreamCallback,
  ): Promise<BackendEventResult> {
    const request: AgentRequest = { prompt, systemPrompt, ...(sessionId !== undefined && { sessionId }) }
    const pump = onStream && pumpStream(onStream, this.dependencies.log)
    let result: AgentResult | undefined
    for await (const event of this.run(request, new AbortController().signal)) {
      if (event.type === 'output') pump?.push(event.content)
      if (event.type === 'complete') result = event.result
    }
    await pump?.drained()
    if (result === undefined) throw new Error('A run ended without its complete event')
    const responseText = result.failure?.report ?? result.finalOutput
    return {
      isError: result.isError,
      ...(responseText !== undefined && { responseText }),
      ...(result.sessionId !== undefined && { sessionId: result.sessionId }),
    }
  }

  async *run(request: AgentRequest, signal: AbortSignal): AsyncGenerator<AgentEvent, void, undefined> {
    const watch = {
      timeoutMs: milliseconds('timeoutMs', request.timeoutMs ?? this.config.queryTimeoutMs, 1),
      idleTimeoutMs: milliseconds('idleTimeoutMs', request.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS, 0),
    }
    const turn = this.#turn(request)
    this.#warnAboutIgnoredOptions(turn)
    const refusal = signal.aborted ? CANCELLED : (this.#refusal(turn) ?? refusedVariable(request))
    if (refusal) {
      yield* this.#refused(refusal)
      return
    }

    let files: RunDirectory | undefined
    let run: Run | undefined
    const preparing = new AbortController()
    const cancel = () => {
      preparing.abort()
      run?.stop(CANCELLED)
    }
    // A caller may start any number of runs with one signal.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', cancel)
    const preparationMs = turn.isUntrusted ? UNTRUSTED_LOOK_MS : VERSION_BEFORE_TURN_MS
    const timer = setTimeout(() => preparing.abort(), Math.min(watch.timeoutMs, preparationMs))
    try {
      const startedAt = this.dependencies.now()
      const obstacle = turn.isUntrusted ? await this.#untrustedObstacle(turn, preparing.signal) : undefined
      if (obstacle !== undefined) {
        yield* this.#refused(signal.aborted ? CANCELLED : { reason: 'refused', message: obstacle })
        return
      }
      files = createRunDirectory(this.dependencies.owner?.id)
      const invocation = await this.invocation(turn, files, preparing.signal)
      watch.timeoutMs -= Math.min(this.dependencies.now() - startedAt, watch.timeoutMs)
      run = this.#start(request.runId ?? randomUUID(), turn, invocation, watch, runVariables(request, files))
      if (signal.aborted) cancel()
      for await (const event of run.events) {
        if (event.type === 'complete') this.#remember(event.result.sessionId, turn.workingDir)
        yield event
      }
    } catch (error) {
      if (run) throw error
      const message = `${this.traits.label} CLI could not be prepared: ${messageOf(error)}`
      yield* this.#refused({ reason: 'spawn', message })
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cancel)
      // Reached early when the consumer leaves the loop: the agent must not work on for nobody.
      cancel()
      await run?.ended
      if (files) this.#remove(files)
    }
  }

  async validate(command?: ExecutableChoice): Promise<boolean> {
    return this.#findExecutable(command) !== undefined
  }

  async probe(command?: ExecutableChoice): Promise<AgentProbe> {
    const path = this.#findExecutable(command)
    if (path === undefined) return { isFound: false, problems: [this.#notFound(command)] }
    const version = await this.installedVersion(AbortSignal.timeout(VERSION_TIMEOUT_MS), command)
    const problems = [...problemsOfVersion(version, this.traits.versions), ...this.problems()]
    return { isFound: true, path, ...(version && { version }), problems }
  }

  capabilities(): AgentCapabilities {
    const { traits } = this
    return {
      provider: this.name(),
      supportsSessionContinuation: true,
      supportsModelSelection: true,
      supportsToolControl: traits.supportsToolControl,
      supportsMaxTurns: traits.supportsMaxTurns,
      supportsStreaming: traits.supportsStreaming,
      supportedModels: [],
      ...(this.config.model !== undefined && { defaultModel: this.config.model }),
      maxPromptLength: traits.promptLimit?.size ?? 0,
    }
  }

  /** Asked of the CLI once, and again when its file has changed: it may be updated under us. */
  protected async installedVersion(signal: AbortSignal, command?: ExecutableChoice): Promise<string | undefined> {
    const path = this.#findExecutable(command)
    if (path === undefined) return undefined
    const { mtimeMs } = statSync(path)
    const known = this.#versions.get(path)
    if (known?.mtimeMs === mtimeMs) return known.text
    const { owner } = this.dependencies
    const environment = { ...this.#agentEnvironment(), ...(owner && { [OWNER_MARKER]: owner.id }) }
    const text = await readVersion(path, environment, signal)
    if (!signal.aborted) this.#versions.set(path, { mtimeMs, text })
    return text
  }

  /** What in this environment will keep the agent from working, beside its version. */
  protected problems(): string[] {
    return []
  }

  /** What in an untrusted directory this CLI would obey whatever it is told; a sentence with what to do. */
  protected untrustedObstacle(_turn: Turn): string | undefined {
    return undefined
  }

  /** How an untrusted project is held back is known of the versions that were tried, and of no older one. */
  async #untrustedObstacle(turn: Turn, signal: AbortSignal): Promise<string | undefined> {
    const { label, versions } = this.traits
    const version = await this.installedVersion(signal, turn.command)
    if (version === undefined) {
      const executable = turn.command?.executable ?? this.config.cliPath
      return `The version of ${label} could not be read, so it is not started in an untrusted project. Check that \`${executable} --version\` answers.`
    }
    if (compareVersions(version, versions.oldestKnown) < 0) {
      return `${label} ${version} is not started in an untrusted project. Update it to ${versions.oldestKnown} or newer.`
    }
    return this.untrustedObstacle(turn) ?? (await gitObstacle(turn.workingDir, this.#agentEnvironment(), signal))
  }

  /** Most CLIs find a session only in the directory where it began. */
  #remember(sessionId: string | undefined, directory: string): void {
    if (sessionId === undefined) return
    this.#directories.set(sessionId, directory)
    const [oldest] = this.#directories.keys()
    if (this.#directories.size > MOST_DIRECTORIES && oldest !== undefined) this.#directories.delete(oldest)
  }

  #turn(request: AgentRequest): Turn {
    const command = request.command && this.#command(request.command, request.model)
    const isModelNamed = namesOption(command?.args ?? [], this.traits.modelOption.names)
    const model = (request.model ?? (isModelNamed ? undefined : this.config.model)) || undefined
    return {
      prompt: this.neutralise(request.prompt),
      systemPrompt: request.systemPrompt ?? '',
      // Empty is how some callers say that there is none.
      ...(request.sessionId && { sessionId: request.sessionId }),
      ...(request.sessionUsage && { sessionUsage: request.sessionUsage }),
      ...(model !== undefined && { model }),
      allowedTools: request.allowedTools ?? this.config.allowedTools,
      // Absolute: a CLI that is both started there and told the path would go down twice.
      workingDir: resolve(
        request.workingDir ?? this.#directories.get(request.sessionId ?? '') ?? this.config.workingDir,
      ),
      maxTurns: wholeNumber('maxTurns', request.maxTurns ?? this.config.maxTurns),
      isUntrusted: request.isUntrusted ?? false,
      ...(command && { command }),
    }
  }

  /** Without what would stand on the command line twice: the person's choice of a model comes before the template's. */
  #command(command: AgentCommand, model: string | undefined): AgentCommand {
    const { subcommand, ownOptions, modelOption } = this.traits
    const { args, template = args } = command
    const from = template[0] !== undefined && template[0] === subcommand ? 1 : 0
    const options = model ? [...ownOptions, modelOption] : ownOptions
    // Nothing that was put in makes or unmakes an option: the same is left of both.
    const strip = (elements: string[]): string[] => withoutOptions(elements.slice(from), options)
    return { ...command, args: strip(args), template: strip(template) }
  }

  /** What is told without starting anything. */
  #refusal({ prompt, sessionId, model, allowedTools, workingDir, command }: Turn): Failed | undefined {
    const { label, sessionId: sessionPattern, promptLimit } = this.traits
    const badName = [...(model === undefined ? [] : [model]), ...allowedTools].find((name) => !isName(name))
    if (badName !== undefined) {
      return { reason: 'refused', message: `${JSON.stringify(badName)} is not the name of a model or a tool.` }
    }
    if (prompt.trim() === '') return { reason: 'refused', message: 'The prompt is empty.' }
    if (promptLimit) {
      const size = promptLimit.unit === 'bytes' ? Buffer.byteLength(prompt) : countCharacters(prompt)
      const limit = `${promptLimit.size} ${promptLimit.unit}`
      if (size > promptLimit.size) {
        return { reason: 'refused', message: `The prompt is too long for ${label}: ${size} of at most ${limit}.` }
      }
    }
    if (sessionId !== undefined && !sessionPattern.test(sessionId)) {
      return { reason: 'session_lost', message: `${JSON.stringify(sessionId)} is not a session id of ${label}.` }
    }
    if (!isDirectory(workingDir)) {
      return { reason: 'spawn', message: `The working directory ${workingDir} does not exist.`, isLasting: true }
    }
    if (this.#findExecutable(command) !== undefined) return undefined
    return { reason: 'spawn', message: this.#notFound(command), isLasting: true }
  }

  #start(
    runId: string,
    turn: Turn,
    invocation: Invocation,
    watch: Pick<RunPlan, 'timeoutMs' | 'idleTimeoutMs'>,
    variables: Record<string, string>,
  ): Run {
    const { label, failureSigns, stopSignal } = this.traits
    const { now, limits, owner, scrubber } = this.dependencies
    const { args, check, defaults, environment } = invocation
    return startRun({
      label,
      failureSigns,
      process: {
        executable: this.#findExecutable(turn.command) ?? this.config.cliPath,
        args,
        stdin: turn.prompt,
        cwd: turn.workingDir,
        environment: {
          ...defaults,
          ...this.#agentEnvironment(),
          ...variables,
          ...(turn.isUntrusted && UNTRUSTED_GIT),
          // OpenCode trusts it more than its real working directory.
          PWD: turn.workingDir,
          ...environment,
        },
        runId,
        ...(owner && { owner }),
        stopSignal,
      },
      translation: (emit) =>
        turn.command?.format === 'text' ? new PlainTranslation(emit, limits.lineBytes) : this.translation(emit, turn),
      ...watch,
      limits,
      now,
      scrubber,
      check,
    })
  }

  #refused(failed: Failed): EventQueue {
    const queue = new EventQueue(this.dependencies.now)
    queue.complete({ isError: true, durationMs: 0, failure: { ...failed, report: failed.message } })
    return queue
  }

  #remove(files: RunDirectory): void {
    try {
      files.remove()
    } catch (error) {
      this.dependencies.log.warn('run.files-left', { path: files.path, error: messageOf(error) })
    }
  }

  #findExecutable({ executable = this.config.cliPath }: ExecutableChoice = {}): string | undefined {
    return findExecutable(executable, this.dependencies.environment['PATH'] ?? '')
  }

  #notFound({ executable }: ExecutableChoice = {}): string {
    const cliPath = executable ?? this.config.cliPath
    const problem = existsSync(cliPath) ? 'is not an executable file' : 'was not found'
    const install = `Install it (npm install -g ${this.traits.packageName}) so that it is on the PATH`
    const orPath =
      executable === undefined
        ? 'or, for the agent that AGENT_BACKEND names, set BACKEND_CLI_PATH to where it is'
        : 'or begin inbound.reply.command with the path of it'
    return `${this.traits.label} CLI "${cliPath}" ${problem}. ${install}, ${orPath}.`
  }

  #agentEnvironment(): Record<string, string> {
    const { environment, passVariables } = this.dependencies
    return agentEnvironment(environment, [...this.traits.variables, ...passVariables])
  }

  #warnAboutIgnoredOptions(turn: Turn): void {
    if (!this.traits.supportsMaxTurns) this.#warnOnce('maxTurns', turn.maxTurns)
    if (!this.traits.supportsToolControl && turn.allowedTools.length > 0) {
      this.#warnOnce('allowedTools', turn.allowedTools)
    }
  }

  #warnOnce(option: string, value: unknown): void {
    if (this.#warned.has(option)) return
    this.#warned.add(option)
    this.dependencies.log.warn('backend.option-ignored', { backend: this.name(), option, value })
  }
}

/** Which executable is meant; left out, the configured one. */
export type ExecutableChoice = Pick<AgentCommand, 'executable'>

const MOST_DIRECTORIES = 10_000

const CANCELLED: Failed = { reason: 'cancelled', message: 'Cancelled' }

function refusedVariable({ environment = {}, secretFiles = [] }: AgentRequest): Failed | undefined {
  const names = [...Object.keys(environment), ...secretFiles.map(({ variable }) => variable)]
  const fixed = names.find((name) => !canBeSetForRun(name))
  if (fixed !== undefined) {
    const message = `The variable ${JSON.stringify(fixed)} cannot be set for a run. Give it another name.`
    return { reason: 'refused', message }
  }
  const broken = Object.entries(environment).find(([, value]) => value.includes('\0'))
  if (!broken) return undefined
  return { reason: 'refused', message: `The value of ${broken[0]} has a NUL in it. Give it as a file instead.` }
}

function runVariables({ environment, secretFiles = [] }: AgentRequest, files: RunDirectory): Record<string, string> {
  const paths = secretFiles.map(({ variable, content }) => [variable, files.write(`secret-${variable}`, content)])
  return { ...environment, ...Object.fromEntries(paths) }
}

/** It stands on a command line: what begins with a dash there would be taken for an option. */
function isName(name: string): boolean {
  return /^[^\s\p{Cc}-][^\p{Cc}]*$/u.test(name)
}

function countCharacters(text: string): number {
  let surrogatePairs = 0
  for (const _ of text.matchAll(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)) surrogatePairs += 1
  return text.length - surrogatePairs
}

function wholeNumber(name: string, value: number): number {
  if (Number.isInteger(value) && value >= 0) return value
  throw new GatewayError('request_invalid', `${name} must be a whole number, not ${value}`)
}

function milliseconds(name: string, value: number, atLeast: number): number {
  if (Number.isFinite(value) && value >= atLeast) return value
  throw new GatewayError('request_invalid', `${name} must be a number of milliseconds, not ${value}`)
}
