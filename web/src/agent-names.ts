import type { Provider } from '../../src/client/aetheel-client.js'

const NAMES: Record<Provider, string> = {
  claudecode: 'Claude Code',
  codex: 'Codex',
  gemini: 'Gemini CLI',
  opencode: 'OpenCode',
  pi: 'Pi',
}

/** As its makers write it, by any of its names; what is no agent, such as `git`, as it is. */
export function agentName(provider: string): string {
  if (provider === 'claude') return NAMES.claudecode
  return Object.entries(NAMES).find(([known]) => known === provider)?.[1] ?? provider
}
