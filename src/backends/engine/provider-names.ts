// The agents as HTTP, health and metrics name them: spec 3 says `claudecode` for what we call `claude`.

import { BACKEND_NAMES, type BackendName } from '../types.js'

const PROVIDERS = {
  claude: 'claudecode',
  codex: 'codex',
  gemini: 'gemini',
  opencode: 'opencode',
  pi: 'pi',
} as const satisfies Record<BackendName, string>

export type ProviderName = (typeof PROVIDERS)[BackendName]

export const PROVIDER_NAMES: ProviderName[] = Object.values(PROVIDERS)

export function providerOf(backend: BackendName): ProviderName {
  return PROVIDERS[backend]
}

/** Of a run, which may also be of `shell` or `git`. */
export function runnerName(backend: string): string {
  const known = BACKEND_NAMES.find((name) => name === backend)
  return known ? providerOf(known) : backend
}
