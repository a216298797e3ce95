import type { FastifyReply } from 'fastify'
import { resolveAgent } from '../../runtime/agent-choice.js'
import type { ProjectRecord } from '../../store/projects.js'
import * as api from '../api/projects.js'
import { nothingSchema } from '../api/values.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { backendOf, providerOf } from '../../backends/agents.js'
import { routesOf } from '../route.js'
import { fromWire, millisecondsOf, toWire } from '../wire.js'
import { capabilitiesView } from './agents.js'
import { callerOf, mayUse, auditFor } from './changes.js'

const MAX_FILES = 50
const IN_POD = 'The files of this project are in a pod, and cannot be listed.'

export function registerProjectRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'projects')
  const { config, gateway, projects, now } = dependencies
  const view = (project: ProjectRecord): api.Project => {
    const { agent, backend } = resolveAgent({}, project, config, gateway.agents)
    return toWire(api.projectSchema, {
      ...project,
      name: project.name ?? project.id,
      isDefault: project.id === config.defaultProject,
      pod: project.pod && toWire(api.projectPodSchema, project.pod),
      agentProvider: providerOf(backend),
      agentCapabilities: capabilitiesView(agent, config),
      timeout: project.queryTimeoutMs === undefined ? undefined : project.queryTimeoutMs / 1000,
      isUntrusted: project.isUntrusted ?? false,
    })
  }

  route(
    'GET /projects',
    { scope: 'read', allowsProjectTokens: true },
    'List the projects that the token may use',
    { response: { 200: api.projectListSchema } },
    async (request) => {
      const caller = callerOf(request)
      const known = await projects.list()
      return { projects: known.filter(({ id }) => mayUse(caller, id)).map(view) }
    },
  )

  route(
    'POST /projects',
    { scope: 'admin' },
    'Create a project from a directory, a git repository, a template or a pod',
    { body: api.newProjectSchema, response: { 201: api.projectSchema } },
    async (request, reply) => {
      const { agent_provider: provider, timeout, template, ...rest } = request.body
      const asked = fromWire({
        ...rest,
        template: template ? (typeof template === 'string' ? { name: template } : template) : undefined,
        backend: provider && backendOf(provider),
        queryTimeoutMs: timeout && millisecondsOf(timeout),
      })
      const project = await projects.create(asked, clientGone(reply), auditFor(request, now))
      return reply.code(201).send(view(project))
    },
  )

  route(
    'GET /projects/:id',
    { scope: 'read' },
    'Show a project',
    { params: api.projectParams, response: { 200: api.projectSchema } },
    async ({ params }) => view(await projects.get(params.id)),
  )

  route(
    'GET /projects/:id/files',
    { scope: 'read' },
    'Complete the name of a file in the directory of a project',
    { params: api.projectParams, querystring: api.projectFilesQuery, response: { 200: api.projectFilesSchema } },
    async ({ params, query }) => {
      const files = await projects.files(params.id, query.query, MAX_FILES)
      return files ? { files, reason: null } : { files: [], reason: IN_POD }
    },
  )

  route(
    'PATCH /projects/:id',
    { scope: 'admin' },
    'Change a project',
    { params: api.projectParams, body: api.projectChangesSchema, response: { 200: api.projectSchema } },
    async (request) => {
      const { agent_provider: provider, timeout, ...rest } = request.body
      const changes = fromWire({
        ...rest,
        backend: provider && backendOf(provider),
        queryTimeoutMs: timeout && millisecondsOf(timeout),
      })
      return view(await projects.update(request.params.id, changes, auditFor(request, now)))
    },
  )

  route(
    'DELETE /projects/:id',
    { scope: 'admin' },
    'Remove a project, its credentials and the access of tokens to it',
    { params: api.projectParams, querystring: api.removeProjectQuery, response: { 204: nothingSchema } },
    async (request, reply) => {
      const { id } = request.params
      const { delete_files: deletesFiles } = request.query
      await projects.remove(id, { deletesFiles }, auditFor(request, now))
      return reply.code(204).send()
    },
  )
}

// Aborted when the client has left or has its answer. Not on the request's `close`, which comes with the end of its
// body.
function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  raw.once('close', () => gone.abort())
  return gone.signal
}
