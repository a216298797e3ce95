import { GatewayError } from '../../errors.js'
import { type Handlers, type MethodName, PARAMETERS, type Peer } from './protocol.js'

/** Contract: rejects with `request_invalid` for an unknown method or wrong parameters. */
export async function dispatch(
  handlers: Partial<Handlers>,
  method: string,
  parameters: unknown,
  peer: Peer,
): Promise<unknown> {
  if (!isKnown(handlers, method)) {
    const known = Object.keys(handlers).join(', ')
    const advice = 'The gateway may run another version than this command: restart it.'
    throw new GatewayError('request_invalid', `Unknown method "${method}". Known: ${known}. ${advice}`)
  }
  const parsed = PARAMETERS[method].safeParse(parameters ?? {})
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'params'}: ${message}`)
    throw new GatewayError('request_invalid', `${method}: ${problems.join('; ')}`)
  }
  // Schema and handler belong to the same method, which the table's type cannot express.
  const handle = handlers[method] as (parameters: unknown, peer: Peer) => Promise<unknown>
  return handle(parsed.data, peer)
}

function isKnown(handlers: Partial<Handlers>, method: string): method is MethodName {
  return Object.hasOwn(PARAMETERS, method) && Object.hasOwn(handlers, method)
}
