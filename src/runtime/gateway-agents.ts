import { within } from '../core/async.js'
import { BackendRegistry } from '../backends/registry.js'
import type { AgentBackend, BackendName } from '../backends/types.js'
import type { GatewayConfig } from '../config.js'
import type { Scrubber } from '../credentials/scrubber.js'
import type { Pods } from '../kubernetes/types.js'
import type { Log } from '../log.js'
import type { ProcessOwner } from '../processes/process-owner.js'
import { MarkdownConfigLoader } from '../prompt/markdown-config-loader.js'
import { SystemPromptAssembler } from '../prompt/system-prompt-assembler.js'
import type { Store } from '../store/store.js'
import { AgentRuntime } from './agent-runtime.js'
import { CommandRuntime } from './command-runtime.js'
import { ConfiguredAgents } from './configured-agents.js'
import type { HookManager } from './hook-manager.js'
import { SessionManager } from './session-manager.js'

/** The agents of a gateway by name, each with its runtime. */
export class GatewayAgents {
  readonly registry: BackendRegistry
  readonly runtimes = new Map<BackendName, AgentRuntime>()

  constructor(
    config: Pick<GatewayConfig, 'codeAgentDefault'>,
    private readonly configured: Pick<ConfiguredAgents, 'all' | 'stop'>,
    private readonly runtimeOf: (backend: AgentBackend) => AgentRuntime,
    now: () => number,
  ) {
    this.registry = new BackendRegistry(now)
    this.reopen()
    // Channels get their default from the configuration.
    this.registry.setDefault(config.codeAgentDefault)
  }

  /** Applies the current configuration; running turns are not affected. */
  reopen(): void {
    for (const backend of this.configured.all()) {
      this.registry.register(backend)
      this.runtimes.set(backend.name(), this.runtimeOf(backend))
    }
  }

  readonly isInstalled = async (name: BackendName): Promise<boolean> =>
    (await this.registry.get(name)?.validate()) ?? false

  /** The models that its command line lists; empty if that takes too long. A late list is returned the next time. */
  readonly modelsOf = async (name: BackendName, withinMs: number): Promise<string[]> =>
    (await within(withinMs, this.registry.get(name)?.models() ?? Promise.resolve([]))) ?? []

  /** Contract: no run is active. */
  stop(): Promise<void> {
    return this.configured.stop()
  }
}

/** Opens the agents and everything else a turn needs. */
export function openAgents(
  config: GatewayConfig,
  { environment, log }: { environment: NodeJS.ProcessEnv; log: Log },
  parts: { store: Store; owner: ProcessOwner; pods: Pods; scrubber: Scrubber; hooks: HookManager; now: () => number },
) {
  const { store, owner, pods, scrubber, hooks, now } = parts
  const running = { environment, passVariables: config.agentEnvPass, owner, pods, scrubber }
  const sessions = new SessionManager(store.sessions, { idleMs: config.sessionIdleMs, now })
  const markdown = new MarkdownConfigLoader(config.promptDir, log)
  const assembler = new SystemPromptAssembler()
  const configured = new ConfiguredAgents(config, { ...running, log })
  const runtimeOf = (backend: AgentBackend): AgentRuntime =>
    new AgentRuntime(config, backend, sessions, markdown, assembler, hooks)
  const agents = new GatewayAgents(config, configured, runtimeOf, now)
  return { agents, sessions, markdown, commandRuntime: new CommandRuntime({ ...running, now }) }
}
