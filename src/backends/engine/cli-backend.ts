// Everything about driving a command line that is the same for all five agents. A subclass says how its CLI is
// started (`invocation`) and what its output means (`translation`).

import { AgentCli, type ExecutableChoice } from './agent-cli.js'
import { type BackendDependencies, completeDependencies } from './backend-dependencies.js'
import type { CliOption } from './command-args.js'
import { executeTurn } from './execute-turn.js'
import type { FailureSign } from './failures.js'
import { modeInUse } from './mode.js'
import { OneShot } from './one-shot.js'
import type { Place } from './place.js'
import { PlainTranslation } from './plain-translation.js'
import type { InputRules } from './refusals.js'
import { takeTurn } from './take-turn.js'
import { foldOutput, type Translation } from './translation.js'
import type { Turn } from './turn.js'
import type { VersionKnowledge } from './version.js'
import type { WarmDriver } from './warm/types.js'
import { takeWarmTurn } from './warm/warm-turn.js'
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
  #cli: AgentCli | undefined
  /** What `auto` came to when the installed version was last looked at. */
  #probedMode: AgentProbe['mode']

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

  /** What in this environment will keep the agent from working, beside its version. */
  protected problems(): string[] {
    return []
  }

  /** What in an untrusted directory this CLI would obey whatever it is told; a sentence with what to do. */
  protected untrustedObstacle(_turn: Turn): string | undefined {
    return undefined
  }

  /** How the CLI takes turn after turn in one process, where it can. */
  protected warmDriver(): WarmDriver | undefined {
    return undefined
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

  run(request: AgentRequest, signal: AbortSignal): AsyncGenerator<AgentEvent, void, undefined> {
    const { cli, config, dependencies } = this
    // A session in a pod is not at home here.
    if (cli.warm && !request.pod) return takeWarmTurn(cli, cli.warm, request, signal)
    return takeTurn({ request, signal, config, dependencies }, new OneShot(cli, request))
  }

  async validate(command?: ExecutableChoice): Promise<boolean> {
    return this.cli.find(command) !== undefined
  }

  async probe(command?: ExecutableChoice): Promise<AgentProbe> {
    const probe = await this.cli.probe(command)
    const { warm } = this.cli
    if (!probe.isFound || !warm || command) return probe
    const { mode, pool, driver } = warm
    const isBackingOff = pool.backoffs.leftMs(this.cli.fingerprint()) > 0
    const use = modeInUse({ mode, oldestKnown: driver.oldestKnown, isBackingOff }, probe.version)
    this.#probedMode = use.mode
    return { ...probe, ...use }
  }

  capabilities(): AgentCapabilities {
    const { traits } = this
    const { warm } = this.cli
    const mode = warm ? (this.#probedMode ?? warm.mode) : 'oneshot'
    return {
      provider: this.name(),
      supportsSessionContinuation: true,
      supportsModelSelection: true,
      supportsToolControl: traits.supportsToolControl,
      supportsMaxTurns: traits.supportsMaxTurns,
      // Every warm agent streams, also Codex, whose command line tells whole texts.
      supportsStreaming: traits.supportsStreaming || mode !== 'oneshot',
      supportedModels: [],
      ...(this.config.model !== undefined && { defaultModel: this.config.model }),
      maxPromptLength: traits.promptLimit?.size ?? 0,
    }
  }

  /** The same CLI for whoever drives it in another way. */
  get cli(): AgentCli {
    this.#cli ??= new AgentCli(
      {
        name: this.name(),
        traits: this.traits,
        invocation: (turn, place, signal) => this.invocation(turn, place, signal),
        translation: (emit, turn) => this.translation(emit, turn),
        neutralise: (prompt, isWarm) => this.neutralise(prompt, isWarm),
        problems: () => this.problems(),
        untrustedObstacle: (turn) => this.untrustedObstacle(turn),
        driver: this.warmDriver(),
      },
      this.config,
      this.dependencies,
    )
    return this.#cli
  }
}
