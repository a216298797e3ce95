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

/** Puts changes on record under the token: by its id, since a name may be that of several. */
export function noteOf(request: Pick<FastifyRequest, 'caller'>, now: () => number): Note {
  const { tokenId, name } = callerOf(request)
  return notesOf(`token:${tokenId} ${name}`, now)
}
