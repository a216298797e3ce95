// Everything about driving a command line that is the same for all five agents. A subclass says how its CLI is
// started (`invocation`) and what its output means (`translation`).

import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { withDeadline } from '../../core/async.js'
import { GatewayError, messageOf } from '../../errors.js'
import { type PodAddress, PodError } from '../../kubernetes/types.js'
import { findExecutable } from '../../processes/find-executable.js'
import { OWNER_MARKER } from '../../processes/process-owner.js'
import { agentEnvironment } from '../../core/agent-environment.js'
import { type BackendDependencies, completeDependencies } from './backend-dependencies.js'
import { startOneShot } from './one-shot-run.js'
import type { Run } from './turn-run.js'
import { type CliOption, namesOption, withoutOptions } from './command-args.js'
import type { EventQueue } from './event-queue.js'
import { executeTurn } from './execute-turn.js'
import type { FailureSign } from './failures.js'
import { type WarmProcess, type WarmProcessPlan, startWarmProcess } from './warm/warm-process.js'
import { type WarmRun, startWarmRun } from './warm/warm-run.js'
import type { WarmDriver } from './warm/types.js'
import { problemOfNode } from './node-requirement.js'
import { localPlace, type Place, podPlace, type RunFiles } from './place.js'
import { PlainTranslation } from './plain-translation.js'
import { failureOfPod } from './pod-failure.js'
import {
  CANCELLED,
  type InputRules,
  refusedAsking,
  refusedDirectory,
  refusedInput,
  refusedPod,
  refusedRun,
  refusedVariable,
  refusedVersionToAsk,
} from './refusals.js'
import { SessionDirectories } from './session-directories.js'
import { type Failed, foldOutput, type Translation } from './translation.js'
import { type Turn, turnOf } from './turn.js'
import { tookTooLong, type TimeLimits, timeLimits } from './turn-watch.js'
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
} from '../types.js'
import { gitObstacle, UNTRUSTED_GIT } from './untrusted-git.js'
import { problemsOfVersion, readVersion, type VersionKnowledge } from './version.js'
import { compareVersions } from '../../core/versions.js'

/** To ask a CLI its version. Without it a turn may get arguments that are wrong for it, so even a slow answer is waited for. */
export const VERSION_TIMEOUT_MS = 10_000
/** To look at an untrusted project; what is not seen by then keeps the agent from it. */
export const UNTRUSTED_LOOK_MS = 30_000
/** To find a pod and look into it. */
const POD_LOOK_MS = 30_000

/** What is fixed about one CLI. */
export interface CliTraits extends InputRules {
  /** The npm package that installs it. */
  packageName: string
  /** The agent's own variables, as names or `PREFIX_*`. */
  variables: readonly string[]
  /** The signal it cleans up best on. */
  stopSignal: NodeJS.Signals
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
  /** Set whatever the environment of the place says. */
  environment?: Record<string, string>
  /** Set where the environment of the place says nothing. */
  defaults?: Record<string, string>
  /** A file that the CLI leaves among its files when all goes as intended; the sentence is told when it does not. */
  expects?: { file: string; otherwise: string }
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
  #directories = new SessionDirectories()
  /** What was read of executables, by path. */
  #versions = new Map<string, { mtimeMs: number; text: string | undefined }>()

  constructor(
    protected readonly config: BackendAdapterConfig,
    dependencies: Partial<BackendDependencies> = {},
  ) {
    this.dependencies = completeDependencies(dependencies)
  }

  abstract name(): BackendName

  /**
   * The arguments as the gateway document defines them; what is spawned is `invocation`.
   *
   * Contract: pure and trusting. It never validates, alters or throws; options stand before prompt and file names.
   */
  abstract buildArgs(prompt: string, systemPromptOrFile: string, sessionId?: string): string[]

  /** How today's CLI is started. Contract: changes nothing but the files of the place, which are gone after the run. */
  protected abstract invocation(turn: Turn, place: Place, signal: AbortSignal): Invocation | Promise<Invocation>

  /** The prompt with the one space or escape that keeps this CLI from running or replacing parts of it. */
  protected neutralise(prompt: string, _isWarm: boolean): string {
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

  execute(
    prompt: string,
    systemPrompt: string,
    sessionId?: string,
    onStream?: StreamCallback,
  ): Promise<BackendEventResult> {
    return executeTurn(this, this.dependencies.log, prompt, systemPrompt, sessionId, onStream)
  }

  /** `spentMs` is what is over of the turn's time already. */
  async *run(request: AgentRequest, signal: AbortSignal, spentMs = 0): AsyncGenerator<AgentEvent, void, undefined> {
    const watch = timeLimits(request, this.config)
    const leftMs = Math.max(0, watch.timeoutMs - spentMs)
    const turn = this.toTurn(request)
    this.#warnAboutIgnoredOptions(request, turn)
    const refusal = signal.aborted ? CANCELLED : this.refusalOf(request, turn)
    if (refusal) {
      yield* this.#refused(refusal)
      return
    }

    let place: Place | undefined
    let run: Run | undefined
    const preparing = new AbortController()
    const cancel = () => {
      preparing.abort()
      run?.stop(CANCELLED)
    }
    // A caller may start any number of runs with one signal.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', cancel)
    const preparationMs = request.pod ? POD_LOOK_MS : turn.isUntrusted ? UNTRUSTED_LOOK_MS : VERSION_TIMEOUT_MS
    let isOutOfTime = false
    const timer = setTimeout(
      () => {
        isOutOfTime = leftMs <= preparationMs
        preparing.abort()
      },
      Math.min(leftMs, preparationMs),
    )
    const startedAt = this.dependencies.elapsed()
    try {
      const obstacle = turn.isUntrusted ? await this.obstacleIn(turn, preparing.signal) : undefined
      if (obstacle !== undefined) {
        yield* this.#refused(signal.aborted ? CANCELLED : { reason: 'refused', message: obstacle })
        return
      }
      if (request.approve) {
        yield* this.#refused(refusedAsking(this.traits.label, request))
        return
      }
      const runId = request.runId ?? randomUUID()
      place = await this.#place(turn, request.pod, runId, preparing.signal)
      const invocation = await this.invocation(turn, place, preparing.signal)
      watch.spentMs = spentMs + this.dependencies.elapsed() - startedAt
      run = this.#start(runId, turn, place, invocation, watch, runVariables(request, place.files))
      if (signal.aborted) cancel()
      for await (const event of run.events) {
        if (event.type === 'complete') this.remember(event.result.sessionId, turn.workingDir)
        yield event
      }
    } catch (error) {
      if (run) throw error
      if (signal.aborted) yield* this.#refused(CANCELLED)
      else if (isOutOfTime && error instanceof PodError) yield* this.#refused(tookTooLong(watch.timeoutMs))
      else yield* this.#refused(this.unprepared(error))
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cancel)
      // Reached early when the consumer leaves the loop: the agent must not work on for nobody.
      cancel()
      await run?.ended
      if (place) this.#leave(place)
    }
  }

  /** Why this would be refused without starting anything. */
  refusalOf(request: AgentRequest, turn: Turn): Failed | undefined {
    return this.#refusal(turn, request.pod) ?? refusedVariable(request)
  }

  /** Differs whenever the executable does; undefined where there is none. */
  executableFingerprint(): string | undefined {
    const path = this.#findExecutable()
    if (path === undefined) return undefined
    const { ino, mtimeMs, size } = statSync(path)
    return JSON.stringify([path, ino, mtimeMs, size])
  }

  /** Whether the installed version is this one or newer. It may take that long where it is not known yet. */
  async isInstalledSince(version: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const path = this.#findExecutable()
    const known = path === undefined ? undefined : this.#knownVersion(path)
    const installed = known ? known.text : await withDeadline(timeoutMs, signal, (look) => this.installedVersion(look))
    return installed !== undefined && compareVersions(installed, version) >= 0
  }

  /** Why it would not ask before it uses a tool. */
  async obstacleToAsking({ canAsk, oldestKnown }: WarmDriver, signal: AbortSignal): Promise<Failed | undefined> {
    const { label } = this.traits
    if (!canAsk) return refusedAsking(label)
    return (await this.isInstalledSince(oldestKnown, VERSION_TIMEOUT_MS, signal))
      ? undefined
      : refusedVersionToAsk(label, oldestKnown)
  }

  /** A turn of the session ran in this directory. */
  remember(sessionId: string | undefined, directory: string): void {
    this.#directories.remember(sessionId, directory)
  }

  /** How the CLI is kept alive, where it can be. */
  warmDriver(): WarmDriver | undefined {
    return undefined
  }

  /**
   * Starts a process on this machine that takes turns like this one. Its files are gone with it.
   *
   * Contract: rejects when it cannot be prepared; that it could not be started is how it `ended`.
   */
  async openWarm(driver: WarmDriver, request: AgentRequest, signal: AbortSignal): Promise<WarmProcess> {
    const { limits, scrubber } = this.dependencies
    const turn = this.toTurn(request)
    this.#warnAboutIgnoredOptions(request, turn)
    const place = this.#localPlace(turn)
    try {
      const invocation = await driver.launch(turn, place, signal)
      const live = startWarmProcess({
        process: this.#process(turn, invocation, runVariables(request, place.files)),
        connect: (send) => driver.connect(send, place),
        ...(driver.shorten && { shorten: driver.shorten }),
        limits,
        scrubber,
      })
      void live.ended.then(() => this.#leave(place))
      return live
    } catch (error) {
      this.#leave(place)
      throw error
    }
  }

  /** One turn in a process that `openWarm` started. */
  startWarm(process: WarmProcess, request: AgentRequest, turn = this.toTurn(request, true), spentMs = 0): WarmRun {
    const { label, failureSigns } = this.traits
    const { now, elapsed, limits, scrubber } = this.dependencies
    return startWarmRun(process, {
      label,
      failureSigns,
      scrubber,
      turn,
      ...(request.approve && { approve: request.approve }),
      limits,
      now,
      elapsed,
      ...timeLimits(request, this.config),
      spentMs,
      ...(request.onSteerable && { onSteerable: request.onSteerable }),
    })
  }

  async validate(command?: ExecutableChoice): Promise<boolean> {
    return this.#findExecutable(command) !== undefined
  }

  async probe(command?: ExecutableChoice): Promise<AgentProbe> {
    const path = this.#findExecutable(command)
    if (path === undefined) return { isFound: false, problems: [this.#notFound(command)] }
    return withDeadline(VERSION_TIMEOUT_MS, undefined, (look) => this.#probe(path, look, command))
  }

  async #probe(path: string, signal: AbortSignal, command?: ExecutableChoice): Promise<AgentProbe> {
    const { label, versions } = this.traits
    const version = await this.installedVersion(signal, command)
    const nodeProblem = await problemOfNode(label, path, this.#agentEnvironment(), signal)
    // Where it cannot run, it is no wonder that it does not tell its version.
    const versionProblems = version === undefined && nodeProblem ? [] : problemsOfVersion(version, versions)
    const problems = [...(nodeProblem ? [nodeProblem] : []), ...versionProblems, ...this.problems()]
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
    const known = this.#knownVersion(path)
    if (known) return known.text
    const { mtimeMs } = statSync(path)
    const { owner } = this.dependencies
    const environment = { ...this.#agentEnvironment(), ...(owner && { [OWNER_MARKER]: owner.id }) }
    const text = await readVersion(path, environment, signal)
    if (!signal.aborted) this.#versions.set(path, { mtimeMs, text })
    return text
  }

  /** Undefined where it was not asked since the file has changed. */
  #knownVersion(path: string): { text: string | undefined } | undefined {
    const known = this.#versions.get(path)
    return known?.mtimeMs === statSync(path).mtimeMs ? known : undefined
  }

  /** `variables` are those of the run. */
  protected processEnvironment(
    { defaults, environment }: Pick<Invocation, 'defaults' | 'environment'>,
    turn: Pick<Turn, 'isUntrusted' | 'workingDir'>,
    variables: Record<string, string>,
  ): Record<string, string> {
    return { ...defaults, ...this.#agentEnvironment(), ...setByRun(environment, turn, variables) }
  }

  /** Contract: throws with what to do where it is not there. */
  protected requireExecutable(): string {
    const path = this.#findExecutable()
    if (path === undefined) throw new GatewayError('backend_missing', this.#notFound())
    return path
  }

  /** What in this environment will keep the agent from working, beside its version. */
  protected problems(): string[] {
    return []
  }

  /** What in an untrusted directory this CLI would obey whatever it is told; a sentence with what to do. */
  protected untrustedObstacle(_turn: Turn): string | undefined {
    return undefined
  }

  /**
   * Why nothing is started in an untrusted directory: a sentence with what to do.
   *
   * How a project is held back is known of the versions that were tried, and of no older one. What is not seen before
   * the signal keeps the agent from it.
   */
  async obstacleIn(turn: Turn, signal: AbortSignal): Promise<string | undefined> {
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

  /** Contract: throws `request_invalid`. */
  toTurn(request: AgentRequest, isWarm = false): Turn {
    const command = request.command && this.#command(request.command, request.model)
    // Then the configured one is not meant.
    const isModelNamed = namesOption(command?.args ?? [], this.traits.modelOption.names)
    const asked = isModelNamed ? { ...request, model: request.model ?? '' } : request
    return {
      ...turnOf(asked, this.config, this.#directories),
      prompt: this.neutralise(request.prompt, isWarm),
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
  #refusal(turn: Turn, pod: PodAddress | undefined): Failed | undefined {
    const refused = refusedInput(turn, this.traits)
    if (refused) return refused
    if (pod) return refusedPod(turn, this.dependencies)
    const withoutDirectory = refusedDirectory(turn.workingDir)
    if (withoutDirectory) return withoutDirectory
    if (this.#findExecutable(turn.command) !== undefined) return undefined
    return { reason: 'spawn', message: this.#notFound(turn.command), isLasting: true }
  }

  async #place(turn: Turn, pod: PodAddress | undefined, runId: string, signal: AbortSignal): Promise<Place> {
    const { pods } = this.dependencies
    if (pod && pods) return podPlace(await pods.open(pod, signal), runId, this.#executableIn(turn, true))
    return this.#localPlace(turn)
  }

  #localPlace(turn: Turn): Place {
    const { environment, owner } = this.dependencies
    return localPlace({
      operator: environment,
      environment: this.#agentEnvironment(),
      ownerId: owner?.id,
      version: (signal) => this.installedVersion(signal, turn.command),
    })
  }

  /** In a pod by its own name: where it is on this machine says nothing there. */
  #executableIn({ command }: Turn, isPod: boolean): string {
    if (isPod) return command?.executable ?? this.name()
    return this.#findExecutable(command) ?? this.config.cliPath
  }

  #start(
    runId: string,
    turn: Turn,
    place: Place,
    invocation: Invocation,
    watch: TimeLimits,
    variables: Record<string, string>,
  ): Run {
    const { label, failureSigns, stopSignal } = this.traits
    const { now, elapsed, limits, owner, scrubber } = this.dependencies
    const { args, defaults = {}, environment, expects } = invocation
    return startOneShot({
      label,
      failureSigns,
      start: (listeners) =>
        place.start({
          executable: this.#executableIn(turn, place.isPod),
          args,
          stdin: turn.prompt,
          directory: turn.workingDir,
          defaults,
          environment: setByRun(environment, turn, variables),
          runId,
          ...(owner && { owner }),
          ...(expects && { expects: expects.file }),
          stopSignal,
          ...listeners,
        }),
      translation: (emit) =>
        turn.command?.format === 'text' ? new PlainTranslation(emit, limits.lineBytes) : this.translation(emit, turn),
      ...watch,
      limits,
      now,
      elapsed,
      scrubber,
      unlessExpected: expects?.otherwise,
    })
  }

  #process(turn: Turn, invocation: Invocation, variables: Record<string, string>): WarmProcessPlan['process'] {
    const { owner } = this.dependencies
    return {
      executable: this.#executableIn(turn, false),
      args: invocation.args,
      cwd: turn.workingDir,
      environment: this.processEnvironment(invocation, turn, variables),
      runId: randomUUID(),
      ...(owner && { owner }),
      stopSignal: this.traits.stopSignal,
    }
  }

  #refused(failed: Failed): EventQueue {
    return refusedRun(failed, this.dependencies.now)
  }

  /** Why it could not be started. */
  unprepared(error: unknown): Failed {
    if (error instanceof PodError) return failureOfPod(error)
    return { reason: 'spawn', message: `${this.traits.label} CLI could not be prepared: ${messageOf(error)}` }
  }

  #leave(place: Place): void {
    try {
      place.leave()
    } catch (error) {
      this.dependencies.log.warn('run.files-left', { path: place.files.path, error: messageOf(error) })
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

  #warnAboutIgnoredOptions(request: AgentRequest, { maxTurns, allowedTools }: Turn): void {
    const { supportsMaxTurns, supportsToolControl } = this.traits
    const isLimited = maxTurns > 0 && (request.maxTurns !== undefined || this.config.isMaxTurnsChosen !== false)
    if (!supportsMaxTurns && isLimited) this.#warnOnce('maxTurns', maxTurns)
    if (!supportsToolControl && allowedTools.length > 0) this.#warnOnce('allowedTools', allowedTools)
  }

  #warnOnce(option: string, value: unknown): void {
    if (this.#warned.has(option)) return
    this.#warned.add(option)
    this.dependencies.log.warn('backend.option-ignored', { backend: this.name(), option, value })
  }
}

/** Which executable is meant; left out, the configured one. */
export type ExecutableChoice = Pick<AgentCommand, 'executable'>

function runVariables({ environment, secretFiles = [] }: AgentRequest, files: RunFiles): Record<string, string> {
  const paths = secretFiles.map(({ variable, content }) => [variable, files.write(`secret-${variable}`, content)])
  return { ...environment, ...Object.fromEntries(paths) }
}

/** What a run sets, whatever its place says. */
function setByRun(
  environment: Invocation['environment'],
  { isUntrusted, workingDir }: Pick<Turn, 'isUntrusted' | 'workingDir'>,
  variables: Record<string, string>,
): Record<string, string> {
  return {
    ...variables,
    ...(isUntrusted && UNTRUSTED_GIT),
    // OpenCode trusts it more than its real working directory.
    PWD: workingDir,
    ...environment,
  }
}
