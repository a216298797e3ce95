import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.js'
import type { Caller, ServiceDependencies } from '../dependencies.js'

/** Who asks, on a route that is not public. */
export function callerOf({ caller }: Pick<FastifyRequest, 'caller'>): Caller {
  if (caller) return caller
  throw new GatewayError('unauthorized', 'There is no token with this request. Send one as Authorization: Bearer.')
}

export function mayUse({ projects }: Caller, projectId: string): boolean {
  return projects?.includes(projectId) ?? true
}

/** Puts a change on record under the name of the token. Contract: the detail holds no text of a person and no secret. */
export async function noteChange(
  { gateway, now }: Pick<ServiceDependencies, 'gateway' | 'now'>,
  request: Pick<FastifyRequest, 'caller'>,
  action: string,
  subject: string,
  detail?: string,
): Promise<void> {
  const actor = `token:${callerOf(request).name}`
  await gateway.store.audit.add({ at: now(), actor, action, subject, ...(detail !== undefined && { detail }) })
}
