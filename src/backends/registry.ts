import { within } from '../core/async.js'
import { GatewayError } from '../errors.js'
import { AGENTS, findBackendName } from './agents.js'
import type { BackendDependencies, CliBackend } from './engine/cli-backend.js'
import { type AgentBackend, BACKEND_NAMES, type BackendAdapterConfig, type BackendName } from './types.js'

export function createBackend(
  name: BackendName,
  config: BackendAdapterConfig,
  dependencies?: Partial<BackendDependencies>,
): CliBackend {
  const { backend: Backend } = AGENTS[resolveBackendName(name)]
  return new Backend(config, dependencies)
}

export function resolveBackendName(raw: string | undefined): BackendName {
  const name = raw === undefined ? 'claude' : findBackendName(raw)
  if (name) return name
  throw new GatewayError('backend_unknown', `Unknown backend "${raw}". Known: ${BACKEND_NAMES.join(', ')}`)
}

/** `validate` looks for a file or asks a server. Callers such as health checks have short time-outs. */
const AVAILABILITY_TIMEOUT_MS = 2_000
/** Keeps frequent health checks away from a server. */
const AVAILABILITY_CACHE_MS = 10_000

/** A gateway's agents by name. The first one registered is the default until another is set. */
export class BackendRegistry {
  readonly #backends = new Map<BackendName, AgentBackend>()
  readonly #availability = new Map<BackendName, { until: number; isAvailable: Promise<boolean> }>()
  #default: BackendName | undefined

  constructor(private readonly now: () => number = Date.now) {}

  /** Replaces any backend registered under the same name. */
  register(backend: AgentBackend): void {
    this.#backends.set(backend.name(), backend)
    this.#availability.delete(backend.name())
    this.#default ??= backend.name()
  }

  get(name: BackendName): AgentBackend | undefined {
    return this.#backends.get(name)
  }

  /**
   * The agent with that name or, if it is not registered, the default one with the name in `missing`.
   *
   * Contract: throws `backend_unknown` if no agent is registered at all.
   */
  resolve(name: string): { agent: AgentBackend; missing?: string } {
    const known = findBackendName(name)
    const own = known && this.get(known)
    const agent = own ?? this.default()
    if (!agent) {
      throw new GatewayError('backend_unknown', `The agent ${name} is not registered, and neither is any other.`)
    }
    return { agent, ...(!own && { missing: name }) }
  }

  default(): AgentBackend | undefined {
    return this.#default && this.#backends.get(this.#default)
  }

  defaultProvider(): BackendName | undefined {
    return this.#default
  }

  setDefault(name: BackendName): void {
    if (!this.#backends.has(name)) {
      throw new GatewayError('backend_unknown', `Unknown backend "${name}". Registered: ${this.available().join(', ')}`)
    }
    this.#default = name
  }

  available(): BackendName[] {
    return [...this.#backends.keys()]
  }

  count(): number {
    return this.#backends.size
  }

  /** The agents that can run now, without those that take too long to answer. */
  async availableAgents(): Promise<AgentBackend[]> {
    const backends = [...this.#backends.values()]
    const answers = await Promise.all(backends.map((backend) => this.#isAvailable(backend)))
    return backends.filter((_, index) => answers[index])
  }

  #isAvailable(backend: AgentBackend): Promise<boolean> {
    const cached = this.#availability.get(backend.name())
    if (cached && cached.until > this.now()) return cached.isAvailable
    const isAvailable = within(AVAILABILITY_TIMEOUT_MS, validateSafely(backend)).then((answer) => answer ?? false)
    this.#availability.set(backend.name(), { until: this.now() + AVAILABILITY_CACHE_MS, isAvailable })
    return isAvailable
  }
}

async function validateSafely(backend: AgentBackend): Promise<boolean> {
  try {
    return await backend.validate()
  } catch {
    return false // It failed even to check, so it is not available.
  }
}
