import { type BackendDependencies, completeDependencies } from '../backends/engine/cli-backend.js'
import { OpenCodeBackend } from '../backends/opencode/backend.js'
import { ExternalServer, type OpenCodeServers } from '../backends/opencode/server/servers.js'
import { ManagedServers } from '../backends/opencode/server/managed-servers.js'
import { OpenCodeServerBackend } from '../backends/opencode/server/opencode-server-backend.js'
import { WarmPool } from '../backends/engine/warm/warm-pool.js'
import { createBackend } from '../backends/registry.js'
import { type AgentBackend, BACKEND_NAMES, type BackendName } from '../backends/types.js'
import { backendConfig, type GatewayConfig } from '../config.js'

/** The agents that a configuration describes, for the gateway and every command. */
export class ConfiguredAgents {
  /** Present if OpenCode is a server started here. */
  readonly managedServers: OpenCodeServers | undefined
  readonly #servers: OpenCodeServers
  readonly #pool: WarmPool
  /** Never replaced: it knows which sessions are in use. */
  #serverBackend: OpenCodeServerBackend | undefined
  readonly #dependencies: BackendDependencies
  /** The command line that starts a server, and runs what a server cannot. */
  #openCode: OpenCodeBackend

  constructor(
    private readonly config: GatewayConfig,
    dependencies: Partial<BackendDependencies>,
  ) {
    this.#dependencies = completeDependencies(dependencies)
    this.#openCode = this.#openOneShot()
    const isExternal = config.opencodeEnabled && !config.opencodeManaged
    this.#servers = isExternal ? this.#connect() : this.#manage()
    const isServed = config.opencodeEnabled || config.agentMode !== 'oneshot'
    if (isServed && !isExternal) this.managedServers = this.#servers
    const { log, now } = this.#dependencies
    this.#pool = new WarmPool({ log, now, limits: config })
  }

  /** With the current configuration, parts of which may change at run time. */
  open(name: BackendName): AgentBackend {
    const { agentMode, opencodeEnabled } = this.config
    const config = backendConfig(this.config, name)
    const warm = { mode: agentMode, pool: this.#pool }
    if (name !== 'opencode') return createBackend(name, config, { ...this.#dependencies, warm })
    this.#openCode = this.#openOneShot()
    const mode = opencodeEnabled ? undefined : agentMode
    this.#serverBackend ??= new OpenCodeServerBackend(config, this.#dependencies, this.#servers, this.#openCode, mode)
    this.#serverBackend.configure(config, this.#openCode, mode)
    return this.#serverBackend
  }

  /** Replaces those opened before: their warm processes end. */
  all(): AgentBackend[] {
    this.#pool.drain()
    return BACKEND_NAMES.map((name) => this.open(name))
  }

  /** Ends warm processes, disconnects from servers and ends those started here. Contract: no run is active. */
  async stop(): Promise<void> {
    await this.#pool.stop()
    await (this.#serverBackend ?? this.#servers).stop()
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

/** Why an agent cannot be used, if it cannot. `executable` is that of an operator's command. */
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
  // A command line is started as is, even if the agent is a server.
  const agent = createBackend(name, backendConfig(config, name), dependencies)
  return (await agent.validate({ executable })) ? undefined : ((await agent.probe({ executable })).problems[0] ?? '')
}
