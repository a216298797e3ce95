import { within } from '../../core/async.js'
import type { AgentBackend, AgentProbe, BackendName } from '../../backends/types.js'
import { knownModels } from '../../conversation/model-command.js'
import type { GatewayConfig } from '../../config.js'
import { GLOBAL_OWNER } from '../../credentials/credential-store.js'
import { GatewayError } from '../../errors.js'
import * as api from '../api/agents.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { backendOf, providerOf } from '../../backends/agents.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'
import { auditFor, callerOf } from './changes.js'

const PROBE_TIMEOUT_MS = 5_000
const MODELS_TIMEOUT_MS = 2_000
const PROBE_CACHE_MS = 60_000
const SILENT = 'Its command line has not reported a version yet. Try again in a moment.'
const BUSY = 'It is installed, but did not respond in time. Try again in a moment.'
const DEMO_NOTE = 'The built-in demo agent replaces it, and uses no model. Run "aetheel init" to choose a real agent.'

/** Without `isFound`, it has not answered yet. */
type Probe = Omit<AgentProbe, 'isFound'> & Partial<Pick<AgentProbe, 'isFound'>>

/** What command lines report about themselves. Asking starts a process, so answers are cached. */
class AgentProbes {
  readonly #probes = new WeakMap<AgentBackend, { until: number; stored: string; probe: Promise<AgentProbe> }>()

  constructor(private readonly now: () => number) {}

  /** A late answer is cached for the next caller. */
  async of(backend: AgentBackend, storedVariables: string[]): Promise<Probe> {
    return (await within(PROBE_TIMEOUT_MS, this.#ask(backend, storedVariables))) ?? { problems: [SILENT] }
  }

  #ask(backend: AgentBackend, storedVariables: string[]): Promise<AgentProbe> {
    const stored = storedVariables.join()
    const cached = this.#probes.get(backend)
    if (cached && cached.until > this.now() && cached.stored === stored) return cached.probe
    const probe = backend.probe({ storedVariables })
    this.#probes.set(backend, { until: this.now() + PROBE_CACHE_MS, stored, probe })
    return probe
  }
}

export function capabilitiesView(
  backend: Pick<AgentBackend, 'capabilities'>,
  { backendMaxTurns }: Pick<GatewayConfig, 'backendMaxTurns'>,
): api.Agent['capabilities'] {
  const capabilities = backend.capabilities()
  const defaultMaxTurns = capabilities.supportsMaxTurns ? backendMaxTurns : undefined
  return toWire(api.capabilitiesSchema, { ...capabilities, defaultMaxTurns })
}

export function registerAgentRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'agents')
  const { config, gateway, projects, credentials, now } = dependencies
  const { agents } = gateway
  const probes = new AgentProbes(now)

  route(
    'GET /agents',
    { scope: 'read', allowsProjectTokens: true },
    'List the agents, with their capabilities and availability',
    { response: { 200: api.agentListSchema } },
    async (request) => {
      const available = await agents.availableAgents()
      const storedVariables = (await credentials.list(GLOBAL_OWNER)).map(({ name }) => name)
      const registered = agents.available().flatMap((name) => agents.get(name) ?? [])
      const described = registered.map(async (backend) => {
        const name = backend.name()
        const isAvailable = available.includes(backend)
        const [{ isFound, isDemo = false, login, problems, ...probe }, recentModels] = await Promise.all([
          probes.of(backend, storedVariables),
          recentModelsOf(name, callerOf(request)),
          // A late list is in the next answer.
          within(MODELS_TIMEOUT_MS, backend.models()),
        ])
        return toWire(api.agentSchema, {
          provider: providerOf(name),
          status: isAvailable ? 'available' : 'unavailable',
          ...probe,
          isDemo,
          ...(login && { login: toWire(api.agentLoginSchema, login) }),
          problems: [...(isFound && !isAvailable ? [BUSY] : []), ...(isDemo ? [DEMO_NOTE] : []), ...problems],
          isDefault: agents.defaultProvider() === name,
          recentModels,
          capabilities: capabilitiesView(backend, config),
        })
      })
      return { agents: await Promise.all(described) }
    },
  )

  route(
    'GET /agents/default',
    { scope: 'read', allowsProjectTokens: true },
    'Show the default agent for new projects',
    { response: { 200: api.defaultAgentSchema } },
    async () => defaultAgent(),
  )

  route(
    'PUT /agents/default',
    { scope: 'admin' },
    'Set the default agent for new projects, until the gateway restarts',
    {
      description:
        'Applies only to this gateway. Set CODE_AGENT_DEFAULT to change it permanently, on each gateway of a database.',
      body: api.newDefaultAgentSchema,
      response: { 200: api.defaultAgentSchema },
    },
    async (request) => {
      const backend = backendOf(request.body.agent_provider)
      await projects.requireAvailable(backend)
      agents.setDefault(backend)
      const about = { action: 'agent.default', subject: providerOf(backend) } as const
      await auditFor(request, now)(gateway.store, about)
      return defaultAgent()
    },
  )

  /** Project tokens get none, since other projects may use them. */
  async function recentModelsOf(name: BackendName, { projects: own }: Pick<Caller, 'projects'>): Promise<string[]> {
    if (own !== undefined) return []
    const known = { store: gateway.store, modelsOf: async () => [], now }
    return (await knownModels(known, name, 0)).used
  }

  function defaultAgent(): api.DefaultAgent {
    const name = agents.defaultProvider()
    if (name === undefined)
      throw new GatewayError('backend_unknown', 'No agent is registered. Run "aetheel doctor" to find out why.')
    return { agent_provider: providerOf(name) }
  }
}
