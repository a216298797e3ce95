// The agents, one line each, and the names they go by. Everything that lists agents or knows their names derives from
// this table.

import { ClaudeCodeBackend } from './claude/backend.js'
import { CodexBackend } from './codex/backend.js'
import { GeminiBackend } from './gemini/backend.js'
import { OpenCodeBackend } from './opencode/backend.js'
import { PiBackend } from './pi/backend.js'

/** `provider` is the name used in HTTP, health, metrics and pod labels, where it differs. */
export const AGENTS = {
  claude: { backend: ClaudeCodeBackend, provider: 'claudecode' },
  codex: { backend: CodexBackend },
  gemini: { backend: GeminiBackend },
  opencode: { backend: OpenCodeBackend },
  pi: { backend: PiBackend },
} as const

type Agents = typeof AGENTS
export type BackendName = keyof Agents
type ProviderOf<Name extends BackendName> = Agents[Name] extends { provider: infer Provider } ? Provider : Name
export type ProviderName = { [Name in BackendName]: ProviderOf<Name> }[BackendName]
/** Either name is accepted wherever one is given. */
export type AcceptedName = BackendName | ProviderName

export const BACKEND_NAMES = Object.keys(AGENTS) as readonly BackendName[]
export const PROVIDER_NAMES: ProviderName[] = BACKEND_NAMES.map(providerOf)
export const ACCEPTED_NAMES: readonly AcceptedName[] = [
  ...new Set(BACKEND_NAMES.flatMap((name) => [providerOf(name), name])),
]

export function providerOf(backend: BackendName): ProviderName {
  const agent = AGENTS[backend]
  return ('provider' in agent ? agent.provider : backend) as ProviderName
}

export function findBackendName(name: string): BackendName | undefined {
  return BACKEND_NAMES.find((known) => known === name || providerOf(known) === name)
}

export function backendOf(name: AcceptedName): BackendName {
  return findBackendName(name) as BackendName
}

/** For a run, whose backend may also be `shell` or `git`. */
export function runnerName(backend: string): string {
  const known = BACKEND_NAMES.find((name) => name === backend)
  return known ? providerOf(known) : backend
}
