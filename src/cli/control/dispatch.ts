import { GatewayError } from '../../errors.js'
import { type Handlers, type MethodName, PARAMETERS, type Peer } from './protocol.js'

/** Contract: rejects with `request_invalid` when there is no such method, or it is called with something else. */
export async function dispatch(
  handlers: Partial<Handlers>,
  method: string,
  parameters: unknown,
  peer: Peer,
): Promise<unknown> {
  if (!isKnown(handlers, method)) {
    const known = Object.keys(handlers).join(', ')
    const advice = 'The gateway may be of another version than this command: start it again.'
    throw new GatewayError('request_invalid', `The gateway knows no method "${method}", only ${known}. ${advice}`)
  }
  const parsed = PARAMETERS[method].safeParse(parameters ?? {})
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'params'}: ${message}`)
    throw new GatewayError('request_invalid', `${method}: ${problems.join('; ')}`)
  }
  // The schema and the handler are of the same method, which the type of a table cannot say.
  const handle = handlers[method] as (parameters: unknown, peer: Peer) => Promise<unknown>
  return handle(parsed.data, peer)
}

function isKnown(handlers: Partial<Handlers>, method: string): method is MethodName {
  return Object.hasOwn(PARAMETERS, method) && Object.hasOwn(handlers, method)
}
