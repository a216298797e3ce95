import { GatewayError } from '../errors.js'

/** The only match. Contract: throws `not_found` if there is none, `request_invalid` if there are several. */
export function onlyOne<T>(found: readonly T[], none: string, several: string): T {
  const [first, ...others] = found
  if (first === undefined) throw new GatewayError('not_found', none)
  if (others.length > 0) throw new GatewayError('request_invalid', several)
  return first
}
