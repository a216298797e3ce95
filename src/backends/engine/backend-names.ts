// The names an agent goes by, wherever one is given.

import { providerOf, type ProviderName } from './provider-names.js'
import { BACKEND_NAMES, type BackendName } from '../types.js'

export type AcceptedName = BackendName | ProviderName

/** The HTTP API and pod labels use different names for some agents; either name is accepted everywhere. */
export const ACCEPTED_NAMES: readonly AcceptedName[] = [
  ...new Set(BACKEND_NAMES.flatMap((name) => [providerOf(name), name])),
]

export function backendOf(name: AcceptedName): BackendName {
  return findBackendName(name) as BackendName
}

export function findBackendName(name: string): BackendName | undefined {
  return BACKEND_NAMES.find((known) => known === name || providerOf(known) === name)
}
