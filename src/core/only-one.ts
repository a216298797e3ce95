import { GatewayError } from '../errors.js'

/** What a person's words mean. Contract: throws `not_found` if that is nothing, `request_invalid` if it is several. */
export function onlyOne<T>(found: readonly T[], none: string, several: string): T {
  const [first, ...others] = found
  if (first === undefined) throw new GatewayError('not_found', none)
  if (others.length > 0) throw new GatewayError('request_invalid', several)
  return first
}
