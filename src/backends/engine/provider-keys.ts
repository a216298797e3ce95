import type { LoginPlace } from './login.js'
import type { AgentLogin } from '../types.js'

/** Variables that hold a key of a model provider, rather than a region, a URL or an id. */
const KEY =
  /(?:_API_KEY|_AUTH_TOKEN|_OAUTH_TOKEN|_ACCESS_TOKEN|_API_TOKEN|_BEARER_TOKEN_BEDROCK|_GITHUB_TOKEN|_APIKEY|_PAT)$|^(?:HF_TOKEN|AWS_ACCESS_KEY_ID|AWS_PROFILE)$/

/** Logged in by a key of any provider, for agents that work with all of them. */
export function byProviderKey(place: LoginPlace): AgentLogin | undefined {
  return place.byVariable(...place.variables().filter((name) => KEY.test(name)))
}
