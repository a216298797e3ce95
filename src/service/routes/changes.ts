import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.js'
import { type Note, notesOf } from '../../store/audit.js'
import type { Caller } from '../dependencies.js'

/** Who asks, on a route that is not public. */
export function callerOf({ caller }: Pick<FastifyRequest, 'caller'>): Caller {
  if (caller) return caller
  throw new GatewayError('unauthorized', 'There is no token with this request. Send one as Authorization: Bearer.')
}

export function mayUse({ projects }: Caller, projectId: string): boolean {
  return projects?.includes(projectId) ?? true
}

/** Under which changes are on record: by the id of the token, since a name may be that of several. */
export function actorOf({ tokenId, name }: Caller): string {
  return `token:${tokenId} ${name}`
}

/** Puts changes on record under the token. */
export function noteOf(request: Pick<FastifyRequest, 'caller'>, now: () => number): Note {
  return notesOf(actorOf(callerOf(request)), now)
}
