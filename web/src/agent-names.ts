import type { Agent, Provider } from '../../src/client/aetheel-client.js'

const NAMES: Record<Provider, string> = {
  claudecode: 'Claude Code',
  codex: 'Codex',
  gemini: 'Gemini CLI',
  opencode: 'OpenCode',
  pi: 'Pi',
}

/** What answers as this agent: the built-in demo agent takes the place of one. */
export function nameOfAgent({ provider, is_demo: isDemo }: Pick<Agent, 'provider' | 'is_demo'>): string {
  return isDemo ? 'Demo agent' : agentName(provider)
}

/** The vendor's spelling, for any name of the agent. Anything else, such as `git`, stays as it is. */
export function agentName(provider: string): string {
  if (provider === 'claude') return NAMES.claudecode
  return Object.entries(NAMES).find(([known]) => known === provider)?.[1] ?? provider
}
