import { randomUUID } from 'node:crypto'
import { BackendRegistry } from '../backends/registry.js'
import type { GatewayConfig } from '../config.js'
import type { Pods } from '../kubernetes/types.js'
import type { Log } from '../log.js'
import { gitRunner } from '../projects/git-clone.js'
import { ProjectService } from '../projects/project-service.js'
import { ConfiguredAgents } from '../runtime/configured-agents.js'
import { configuredPods } from '../runtime/configured-pods.js'
import { type Note, notesOf } from '../store/audit.js'
import type { Store } from '../store/store.js'

/** Changes projects in the database, which a running gateway rereads for each message. */
export interface ProjectTools {
  store: Store
  agents: BackendRegistry
  projects: ProjectService
  pods: Pods
  now: () => number
  /** For the audit log. */
  note: Note
}

export function projectTools(
  store: Store,
  config: GatewayConfig,
  log: Log,
  environment: NodeJS.ProcessEnv,
): ProjectTools {
  const now = Date.now
  const agents = new BackendRegistry(now)
  const configured = new ConfiguredAgents(config, { environment, passVariables: config.agentEnvPass, log })
  for (const backend of configured.all()) agents.register(backend)
  agents.setDefault(config.codeAgentDefault)
  const run = gitRunner(environment)
  const projects = new ProjectService({ store, config, agents, run, now, newId: randomUUID, log })
  return { store, agents, pods: configuredPods(config, environment), now, projects, note: notesOf('terminal', now) }
}
