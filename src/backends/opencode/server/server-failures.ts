// Server errors as failures of a turn.

import { messageOf } from '../../../errors.js'
import { type Failed, findSign } from '../../engine/failures.js'
import { OPENCODE } from '../format.js'
import { type OpenCodeClient, OpenCodeServerError } from './client.js'

export function saysBrokenDown(error: unknown): error is OpenCodeServerError {
  return error instanceof OpenCodeServerError && (error.status ?? 0) >= 500
}

export function isOutOfReach(error: unknown): boolean {
  return error instanceof OpenCodeServerError && ['silent', 'refused', 'unreachable'].includes(error.kind)
}

/** Why a turn could not begin. An error of the server is neither the agent's own nor about the agent's login. */
export function failedCall(error: unknown, isSent: boolean): Failed {
  const message = messageOf(error)
  if (!(error instanceof OpenCodeServerError)) return { reason: 'exit', message }
  const { kind, status } = error
  // The turn may have begun all the same.
  if (kind === 'silent' && isSent) return { reason: 'exit', message }
  if (isOutOfReach(error)) return { reason: 'spawn', message }
  if (status === 401 || status === 403) return { reason: 'spawn', message, isLasting: true }
  return { reason: findSign(message, OPENCODE.failureSigns)?.[1] ?? 'exit', message }
}

export function lostTurn(client: OpenCodeClient, hasBegun: boolean): Failed {
  if (!hasBegun) {
    return { reason: 'exit', message: client.fault('silent', 'accepted the prompt but did not start the turn').message }
  }
  const what = 'lost the turn: it was restarted, or the turn was ended there.'
  return { reason: 'exit', message: `The OpenCode server at ${client.url} ${what}` }
}

export function lostServer(client: OpenCodeClient, error: OpenCodeServerError): Failed {
  if (!isOutOfReach(error)) return { reason: 'exit', message: error.message }
  const what = error.kind === 'silent' ? 'stopped answering' : 'went away during the turn'
  return { reason: 'exit', message: client.fault(error.kind, what).message }
}
