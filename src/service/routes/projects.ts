import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { PERMISSIONS } from '../../backends/types.js'
import { podSchema } from '../../config/kubernetes.js'
import type { PodAddress } from '../../kubernetes/types.js'
import { chooseAgent } from '../../runtime/agent-choice.js'
import type { ProjectRecord } from '../../store/projects.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { backendOf } from '../../backends/engine/backend-names.js'
import { providerOf } from '../../backends/engine/provider-names.js'
import { capabilitiesSchema, capabilitiesView } from './agents.js'
import { callerOf, mayUse, noteOf } from './changes.js'
import {
  givenProviderSchema,
  isoTime,
  millisecondsOf,
  modelSchema,
  projectParams,
  providerSchema,
  timeoutSchema,
  timeSchema,
  toolsSchema,
} from './schemas.js'

const podViewSchema = z.object({
  context: z.string().nullable(),
  namespace: z.string().nullable(),
  name: z.string().nullable(),
  selector: z.string().nullable(),
  container: z.string().nullable(),
})

export const projectSchema = z.object({
  id: z.string(),
  name: z.string(),
  directory: z.string().describe('Of the pod, where there is one.'),
  pod: podViewSchema.nullable().describe('The pod in which the agent and commands run; null for this machine.'),
  source: z
    .enum(['file', 'api', 'cluster'])
    .describe(
      '`file`: the configuration file says what it is; `api`: it was made here; `cluster`: the labels of its pod say that it is there, and which agent it has.',
    ),
  agent_provider: providerSchema.describe(
    'Who answers: where the agent of the project is not registered, the default one.',
  ),
  agent_capabilities: capabilitiesSchema,
  model: z.string().nullable(),
  allowed_tools: z.array(z.string()).nullable(),
  timeout: z.number().nullable().describe('In seconds.'),
  max_turns: z.number().nullable(),
  is_untrusted: z.boolean().describe('Whether nothing in its directory may configure the agent, or run by itself.'),
  agent_permissions: z
    .enum(PERMISSIONS)
    .nullable()
    .describe('Whether a person is asked before the agent uses a tool; null: as the gateway has it.'),
  created_at: timeSchema,
  updated_at: timeSchema,
})

const turnsSchema = z.number().int().min(1).max(1_000_000)

export const newProjectSchema = z.strictObject({
  id: z.string().optional().describe('Left out, made from the name.'),
  name: z.string().optional(),
  directory: z
    .string()
    .optional()
    .describe(
      'One that is there, as an absolute path inside the project roots; with `pod`, a path in there, by default /workspace.',
    ),
  git: z
    .strictObject({ url: z.string().max(2_000), ref: z.string().max(300).optional() })
    .optional()
    .describe('A repository to clone.'),
  template: z
    .union([z.string(), z.strictObject({ name: z.string(), variables: z.record(z.string(), z.string()).optional() })])
    .optional()
    .describe('One of GET /templates: its name, or its name and variables.'),
  pod: podSchema.optional().describe('The pod in which the agent and commands run, by kubectl exec.'),
  agent_provider: givenProviderSchema.optional().describe('Left out, that of GET /agents/default.'),
  model: modelSchema.optional(),
  allowed_tools: toolsSchema.optional(),
  timeout: timeoutSchema.optional(),
  max_turns: turnsSchema.optional(),
  is_untrusted: z.boolean().optional(),
  agent_permissions: z.enum(PERMISSIONS).optional().describe('Left out, as the gateway has it.'),
})

export const projectChangesSchema = z
  .strictObject({
    name: z.string().nullable().optional(),
    agent_provider: givenProviderSchema.optional(),
    model: modelSchema.nullable().optional(),
    allowed_tools: toolsSchema.nullable().optional(),
    timeout: timeoutSchema.nullable().optional(),
    max_turns: turnsSchema.nullable().optional(),
    is_untrusted: z.boolean().optional(),
    agent_permissions: z.enum(PERMISSIONS).nullable().optional(),
  })
  .describe('What is left out stays; null takes a setting back. Another agent begins new sessions.')

export function registerProjectRoutes(app: App, dependencies: ServiceDependencies): void {
  const { config, gateway, projects, now } = dependencies
  const view = (project: ProjectRecord): z.output<typeof projectSchema> => {
    const { agent } = gateway.agents.resolve(chooseAgent({}, project, config).backend)
    return {
      id: project.id,
      name: project.name ?? project.id,
      directory: project.directory,
      pod: project.pod ? podView(project.pod) : null,
      source: project.source,
      agent_provider: providerOf(agent.name()),
      agent_capabilities: capabilitiesView(agent.capabilities()),
      model: project.model ?? null,
      allowed_tools: project.allowedTools ?? null,
      timeout: project.queryTimeoutMs === undefined ? null : project.queryTimeoutMs / 1000,
      max_turns: project.maxTurns ?? null,
      is_untrusted: project.isUntrusted ?? false,
      agent_permissions: project.agentPermissions ?? null,
      created_at: isoTime(project.createdAt),
      updated_at: isoTime(project.updatedAt),
    }
  }

  app.route({
    method: 'GET',
    url: '/projects',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'The projects that the token may use',
      tags: ['projects'],
      response: { 200: z.object({ projects: z.array(projectSchema) }) },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const known = await projects.list()
      return { projects: known.filter(({ id }) => mayUse(caller, id)).map(view) }
    },
  })

  app.route({
    method: 'POST',
    url: '/projects',
    config: { scope: 'admin' },
    schema: {
      summary: 'Make a project from a directory, a git repository, a template or a pod',
      tags: ['projects'],
      body: newProjectSchema,
      response: { 201: projectSchema },
    },
    handler: async (request, reply) => {
      const { id, name, directory, git, template, pod, ...settings } = request.body
      const asked = {
        ...(id !== undefined && { id }),
        ...(name !== undefined && { name }),
        ...(directory !== undefined && { directory }),
        ...(git && { git: { url: git.url, ...(git.ref !== undefined && { ref: git.ref }) } }),
        ...(template && {
          template: typeof template === 'string' ? { name: template } : templateOf(template),
        }),
        ...(pod && { pod }),
        ...(settings.agent_provider !== undefined && { backend: backendOf(settings.agent_provider) }),
        ...(settings.model !== undefined && { model: settings.model }),
        ...(settings.allowed_tools && { allowedTools: settings.allowed_tools }),
        ...(settings.timeout !== undefined && { queryTimeoutMs: millisecondsOf(settings.timeout) }),
        ...(settings.max_turns !== undefined && { maxTurns: settings.max_turns }),
        ...(settings.is_untrusted !== undefined && { isUntrusted: settings.is_untrusted }),
        ...(settings.agent_permissions && { agentPermissions: settings.agent_permissions }),
      }
      const project = await projects.create(asked, whenGone(reply), noteOf(request, now))
      return reply.code(201).send(view(project))
    },
  })

  app.route({
    method: 'GET',
    url: '/projects/:id',
    config: { scope: 'read' },
    schema: { summary: 'A project', tags: ['projects'], params: projectParams, response: { 200: projectSchema } },
    handler: async ({ params }) => view(await projects.get(params.id)),
  })

  app.route({
    method: 'PATCH',
    url: '/projects/:id',
    config: { scope: 'admin' },
    schema: {
      summary: 'Change a project',
      tags: ['projects'],
      params: projectParams,
      body: projectChangesSchema,
      response: { 200: projectSchema },
    },
    handler: async (request) => {
      const { name, agent_provider: provider, model, allowed_tools: tools, timeout, ...rest } = request.body
      const changes = {
        ...(name !== undefined && { name }),
        ...(provider !== undefined && { backend: backendOf(provider) }),
        ...(model !== undefined && { model }),
        ...(tools !== undefined && { allowedTools: tools }),
        ...(timeout !== undefined && { queryTimeoutMs: timeout === null ? null : millisecondsOf(timeout) }),
        ...(rest.max_turns !== undefined && { maxTurns: rest.max_turns }),
        ...(rest.is_untrusted !== undefined && { isUntrusted: rest.is_untrusted }),
        ...(rest.agent_permissions !== undefined && { agentPermissions: rest.agent_permissions }),
      }
      return view(await projects.update(request.params.id, changes, noteOf(request, now)))
    },
  })

  app.route({
    method: 'DELETE',
    url: '/projects/:id',
    config: { scope: 'admin' },
    schema: {
      summary: 'Remove a project, with its credentials and the right of tokens to use it',
      tags: ['projects'],
      params: projectParams,
      querystring: z.object({
        delete_files: z
          .stringbool()
          .default(false)
          .describe('Whether its files go, too; only those that were made with it.'),
      }),
      response: { 204: z.undefined() },
    },
    handler: async (request, reply) => {
      const { id } = request.params
      const { delete_files: deletesFiles } = request.query
      await projects.remove(id, { deletesFiles }, noteOf(request, now))
      return reply.code(204).send()
    },
  })
}

function podView({ context, namespace, name, selector, container }: PodAddress): z.output<typeof podViewSchema> {
  return {
    context: context ?? null,
    namespace: namespace ?? null,
    name: name ?? null,
    selector: selector ?? null,
    container: container ?? null,
  }
}

// The close of the request does not tell: that comes with the end of its body.
/** Aborted when the client has gone, or has its answer. */
function whenGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  raw.once('close', () => gone.abort())
  return gone.signal
}

function templateOf({ name, variables }: { name: string; variables?: Record<string, string> | undefined }) {
  return { name, ...(variables && { variables }) }
}
