// One agent as installed and configured here. Every process lifetime consults it before a turn.

import { existsSync, statSync } from 'node:fs'
import { agentEnvironment } from '../../core/agent-environment.js'
import { withDeadline } from '../../core/async.js'
import { isAtLeast } from '../../core/versions.js'
import { GatewayError, messageOf } from '../../errors.js'
import type { PodAddress } from '../../kubernetes/types.js'
import { DEMO_AGENT } from '../../core/demo-agent.js'
import { findExecutable } from '../../core/paths.js'
import { OWNER_MARKER } from '../../processes/process-owner.js'
import type { BackendDependencies, CliTraits, Invocation, WarmOptions } from './cli-backend.js'
import { namesOption, withoutOptions } from './command-args.js'
import { LoginPlace, type LoginReading } from './login.js'
import { problemOfNode, problemsOfVersion, readVersion } from './version.js'
import { localPlace, type Place, podPlace, type RunFiles } from './place.js'
import { refusedDirectory, refusedInput, refusedPod, refusedVariable } from './refusals.js'
import type { Failed } from './failures.js'
import type { Translation } from './translation.js'
import { type Turn, turnOf } from './turn.js'
import { gitObstacle, UNTRUSTED_GIT } from './untrusted-git.js'
import type { WarmDriver } from './warm/types.js'
import type {
  AgentCommand,
  AgentEventBody,
  AgentMode,
  AgentProbe,
  AgentRequest,
  BackendAdapterConfig,
  BackendName,
  ProbeOptions,
} from '../types.js'

/** Time to ask a CLI for its version. Generous: without the version, a turn may get the wrong arguments. */
export const VERSION_TIMEOUT_MS = 10_000
/** OpenCode takes several seconds on a slow machine. */
const MODELS_TIMEOUT_MS = 30_000
/** A login or an update may change the models. */
const MODELS_CACHE_MS = 10 * 60_000
/** A longer list would not help anyone choose. */
const MAX_MODELS = 200

/** Which executable to use; defaults to the configured one. */
export type ExecutableChoice = Pick<AgentCommand, 'executable'>

/** What a backend knows about its CLI; see `CliBackend` for each member. */
export interface CliDefinition {
  name: BackendName
  traits: CliTraits
  invocation(turn: Turn, place: Place, signal: AbortSignal): Invocation | Promise<Invocation>
  translation(emit: (event: AgentEventBody) => void, turn: Turn): Translation
  neutralise(prompt: string, isWarm: boolean): string
  problems(): string[]
  login(place: LoginPlace): Promise<LoginReading>
  listModels(place: LoginPlace): Promise<string[]>
  untrustedObstacle(turn: Turn): string | undefined
  driver: WarmDriver | undefined
}

export interface WarmAgent extends WarmOptions {
  driver: WarmDriver
}

export class AgentCli {
  /** Absent if every turn starts a new process. */
  readonly warm: WarmAgent | undefined
  readonly #warned = new Set<string>()
  /** Most CLIs find a session only in the directory where it began. */
  readonly #directories = new SessionNotes<string>()
  /** Versions of executables, by path. */
  readonly #versions = new Map<string, { mtimeMs: number; text: string | undefined }>()
  #models: { fingerprint: string; until: number; models: Promise<string[]> } | undefined
  /** The last result of `models`. */
  knownModels: string[] = []

  constructor(
    readonly definition: CliDefinition,
    readonly config: BackendAdapterConfig,
    readonly dependencies: BackendDependencies,
  ) {
    const { driver } = definition
    this.warm = dependencies.warm && driver && { ...dependencies.warm, driver }
  }

  get #traits(): CliTraits {
    return this.definition.traits
  }

  find({ executable = this.config.cliPath }: ExecutableChoice = {}): string | undefined {
    return findExecutable(executable, this.dependencies.environment['PATH'] ?? '')
  }

  /** Contract: throws, with advice, if it is not installed. */
  require(): string {
    const path = this.find()
    if (path === undefined) throw new GatewayError('backend_missing', this.#notFound())
    return path
  }

  /** In a pod, the bare name: a path on this machine means nothing there. */
  executableIn({ isPod }: Place, { command }: Turn): string {
    if (isPod) return command?.executable ?? this.definition.name
    return this.find(command) ?? this.config.cliPath
  }

  /** Changes whenever the executable does; empty if there is none. */
  fingerprint(): string {
    const path = this.find()
    if (path === undefined) return ''
    const { ino, mtimeMs, size } = statSync(path)
    return JSON.stringify([path, ino, mtimeMs, size])
  }

  /** Cached until the CLI's file changes: it may be updated while we run. */
  async version(signal: AbortSignal, command?: ExecutableChoice): Promise<string | undefined> {
    const path = this.find(command)
    if (path === undefined) return undefined
    const { mtimeMs } = statSync(path)
    const known = this.#versions.get(path)
    if (known?.mtimeMs === mtimeMs) return known.text
    const text = await readVersion(path, this.#markedEnvironment(), signal)
    if (!signal.aborted) this.#versions.set(path, { mtimeMs, text })
    return text
  }

  async probe({ storedVariables = [], ...command }: ProbeOptions = {}): Promise<AgentProbe> {
    const path = this.find(command)
    if (path === undefined)
      return { isFound: false, problems: [this.#notFound(command)], ...this.#installation(command) }
    return withDeadline(VERSION_TIMEOUT_MS, undefined, async (signal) => {
      const { label, versions } = this.#traits
      const isDemo = path === DEMO_AGENT
      const login = isDemo ? undefined : this.#login(path, storedVariables, signal)
      const version = await this.version(signal, command)
      const nodeProblem = await problemOfNode(label, path, this.#environment(), signal)
      // If it cannot run at all, a missing version is not a separate problem.
      const versionProblems = version === undefined && nodeProblem ? [] : problemsOfVersion(version, versions)
      const ownProblems = isDemo ? [] : this.definition.problems()
      const problems = [...(nodeProblem ? [nodeProblem] : []), ...versionProblems, ...ownProblems]
      const isOld = version !== undefined && versionProblems.length > 0
      const newest = isOld ? this.#installation(command) : {}
      return {
        isFound: true,
        path,
        ...(version && { version }),
        problems,
        ...newest,
        ...(isDemo && { isDemo }),
        ...(await login),
      }
    })
  }

  async #login(executable: string, storedVariables: readonly string[], signal: AbortSignal): Promise<LoginReading> {
    const { model } = this.config
    const reading = await this.definition.login(this.#loginPlace(executable, storedVariables, signal))
    return model === undefined ? reading : { ...reading, model }
  }

  #loginPlace(executable: string, storedVariables: readonly string[], signal: AbortSignal): LoginPlace {
    const { workingDir } = this.config
    const environment = this.#markedEnvironment()
    return new LoginPlace({ executable, environment, storedVariables, workingDir, signal })
  }

  /** Cached, since asking starts a process. Contract: never rejects. */
  models(): Promise<string[]> {
    const { now } = this.dependencies
    const fingerprint = this.fingerprint()
    const known = this.#models
    if (known && known.fingerprint === fingerprint && known.until > now()) return known.models
    const models = this.#listModels().then(
      (found) => (this.knownModels = found),
      () => {
        // The next attempt may work.
        this.#models = undefined
        return this.knownModels
      },
    )
    this.#models = { fingerprint, until: now() + MODELS_CACHE_MS, models }
    return models
  }

  async #listModels(): Promise<string[]> {
    const path = this.find()
    if (path === undefined) return []
    const list = (signal: AbortSignal): Promise<string[]> =>
      this.definition.listModels(this.#loginPlace(path, [], signal))
    return (await withDeadline(MODELS_TIMEOUT_MS, undefined, list)).slice(0, MAX_MODELS)
  }

  /** None for a configured path, where installing the package would put nothing. */
  #installation({ executable = this.config.cliPath }: ExecutableChoice): Pick<AgentProbe, 'install'> {
    return executable === this.definition.name ? { install: `npm install -g ${this.#traits.packageName}` } : {}
  }

  /** `isWarm` means that a warm process takes the turn. Contract: throws `request_invalid`. */
  turnOf(request: AgentRequest, isWarm = false): Turn {
    const command = request.command && this.#command(request.command, request.model)
    // A model named by the template overrides the configured one.
    const isModelNamed = command !== undefined && namesOption(command.args, this.#traits.modelOption.names)
    const asked = isModelNamed ? { ...request, model: request.model ?? '' } : request
    return {
      ...turnOf(asked, this.config, this.#directories),
      prompt: request.isCommand ? request.prompt : this.definition.neutralise(request.prompt, isWarm),
      ...(command && { command }),
    }
  }

  /** Remembers that the session runs in this directory. */
  remember(sessionId: string | undefined, directory: string): void {
    this.#directories.set(sessionId, directory)
  }

  /** Why this request is refused before anything is started. */
  refusalOf(request: AgentRequest, turn: Turn): Failed | undefined {
    return (
      this.#refusedCommand(request, turn) ??
      refusedInput(turn, this.#traits) ??
      this.#refusedPlace(turn, request.pod) ??
      refusedVariable(request)
    )
  }

  get supportsCompact(): boolean {
    return this.#traits.supportsCompact || this.compactsWarm
  }

  /** Whether only a warm process can compact a session. */
  get compactsWarm(): boolean {
    return this.warm?.driver.canCompact === true
  }

  #refusedCommand({ isCommand = false }: AgentRequest, { compaction }: Turn): Failed | undefined {
    const { label, supportsCommands } = this.#traits
    if (!isCommand || (compaction ? this.supportsCompact : supportsCommands)) return undefined
    const what = compaction ? '/compact' : 'commands in messages'
    return { reason: 'refused', message: `${label} does not support ${what}.`, isLasting: true }
  }

  /**
   * Why nothing may be started in this untrusted directory: a sentence with advice.
   *
   * Only tested versions are known to ignore a project's settings; older ones are refused. So is a project that cannot be
   * checked in time.
   */
  async obstacleIn(turn: Turn, signal: AbortSignal): Promise<string | undefined> {
    const { label, versions } = this.#traits
    const version = await this.version(signal, turn.command)
    if (version === undefined) {
      const executable = turn.command?.executable ?? this.config.cliPath
      return `The version of ${label} could not be read, so it is not started in an untrusted project. Check that \`${executable} --version\` works.`
    }
    if (!isAtLeast(version, versions.oldestKnown)) {
      return `${label} ${version} is too old for an untrusted project. Update it to ${versions.oldestKnown} or newer.`
    }
    const own = this.definition.untrustedObstacle(turn)
    const versionOf = (git: string): Promise<string | undefined> => this.version(signal, { executable: git })
    return own ?? (await gitObstacle(turn.workingDir, this.#environment(), signal, versionOf))
  }

  async place(turn: Turn, pod: PodAddress | undefined, runId: string, signal: AbortSignal): Promise<Place> {
    const { pods } = this.dependencies
    if (!pod || !pods) return this.localPlace(turn)
    return podPlace(await pods.open(pod, signal), runId, turn.command?.executable ?? this.definition.name)
  }

  localPlace(turn: Turn): Place {
    const { environment, owner } = this.dependencies
    return localPlace({
      operator: environment,
      environment: this.#environment(),
      ownerId: owner?.id,
      version: (signal) => this.version(signal, turn.command),
    })
  }

  leave(place: Place): void {
    try {
      place.leave()
    } catch (error) {
      this.dependencies.log.warn('run.files-left', { path: place.files.path, error: messageOf(error) })
    }
  }

  /** The environment of a process on this machine. `variables` are those of the run. */
  environmentOf(
    { defaults, environment }: Pick<Invocation, 'defaults' | 'environment'>,
    turn: Pick<Turn, 'isUntrusted' | 'workingDir'>,
    variables: Record<string, string>,
  ): Record<string, string> {
    return { ...defaults, ...this.#environment(), ...setByRun(environment, turn, variables) }
  }

  warnAboutIgnoredOptions(request: AgentRequest, { maxTurns, allowedTools }: Turn): void {
    const { supportsMaxTurns, supportsToolControl } = this.#traits
    const isLimited = maxTurns > 0 && (request.maxTurns !== undefined || this.config.isMaxTurnsChosen !== false)
    if (!supportsMaxTurns && isLimited) this.#warnOnce('maxTurns', maxTurns)
    if (!supportsToolControl && allowedTools.length > 0) this.#warnOnce('allowedTools', allowedTools)
  }

  #warnOnce(option: string, value: unknown): void {
    if (this.#warned.has(option)) return
    this.#warned.add(option)
    this.dependencies.log.warn('backend.option-ignored', { backend: this.definition.name, option, value })
  }

  #refusedPlace(turn: Turn, pod: PodAddress | undefined): Failed | undefined {
    if (pod) return refusedPod(turn, this.dependencies)
    const withoutDirectory = refusedDirectory(turn.workingDir)
    if (withoutDirectory) return withoutDirectory
    if (this.find(turn.command) !== undefined) return undefined
    return { reason: 'spawn', message: this.#notFound(turn.command), isLasting: true }
  }

  /** Strips options that would appear on the command line twice. The user's choice of model beats the template's. */
  #command(command: AgentCommand, model: string | undefined): AgentCommand {
    const { subcommand, ownOptions, modelOption } = this.#traits
    const { args, template = args } = command
    const from = template[0] !== undefined && template[0] === subcommand ? 1 : 0
    const options = model ? [...ownOptions, modelOption] : ownOptions
    // Substituted text can neither create nor remove an option, so `args` and `template` are stripped alike.
    const strip = (elements: string[]): string[] => withoutOptions(elements.slice(from), options)
    return { ...command, args: strip(args), template: strip(template) }
  }

  /** For processes outside any run: if the gateway is killed, its guardian ends them. */
  #markedEnvironment(): Record<string, string> {
    const { owner } = this.dependencies
    return { ...this.#environment(), ...(owner && { [OWNER_MARKER]: owner.id }) }
  }

  #environment(): Record<string, string> {
    const { environment, passVariables } = this.dependencies
    return agentEnvironment(environment, [...this.#traits.variables, ...passVariables])
  }

  #notFound({ executable }: ExecutableChoice = {}): string {
    const { label, packageName } = this.#traits
    const cliPath = executable ?? this.config.cliPath
    const problem = existsSync(cliPath) ? 'is not an executable file' : 'was not found'
    const install = `Install it (npm install -g ${packageName}) and make sure it is on the PATH`
    const orPath =
      executable === undefined
        ? `or, if AGENT_BACKEND is ${this.definition.name}, set BACKEND_CLI_PATH to its path`
        : 'or begin inbound.reply.command with its path'
    return `${label} CLI "${cliPath}" ${problem}. ${install}, ${orPath}.`
  }
}

const MAX_SESSIONS = 10_000

/** A note about each of the latest sessions. */
export class SessionNotes<Note> {
  readonly #notes = new Map<string, Note>()

  get(sessionId: string | undefined): Note | undefined {
    return this.#notes.get(sessionId ?? '')
  }

  set(sessionId: string | undefined, note: Note): void {
    if (sessionId === undefined) return
    this.#notes.set(sessionId, note)
    const [oldest] = this.#notes.keys()
    if (this.#notes.size > MAX_SESSIONS && oldest !== undefined) this.#notes.delete(oldest)
  }

  delete(sessionId: string | undefined): void {
    this.#notes.delete(sessionId ?? '')
  }
}

/** The variables of a run, including the paths of its secret files, which this writes. */
export function runVariables(
  { environment, secretFiles = [] }: Pick<AgentRequest, 'environment' | 'secretFiles'>,
  files: Pick<RunFiles, 'write'>,
): Record<string, string> {
  const paths = secretFiles.map(({ variable, content }) => [variable, files.write(`secret-${variable}`, content)])
  return { ...environment, ...Object.fromEntries(paths) }
}

/** Variables that a run always sets, overriding those of its place. */
export function setByRun(
  environment: Invocation['environment'],
  { isUntrusted, workingDir }: Pick<Turn, 'isUntrusted' | 'workingDir'>,
  variables: Record<string, string>,
): Record<string, string> {
  return {
    ...variables,
    ...(isUntrusted && UNTRUSTED_GIT),
    // OpenCode prefers it to its real working directory.
    PWD: workingDir,
    ...environment,
  }
}

const BACKING_OFF =
  'Each turn starts a new process for now: the warm agent did not become ready. It will be tried again.'

interface ModeInputs {
  mode: AgentMode
  /** The oldest version known to work as a warm process. */
  oldestKnown: string
  /** Whether a warm process recently failed to start. */
  isBackingOff?: boolean
}

interface TurnInputs extends ModeInputs {
  /** The turn needs what only a warm process can do, such as ask for approval. */
  mustBeWarm: boolean
  /** Only a one-shot command line can do what the request asks for. */
  needsCommandLine: boolean
  /** Contract: called only if it matters. */
  version(): Promise<string | undefined>
}

/**
 * Whether a turn is taken by a warm process, as far as version and settings say. A pod, an untrusted project or a full pool
 * may still overrule it.
 */
export async function isWarmTurn({ mustBeWarm, needsCommandLine, version, ...inputs }: TurnInputs): Promise<boolean> {
  if (needsCommandLine) return false
  if (mustBeWarm) return true
  const matters = inputs.mode === 'auto' && !inputs.isBackingOff
  return modeInUse(inputs, matters ? await version() : undefined).mode === 'live'
}

/** What a configured mode resolves to with this version. */
export function modeInUse(
  { mode, oldestKnown, isBackingOff = false }: ModeInputs,
  version: string | undefined,
): Pick<AgentProbe, 'mode' | 'whyNotLive'> {
  if (mode === 'oneshot') return { mode }
  if (mode === 'auto' && !isAtLeast(version, oldestKnown)) {
    const what = version === undefined ? 'its version is unknown' : `version ${version} is older than ${oldestKnown}`
    return { mode: 'oneshot', whyNotLive: `Each turn starts a new process: ${what}.` }
  }
  return isBackingOff ? { mode: 'oneshot', whyNotLive: BACKING_OFF } : { mode: 'live' }
}
