import { z } from 'zod'
import { type CredentialInfo, GLOBAL_OWNER } from '../../credentials/credential-store.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { noteOf } from './changes.js'
import { isoTime, projectParams, timeSchema } from './schemas.js'

export const credentialSchema = z.object({
  name: z.string(),
  kind: z.enum(['variable', 'file']).describe('How agents get it: as a variable, or as a file that a variable names.'),
  project_id: z.string().nullable().describe('Null: all projects get it.'),
  created_at: timeSchema,
  updated_at: timeSchema,
})

const listSchema = z.object({ credentials: z.array(credentialSchema).describe('Values are never told.') })

const nameParams = z.object({ name: z.string().min(1).max(100).describe('The variable that agents find it in.') })

export const credentialBodySchema = z.strictObject({
  value: z.string(),
  kind: z.enum(['variable', 'file']).default('variable'),
})

export function registerCredentialRoutes(app: App, dependencies: ServiceDependencies): void {
  const { credentials, projects, now } = dependencies

  // For all projects, and for one.
  for (const { path, params } of [
    { path: '/credentials', params: z.object({}) },
    { path: '/projects/:id/credentials', params: projectParams },
  ]) {
    const whose = path === '/credentials' ? 'of all projects' : 'of one project'

    app.route({
      method: 'GET',
      url: path,
      config: { scope: 'admin' },
      schema: {
        summary: `The names of the credentials ${whose}`,
        tags: ['credentials'],
        params,
        response: { 200: listSchema },
      },
      handler: async (request) => {
        const infos = await credentials.list(await ownerOf(request.params))
        return { credentials: infos.map(credentialView) }
      },
    })

    app.route({
      method: 'PUT',
      url: `${path}/:name`,
      config: { scope: 'admin' },
      schema: {
        summary: `Set a credential ${whose}`,
        tags: ['credentials'],
        params: params.extend(nameParams.shape),
        body: credentialBodySchema,
        response: { 204: z.undefined() },
      },
      handler: async (request, reply) => {
        const { name } = request.params
        const owner = await ownerOf(request.params)
        await credentials.set(owner, name, request.body.value, request.body.kind, noteOf(request, now))
        return reply.code(204).send()
      },
    })

    app.route({
      method: 'DELETE',
      url: `${path}/:name`,
      config: { scope: 'admin' },
      schema: {
        summary: `Remove a credential ${whose}`,
        tags: ['credentials'],
        params: params.extend(nameParams.shape),
        response: { 204: z.undefined() },
      },
      handler: async (request, reply) => {
        const { name } = request.params
        const owner = await ownerOf(request.params)
        await credentials.remove(owner, name, noteOf(request, now))
        return reply.code(204).send()
      },
    })
  }

  app.route({
    method: 'POST',
    url: '/credentials/rotate',
    config: { scope: 'admin' },
    schema: {
      summary: 'Seal all credentials with a new key',
      tags: ['credentials'],
      response: { 200: z.object({ count: z.number().describe('How many there are.') }) },
    },
    handler: async (request) => {
      return { count: await credentials.rotate(noteOf(request, now)) }
    },
  })

  async function ownerOf({ id }: { id?: string; name?: string }): Promise<string> {
    if (id === undefined) return GLOBAL_OWNER
    return (await projects.get(id)).id
  }
}

function credentialView({
  owner,
  name,
  kind,
  createdAt,
  updatedAt,
}: CredentialInfo): z.output<typeof credentialSchema> {
  return {
    name,
    kind,
    project_id: owner === GLOBAL_OWNER ? null : owner,
    created_at: isoTime(createdAt),
    updated_at: isoTime(updatedAt),
  }
}
