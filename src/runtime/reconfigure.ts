import { isDeepStrictEqual } from 'node:util'
import { applyConfig, type ConfigChange } from '../config/reload.js'
import { secretsOfConfig } from '../config/secrets.js'
import type { GatewayConfig } from '../config.js'
import type { Scrubber } from '../credentials/scrubber.js'
import { syncConfiguredProjects } from '../projects/configured-projects.js'
import type { Store } from '../store/store.js'
import type { GatewayAgents } from './gateway-agents.js'
import type { HookManager } from './hook-manager.js'

interface ReconfiguredParts {
  store: Store
  scrubber: Pick<Scrubber, 'add'>
  hooks: Pick<HookManager, 'replace'>
  agents: Pick<GatewayAgents, 'registry' | 'reopen'>
  now: () => number
}

/**
 * Applies a new configuration as far as possible at run time. Contract: changes `config`, or throws and changes
 * nothing.
 */
export async function reconfigure(
  config: GatewayConfig,
  next: GatewayConfig,
  { store, scrubber, hooks, agents, now }: ReconfiguredParts,
): Promise<ConfigChange> {
  scrubber.add(secretsOfConfig(next))
  // First, since only this can fail.
  if (!isDeepStrictEqual(config.projects, next.projects)) await syncConfiguredProjects(next, store, now())
  const { changed, waiting } = applyConfig(config, next)
  if (changed.includes('hooks')) hooks.replace(config.hooks)
  if (changed.includes('codeAgentDefault')) agents.registry.setDefault(config.codeAgentDefault)
  if (changed.length > 0) agents.reopen()
  return { changed, waiting }
}
