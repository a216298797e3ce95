// By which names an agent is meant, wherever somebody writes one.

import { providerOf, type ProviderName } from './provider-names.js'
import { BACKEND_NAMES, type BackendName } from '../types.js'

export type AcceptedName = BackendName | ProviderName

/** The HTTP API and the labels of pods have names of their own for some; either name will do everywhere. */
export const ACCEPTED_NAMES: readonly AcceptedName[] = [
  ...new Set(BACKEND_NAMES.flatMap((name) => [providerOf(name), name])),
]

export function backendOf(name: AcceptedName): BackendName {
  return findBackendName(name) as BackendName
}

/** Undefined for a name that no agent has. */
export function findBackendName(name: string): BackendName | undefined {
  return BACKEND_NAMES.find((known) => known === name || providerOf(known) === name)
}
