import { type BackendDependencies, completeDependencies } from './backends/backend-dependencies.js'
import { OpenCodeBackend } from './backends/opencode-backend.js'
import { ExternalServer } from './backends/opencode-server/external-server.js'
import { ManagedServers } from './backends/opencode-server/managed-servers.js'
import { OpenCodeServerBackend } from './backends/opencode-server/opencode-server-backend.js'
import type { OpenCodeServers } from './backends/opencode-server/servers.js'
import { createBackend } from './backends/registry.js'
import { type AgentBackend, BACKEND_NAMES, type BackendName } from './backends/types.js'
import { backendConfig, type GatewayConfig } from './config.js'

/** The agents that a configuration describes. The gateway and every command have theirs from here. */
export class ConfiguredAgents {
  /** Where OpenCode is a server that is started here. */
  readonly managedServers: OpenCodeServers | undefined
  /** Where it is a server at all. */
  readonly #servers: OpenCodeServers | undefined
  /** One for good: it knows which sessions are at work. */
  #serverBackend: OpenCodeServerBackend | undefined
  readonly #dependencies: BackendDependencies
  /** The command line that a server is started by, and that takes what no server can. */
  #openCode: OpenCodeBackend

  constructor(
    private readonly config: GatewayConfig,
    dependencies: Partial<BackendDependencies>,
  ) {
    this.#dependencies = completeDependencies(dependencies)
    this.#openCode = this.#openOneShot()
    if (!config.opencodeEnabled) return
    if (config.opencodeManaged) this.managedServers = this.#manage()
    this.#servers = this.managedServers ?? this.#connect()
  }

  /** As the configuration is now: some of it may change while the gateway runs. */
  open(name: BackendName): AgentBackend {
    const config = backendConfig(this.config, name)
    if (name !== 'opencode' || !this.#servers) return createBackend(name, config, this.#dependencies)
    this.#openCode = this.#openOneShot()
    this.#serverBackend ??= new OpenCodeServerBackend(config, this.#dependencies, this.#servers, this.#openCode)
    this.#serverBackend.configure(config, this.#openCode)
    return this.#serverBackend
  }

  all(): AgentBackend[] {
    return BACKEND_NAMES.map((name) => this.open(name))
  }

  /** Leaves the servers, and ends those that were started for them. Contract: no run is at work. */
  async stop(): Promise<void> {
    await (this.#serverBackend ?? this.#servers)?.stop()
  }

  #openOneShot(): OpenCodeBackend {
    return new OpenCodeBackend(backendConfig(this.config, 'opencode'), this.#dependencies)
  }

  #manage(): OpenCodeServers {
    const { owner, scrubber, log } = this.#dependencies
    return new ManagedServers({ cli: () => this.#openCode, ...(owner && { owner }), scrubber, log })
  }

  #connect(): OpenCodeServers {
    const { opencodeUrl: url, opencodeUsername: username, opencodePassword: password } = this.config
    return new ExternalServer({ url, username, ...(password !== undefined && { password }) })
  }
}

/** Why an agent cannot be used, if it cannot. `executable` is the one of a command of the operator. */
export async function agentProblem(
  name: BackendName,
  executable: string | undefined,
  config: GatewayConfig,
  dependencies: Partial<BackendDependencies>,
): Promise<string | undefined> {
  if (executable === undefined) {
    const agent = new ConfiguredAgents(config, dependencies).open(name)
    return (await agent.validate()) ? undefined : ((await agent.probe()).problems[0] ?? '')
  }
  // A command line is started as it is, also where the agent is a server.
  const agent = createBackend(name, backendConfig(config, name), dependencies)
  return (await agent.validate({ executable })) ? undefined : ((await agent.probe({ executable })).problems[0] ?? '')
}
