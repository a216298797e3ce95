// By which names an agent is meant, wherever somebody writes one.

import { BACKEND_NAMES, type BackendName } from '../types.js'

/** The HTTP API and the labels of pods call Claude Code `claudecode`; either name will do everywhere. */
export const ACCEPTED_NAMES = ['claudecode', ...BACKEND_NAMES] as const

export type AcceptedName = (typeof ACCEPTED_NAMES)[number]

export function backendOf(name: AcceptedName): BackendName {
  return name === 'claudecode' ? 'claude' : name
}

/** Undefined for a name that no agent has. */
export function findBackendName(name: string): BackendName | undefined {
  const accepted = ACCEPTED_NAMES.find((known) => known === name)
  return accepted && backendOf(accepted)
}
