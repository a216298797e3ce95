// The names of the agents in HTTP, health and metrics.

import { AGENTS } from '../agents.js'
import { BACKEND_NAMES, type BackendName } from '../types.js'

type Agents = typeof AGENTS
type ProviderOf<Name extends BackendName> = Agents[Name] extends { provider: infer Provider } ? Provider : Name

export type ProviderName = { [Name in BackendName]: ProviderOf<Name> }[BackendName]

export function providerOf(backend: BackendName): ProviderName {
  const agent = AGENTS[backend]
  return ('provider' in agent ? agent.provider : backend) as ProviderName
}

export const PROVIDER_NAMES: ProviderName[] = BACKEND_NAMES.map(providerOf)

/** For a run, whose backend may also be `shell` or `git`. */
export function runnerName(backend: string): string {
  const known = BACKEND_NAMES.find((name) => name === backend)
  return known ? providerOf(known) : backend
}
