import { within } from '../../core/async.js'
import type { AgentBackend, AgentProbe } from '../../backends/types.js'
import { GatewayError } from '../../errors.js'
import * as api from '../api/agents.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { backendOf } from '../../backends/engine/backend-names.js'
import { providerOf } from '../../backends/engine/provider-names.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'
import { auditFor } from './changes.js'

const PROBE_TIMEOUT_MS = 5_000
const PROBE_CACHE_MS = 60_000
const SILENT = 'Its command line did not tell its version in time.'

type Probe = Omit<AgentProbe, 'isFound'>

/** What command lines report about themselves. Asking starts a process, so answers are cached. */
class AgentProbes {
  readonly #probes = new WeakMap<AgentBackend, { until: number; probe: Promise<Probe> }>()

  constructor(private readonly now: () => number) {}

  of(backend: AgentBackend): Promise<Probe> {
    const cached = this.#probes.get(backend)
    if (cached && cached.until > this.now()) return cached.probe
    const probe = probeInTime(backend)
    this.#probes.set(backend, { until: this.now() + PROBE_CACHE_MS, probe })
    return probe
  }
}

async function probeInTime(backend: AgentBackend): Promise<Probe> {
  return (await within(PROBE_TIMEOUT_MS, backend.probe())) ?? { problems: [SILENT] }
}

export function registerAgentRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'agents')
  const { gateway, projects, now } = dependencies
  const { agents } = gateway
  const probes = new AgentProbes(now)

  route(
    'GET /agents',
    { scope: 'read', allowsProjectTokens: true },
    'The agents, what they can do, and whether they are there',
    { response: { 200: api.agentListSchema } },
    async () => {
      const available = await agents.availableAgents()
      const registered = agents.available().flatMap((name) => agents.get(name) ?? [])
      const described = registered.map(async (backend) => {
        const name = backend.name()
        return toWire(api.agentSchema, {
          provider: providerOf(name),
          status: available.includes(backend) ? 'available' : 'unavailable',
          ...(await probes.of(backend)),
          isDefault: agents.defaultProvider() === name,
          capabilities: toWire(api.capabilitiesSchema, backend.capabilities()),
        })
      })
      return { agents: await Promise.all(described) }
    },
  )

  route(
    'GET /agents/default',
    { scope: 'read', allowsProjectTokens: true },
    'The agent of new projects',
    { response: { 200: api.defaultAgentSchema } },
    async () => defaultAgent(),
  )

  route(
    'PUT /agents/default',
    { scope: 'admin' },
    'Choose the agent of new projects, until the gateway starts again',
    {
      description:
        'For this gateway alone; CODE_AGENT_DEFAULT chooses it for good, and for each gateway on a database.',
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

  function defaultAgent(): api.DefaultAgent {
    const name = agents.defaultProvider()
    if (name === undefined) throw new GatewayError('backend_unknown', 'No agent is registered.')
    return { agent_provider: providerOf(name) }
  }
}
