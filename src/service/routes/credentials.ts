import { type CredentialInfo, GLOBAL_OWNER } from '../../credentials/credential-store.js'
import * as api from '../api/projects.js'
import { nothingSchema } from '../api/values.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'
import { auditFor } from './changes.js'

export function registerCredentialRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'credentials')
  const { credentials, projects, now } = dependencies

  // For all projects, and for one.
  for (const { path, params } of [
    { path: '/credentials', params: api.allProjectsParams },
    { path: '/projects/:id/credentials', params: api.projectParams },
  ] as const) {
    const whose = path === '/credentials' ? 'for all projects' : 'for one project'

    route(
      `GET ${path}`,
      { scope: 'admin' },
      `List the credentials ${whose}, without their values`,
      { params, response: { 200: api.credentialListSchema } },
      async (request) => {
        const infos = await credentials.list(await ownerOf(request.params))
        return { credentials: infos.map(credentialView) }
      },
    )

    route(
      `PUT ${path}/:name`,
      { scope: 'admin' },
      `Set a credential ${whose}`,
      {
        params: params.extend(api.credentialParams.shape),
        body: api.newCredentialSchema,
        response: { 204: nothingSchema },
      },
      async (request, reply) => {
        const { name } = request.params
        const owner = await ownerOf(request.params)
        await credentials.set(owner, name, request.body.value, request.body.kind, auditFor(request, now))
        return reply.code(204).send()
      },
    )

    route(
      `DELETE ${path}/:name`,
      { scope: 'admin' },
      `Remove a credential ${whose}`,
      { params: params.extend(api.credentialParams.shape), response: { 204: nothingSchema } },
      async (request, reply) => {
        const { name } = request.params
        const owner = await ownerOf(request.params)
        await credentials.remove(owner, name, auditFor(request, now))
        return reply.code(204).send()
      },
    )
  }

  route(
    'POST /credentials/rotate',
    { scope: 'admin' },
    'Encrypt all credentials with a new key',
    { response: { 200: api.rotatedSchema } },
    async (request) => {
      return { count: await credentials.rotate(auditFor(request, now)) }
    },
  )

  async function ownerOf({ id }: { id?: string; name?: string }): Promise<string> {
    if (id === undefined) return GLOBAL_OWNER
    return (await projects.get(id)).id
  }
}

function credentialView(info: CredentialInfo): api.Credential {
  return toWire(api.credentialSchema, { ...info, projectId: info.owner === GLOBAL_OWNER ? null : info.owner })
}
