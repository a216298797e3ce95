// OpenCode as a server that takes many turns, instead of one process per turn; see docs/opencode-server.md.

import { Lanes } from '../../../core/async.js'
import { type BackendDependencies, type CliBackend, completeDependencies } from '../../engine/cli-backend.js'
import { needsCommandLine } from '../../engine/command-args.js'
import { executeTurn } from '../../engine/execute-turn.js'
import { modeInUse, SessionNotes } from '../../engine/agent-cli.js'
import { takeTurn } from '../../engine/turn.js'
import { OPENCODE } from '../format.js'
import { withWholeModel } from '../known-model.js'
import type {
  AgentBackend,
  AgentCapabilities,
  AgentEvent,
  AgentMode,
  AgentProbe,
  AgentRequest,
  BackendAdapterConfig,
  BackendEventResult,
  ProbeOptions,
} from '../../types.js'
import { OpenCodeClient } from './client.js'
import { EventStream } from './event-stream.js'
import { type ServerConnection, ServerLifetime } from './server-lifetime.js'
import type { OpenCodeEndpoint, OpenCodeServers } from './servers.js'

/** The same agent's command line. */
export type OneShot = Pick<CliBackend, 'run' | 'cli' | 'capabilities' | 'models'>

export class OpenCodeServerBackend implements AgentBackend {
  readonly #dependencies: BackendDependencies
  readonly #sessions = { directories: new SessionNotes<string>(), queue: new Lanes(), free: new SessionNotes<true>() }
  /** By URL and credentials. */
  readonly #connections = new Map<string, ServerConnection>()

  constructor(
    private config: BackendAdapterConfig,
    dependencies: Partial<BackendDependencies>,
    private readonly servers: OpenCodeServers,
    /** Takes the turns that a server cannot: in a pod, or with the operator's command. */
    private oneShot: OneShot,
    /** The default for requests that name none. If left out, every turn runs on a server. */
    private mode?: AgentMode,
  ) {
    this.#dependencies = completeDependencies(dependencies)
  }

  /** Applies to turns that begin from now on. */
  configure(config: BackendAdapterConfig, oneShot: OneShot, mode?: AgentMode): void {
    this.config = config
    this.oneShot = oneShot
    this.mode = mode
  }

  name() {
    return 'opencode' as const
  }

  execute(...call: Parameters<AgentBackend['execute']>): Promise<BackendEventResult> {
    return executeTurn(this, this.#dependencies.log, ...call)
  }

  run(request: AgentRequest, signal: AbortSignal): AsyncGenerator<AgentEvent, void, undefined> {
    const { config, oneShot, mode, servers } = this
    const { pod, command } = request
    if (pod || needsCommandLine(command)) return oneShot.run(request, signal)
    const dependencies = this.#dependencies
    const options = { model: config.model, models: () => this.models(), now: dependencies.now }
    return withWholeModel(request, options, (whole) => {
      const lifetime = new ServerLifetime(whole, signal, {
        ...{ config, dependencies, servers, mode, cli: oneShot.cli, sessions: this.#sessions },
        connect: (endpoint) => this.#connect(endpoint),
      })
      return takeTurn({ request: whole, signal, config, dependencies }, lifetime)
    })
  }

  validate(): Promise<boolean> {
    return this.servers.isFound()
  }

  models(): Promise<string[]> {
    return this.oneShot.models()
  }

  async probe(options?: ProbeOptions): Promise<AgentProbe> {
    const probe = await this.servers.probe(options)
    if (!probe.isFound) return probe
    return {
      ...probe,
      ...modeInUse({ mode: this.mode ?? 'live', oldestKnown: OPENCODE.versions.oldestKnown }, probe.version),
    }
  }

  capabilities(): AgentCapabilities {
    return { ...this.oneShot.capabilities(), supportsCompact: true, supportsStreaming: this.mode !== 'oneshot' }
  }

  /** Closes the connections and ends managed servers. Contract: no run is active. */
  async stop(): Promise<void> {
    for (const { stream } of this.#connections.values()) stream.close()
    await this.servers.stop()
  }

  #connect(endpoint: OpenCodeEndpoint): ServerConnection {
    const key = JSON.stringify([endpoint.url, endpoint.username, endpoint.password])
    const known = this.#connections.get(key)
    if (known) return known
    const { scrubber, limits } = this.#dependencies
    if (endpoint.password !== undefined) scrubber.add([endpoint.password])
    const client = new OpenCodeClient(endpoint, {
      scrub: (text) => scrubber.scrub(text),
      maxBytes: limits.lineBytes * ANSWER_LINES,
    })
    const onClosed = (): void => void this.#connections.delete(key)
    const connection = { client, stream: new EventStream(client, { maxCharacters: limits.lineBytes, onClosed }) }
    this.#connections.set(key, connection)
    return connection
  }
}

/** A response that is read after a gap may be as large as this many events. */
const ANSWER_LINES = 4
