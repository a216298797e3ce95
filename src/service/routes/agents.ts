import { within } from '../../core/async.js'
import { z } from 'zod'
import type { AgentBackend, AgentCapabilities } from '../../backends/types.js'
import { GatewayError } from '../../errors.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { backendOf } from '../../backends/engine/backend-names.js'
import { providerOf } from '../../backends/engine/provider-names.js'
import { noteOf } from './changes.js'
import { givenProviderSchema, providerSchema } from './schemas.js'

export const capabilitiesSchema = z.object({
  supports_session_continuation: z.boolean(),
  supports_model_selection: z.boolean(),
  supports_tool_control: z.boolean(),
  supports_max_turns: z.boolean(),
  supports_streaming: z.boolean(),
  supported_models: z.array(z.string()).describe('Known by name; empty where any the provider has may be named.'),
  default_model: z.string().nullable().describe('The one configured; without it the agent chooses.'),
  max_prompt_length: z.number().describe('0 is unlimited.'),
})

export function capabilitiesView(capabilities: AgentCapabilities): z.output<typeof capabilitiesSchema> {
  return {
    supports_session_continuation: capabilities.supportsSessionContinuation,
    supports_model_selection: capabilities.supportsModelSelection,
    supports_tool_control: capabilities.supportsToolControl,
    supports_max_turns: capabilities.supportsMaxTurns,
    supports_streaming: capabilities.supportsStreaming,
    supported_models: capabilities.supportedModels,
    default_model: capabilities.defaultModel ?? null,
    max_prompt_length: capabilities.maxPromptLength,
  }
}

export const agentSchema = z.object({
  provider: providerSchema,
  status: z.enum(['available', 'unavailable']),
  path: z
    .string()
    .nullable()
    .describe('Where its command line is, or its server is looked for; null when it is not installed.'),
  version: z.string().nullable().describe('As its command line tells; null when it told none in time.'),
  problems: z.array(z.string()).describe('What an operator should know or do.'),
  mode: z
    .enum(['live', 'oneshot'])
    .nullable()
    .describe(
      'Whether its process stays for the next turn, where a project says nothing else; null when it is not there.',
    ),
  why_not_live: z.string().nullable().describe('Why its process does not stay although it might.'),
  is_default: z.boolean().describe('Whether new projects get it.'),
  capabilities: capabilitiesSchema,
})

const defaultSchema = z.object({
  agent_provider: providerSchema.describe('The agent of new projects of this gateway, until it starts again.'),
})

const PROBE_TIMEOUT_MS = 5_000
const PROBE_CACHE_MS = 60_000
const SILENT = 'Its command line did not tell its version in time.'

type Probe = Pick<z.output<typeof agentSchema>, 'path' | 'version' | 'problems' | 'mode' | 'why_not_live'>

/** What command lines say about themselves. Asking starts a process, so an answer is kept for a while. */
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
  const probe = await within(PROBE_TIMEOUT_MS, backend.probe())
  if (!probe) return { path: null, version: null, problems: [SILENT], mode: null, why_not_live: null }
  const { path = null, version = null, problems, mode = null, whyNotLive = null } = probe
  return { path, version, problems, mode, why_not_live: whyNotLive }
}

export function registerAgentRoutes(app: App, dependencies: ServiceDependencies): void {
  const { gateway, projects, now } = dependencies
  const { agents } = gateway
  const probes = new AgentProbes(now)

  app.route({
    method: 'GET',
    url: '/agents',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'The agents, what they can do, and whether they are there',
      tags: ['agents'],
      response: { 200: z.object({ agents: z.array(agentSchema) }) },
    },
    handler: async () => {
      const available = await agents.availableAgents()
      const registered = agents.available().flatMap((name) => agents.get(name) ?? [])
      const described = registered.map(async (backend) => {
        const name = backend.name()
        return {
          provider: providerOf(name),
          status: available.includes(backend) ? ('available' as const) : ('unavailable' as const),
          ...(await probes.of(backend)),
          is_default: agents.defaultProvider() === name,
          capabilities: capabilitiesView(backend.capabilities()),
        }
      })
      return { agents: await Promise.all(described) }
    },
  })

  app.route({
    method: 'GET',
    url: '/agents/default',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: { summary: 'The agent of new projects', tags: ['agents'], response: { 200: defaultSchema } },
    handler: async () => defaultAgent(),
  })

  app.route({
    method: 'PUT',
    url: '/agents/default',
    config: { scope: 'admin' },
    schema: {
      summary: 'Choose the agent of new projects, until the gateway starts again',
      description:
        'For this gateway alone; CODE_AGENT_DEFAULT chooses it for good, and for each gateway on a database.',
      tags: ['agents'],
      body: z.strictObject({ agent_provider: givenProviderSchema }),
      response: { 200: defaultSchema },
    },
    handler: async (request) => {
      const backend = backendOf(request.body.agent_provider)
      await projects.requireAvailable(backend)
      agents.setDefault(backend)
      const about = { action: 'agent.default', subject: providerOf(backend) } as const
      await noteOf(request, now)(gateway.store, about)
      return defaultAgent()
    },
  })

  function defaultAgent(): z.output<typeof defaultSchema> {
    const name = agents.defaultProvider()
    if (name === undefined) throw new GatewayError('backend_unknown', 'No agent is registered.')
    return { agent_provider: providerOf(name) }
  }
}
