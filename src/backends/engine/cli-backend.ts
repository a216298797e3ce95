// What all agents have in common when driven by command line. A subclass defines how its CLI is started (`invocation`)
// and what its output means (`translation`).

import { createScrubber, type Scrubber } from '../../credentials/scrubber.js'
import { operatorEnvironment } from '../../core/environment.js'
import type { Pods } from '../../kubernetes/types.js'
import { createLog, type Log } from '../../log.js'
import { OUTPUT_LIMITS, type OutputLimits } from '../../processes/output.js'
import type { ProcessOwner } from '../../processes/process-owner.js'
import { AgentCli, type ExecutableChoice, modeInUse } from './agent-cli.js'
import type { CliOption } from './command-args.js'
import { executeTurn } from './execute-turn.js'
import type { FailureSign } from './failures.js'
import type { LoginPlace, LoginReading } from './login.js'
import { OneShot } from './one-shot.js'
import type { Place } from './place.js'
import { PlainTranslation } from './plain-translation.js'
import type { InputRules } from './refusals.js'
import { takeTurn, type Turn } from './turn.js'
import { type Figures, foldOutput, type Translation } from './translation.js'
import type { VersionKnowledge } from './version.js'
import type { WarmDriver } from './warm/types.js'
import type { WarmPool } from './warm/warm-pool.js'
import { takeWarmTurn } from './warm/warm-turn.js'
import type {
  AgentBackend,
  AgentCapabilities,
  AgentCommand,
  AgentEvent,
  AgentEventBody,
  AgentMode,
  AgentProbe,
  AgentRequest,
  AgentResult,
  BackendAdapterConfig,
  BackendEventResult,
  BackendName,
  ProbeOptions,
} from '../types.js'

export interface BackendDependencies {
  /** The operator's environment; filtered before an agent sees it. */
  environment: NodeJS.ProcessEnv
  /** Additional variables to pass on, as names or `PREFIX_*`. */
  passVariables: readonly string[]
  log: Log
  now: () => number
  /** Monotonic, for durations: unlike `now`, it does not jump when the clock is set. */
  elapsed: () => number
  limits: OutputLimits
  /** Without one, nothing ends the agents of a gateway that was killed. */
  owner?: ProcessOwner
  /** Without it, nothing runs in pods. */
  pods?: Pods
  /** Without it, every turn starts a new process. */
  warm?: WarmOptions
  /** Text is scrubbed before it is truncated: later, a truncated secret would not be recognised. */
  scrubber: Scrubber
}

export interface WarmOptions {
  /** The default for requests that name none. */
  mode: AgentMode
  /** Shared by all agents. */
  pool: WarmPool
}

export function completeDependencies(given: Partial<BackendDependencies>): BackendDependencies {
  return {
    ...given,
    environment: given.environment ?? operatorEnvironment(),
    passVariables: given.passVariables ?? [],
    log: given.log ?? createLog(),
    now: given.now ?? Date.now,
    elapsed: given.elapsed ?? given.now ?? (() => performance.now()),
    limits: given.limits ?? OUTPUT_LIMITS,
    scrubber: given.scrubber ?? createScrubber(),
  }
}

/** Fixed properties of one CLI. */
export interface CliTraits extends InputRules {
  /** The npm package that installs it. */
  packageName: string
  /** The agent's own environment variables, as names or `PREFIX_*`. */
  variables: readonly string[]
  /** The signal it cleans up best on. */
  stopSignal: NodeJS.Signals
  /** Recognise failures that the CLI prints on stderr rather than reporting in its wire format. */
  failureSigns: readonly FailureSign[]
  supportsMaxTurns: boolean
  /** A turn stopped at the turn limit is dropped from the session, or damages it. */
  forgetsPausedTurns?: true
  supportsToolControl: boolean
  supportsStreaming: boolean
  supportsCommands: boolean
  /** Whether `/compact` is one of them. */
  supportsCompact: boolean
  versions: VersionKnowledge
  /** The first word of its command line, if it has several commands. */
  subcommand?: string
  /** Options that a command template cannot change: output format, session and directory. */
  ownOptions: readonly CliOption[]
  modelOption: CliOption
}

/** How a turn is actually started. The prompt travels on stdin. */
export interface Invocation {
  args: string[]
  /** Overrides the environment of the place. */
  environment?: Record<string, string>
  /** Overridden by the environment of the place. */
  defaults?: Record<string, string>
  /** A file the CLI leaves in the run directory if all goes as intended, and the notice to send if it is missing. */
  expects?: { file: string; otherwise: string }
}

/** The result of reading a complete output. */
export interface ReadOutput extends Figures, Pick<AgentResult, 'isError' | 'sessionId'> {
  text?: string
  model?: string
}

export abstract class CliBackend implements AgentBackend {
  protected abstract readonly traits: CliTraits
  protected readonly dependencies: BackendDependencies
  #cli: AgentCli | undefined
  /** What `auto` resolved to at the last probe. */
  #probedMode: AgentProbe['mode']

  constructor(
    protected readonly config: BackendAdapterConfig,
    dependencies: Partial<BackendDependencies> = {},
  ) {
    this.dependencies = completeDependencies(dependencies)
  }

  abstract name(): BackendName

  /**
   * A fixed contract for callers; what is actually spawned is `invocation`.
   *
   * Contract: pure and trusting. It never validates, alters or throws; options come before prompt and file names.
   */
  abstract buildArgs(prompt: string, systemPromptOrFile: string, sessionId?: string): string[]

  /** How the current CLI is started. Contract: writes only files of the place, which are removed after the run. */
  protected abstract invocation(turn: Turn, place: Place, signal: AbortSignal): Invocation | Promise<Invocation>

  /** Adds the space or escape that keeps this CLI from executing or expanding parts of the prompt. */
  protected neutralise(prompt: string, _isWarm: boolean): string {
    return prompt
  }

  /** What in this environment will keep the agent from working, apart from its version. */
  protected problems(): string[] {
    return []
  }

  /** How the CLI is logged in, and its default model. Contract: never rejects. */
  protected abstract login(place: LoginPlace): Promise<LoginReading>

  /** The models the CLI lists. Contract: sends nothing to a model; empty if it lists none. */
  protected async listModels(_place: LoginPlace): Promise<string[]> {
    return []
  }

  /** What this CLI would obey in an untrusted directory regardless of its options: a sentence with advice. */
  protected untrustedObstacle(_turn: Turn): string | undefined {
    return undefined
  }

  /** How the CLI takes many turns in one process, if it can. */
  protected warmDriver(): WarmDriver | undefined {
    return undefined
  }

  /** Contract: a fresh translation for one turn or, without a turn, for one complete output. */
  protected abstract translation(emit: (event: AgentEventBody) => void, turn?: Turn): Translation

  /** Contract: pure; the same translation as in `run`, over a complete output. */
  parseOutput(stdout: string): BackendEventResult {
    return foldOutput(
      stdout,
      this.translation(() => {}),
      this.traits.failureSigns,
    )
  }

  /** As `parseOutput`, with everything the CLI reported. Has no text if there was no final word. */
  readOutput(stdout: string, format?: AgentCommand['format']): ReadOutput {
    let model: string | undefined
    const emit = (event: AgentEventBody): void => {
      if (event.type === 'started') model = event.model
    }
    const plain = format === 'text' ? new PlainTranslation(emit, Infinity) : undefined
    const translation = plain ?? this.translation(emit)
    const { isError, responseText, sessionId } = foldOutput(stdout, translation, this.traits.failureSigns, plain)
    return {
      isError,
      ...(translation.verdict && responseText !== undefined && { text: responseText }),
      ...(sessionId !== undefined && { sessionId }),
      ...(model !== undefined && { model }),
      ...translation.figures,
    }
  }

  execute(...call: Parameters<AgentBackend['execute']>): Promise<BackendEventResult> {
    return executeTurn(this, this.dependencies.log, ...call)
  }

  run(request: AgentRequest, signal: AbortSignal): AsyncGenerator<AgentEvent, void, undefined> {
    const { cli, config, dependencies } = this
    // Warm processes run on this machine only.
    if (cli.warm && !request.pod) return takeWarmTurn(cli, cli.warm, request, signal)
    return takeTurn({ request, signal, config, dependencies }, new OneShot(cli, request))
  }

  async validate(command?: ExecutableChoice): Promise<boolean> {
    return this.cli.find(command) !== undefined
  }

  async probe(options: ProbeOptions = {}): Promise<AgentProbe> {
    const probe = await this.cli.probe(options)
    const { warm } = this.cli
    if (!probe.isFound || !warm || options.executable !== undefined) return probe
    const { mode, pool, driver } = warm
    const isBackingOff = pool.backoffs.remainingMs(this.cli.fingerprint()) > 0
    const use = modeInUse({ mode, oldestKnown: driver.oldestKnown, isBackingOff }, probe.version)
    this.#probedMode = use.mode
    return { ...probe, ...use }
  }

  models(): Promise<string[]> {
    return this.cli.models()
  }

  capabilities(): AgentCapabilities {
    const { traits, config } = this
    const { warm } = this.cli
    const mode = warm ? (this.#probedMode ?? warm.mode) : 'oneshot'
    return {
      provider: this.name(),
      supportsSessionContinuation: true,
      supportsModelSelection: true,
      supportsToolControl: traits.supportsToolControl,
      supportsMaxTurns: traits.supportsMaxTurns,
      remembersPausedTurns: traits.forgetsPausedTurns !== true,
      supportsCommands: traits.supportsCommands,
      supportsCompact: this.cli.supportsCompact,
      // Every warm agent streams, even Codex, whose command line prints whole messages.
      supportsStreaming: traits.supportsStreaming || mode !== 'oneshot',
      supportedModels: this.cli.knownModels,
      ...(config.model !== undefined && { defaultModel: config.model }),
      maxPromptLength: traits.promptLimit?.size ?? 0,
    }
  }

  /** Public for callers that drive the same CLI in another way. */
  get cli(): AgentCli {
    this.#cli ??= new AgentCli(
      {
        name: this.name(),
        traits: this.traits,
        invocation: (turn, place, signal) => this.invocation(turn, place, signal),
        translation: (emit, turn) => this.translation(emit, turn),
        neutralise: (prompt, isWarm) => this.neutralise(prompt, isWarm),
        problems: () => this.problems(),
        login: (place) => this.login(place),
        listModels: (place) => this.listModels(place),
        untrustedObstacle: (turn) => this.untrustedObstacle(turn),
        driver: this.warmDriver(),
      },
      this.config,
      this.dependencies,
    )
    return this.#cli
  }
}
