import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.js'
import { type Note, notesOf } from '../../store/audit.js'
import type { Caller } from '../dependencies.js'

/** The caller of a route that is not public. */
export function callerOf({ caller }: Pick<FastifyRequest, 'caller'>): Caller {
  if (caller) return caller
  throw new GatewayError('unauthorized', 'This request needs a token. Send one as "Authorization: Bearer".')
}

export function mayUse({ projects }: Caller, projectId: string): boolean {
  return projects?.includes(projectId) ?? true
}

/** The actor in the audit log: includes the token's id, since names are not unique. */
export function actorOf({ tokenId, name }: Caller): string {
  return `token:${tokenId} ${name}`
}

/** Writes audit entries in the name of the request's token. */
export function auditFor(request: Pick<FastifyRequest, 'caller'>, now: () => number): Note {
  return notesOf(actorOf(callerOf(request)), now)
}
