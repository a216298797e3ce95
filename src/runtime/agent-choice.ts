import type { GatewayConfig } from '../config.js'
import type { Conversation } from '../store/conversations.js'
import type { Project } from '../store/projects.js'

/** Which agent a conversation talks to, and its model where one was chosen: the nearest choice counts. */
export function chooseAgent(
  conversation: Pick<Conversation, 'backend' | 'model'>,
  project: Pick<Project, 'backend' | 'model'> | undefined,
  config: Pick<GatewayConfig, 'agentBackend'>,
): { backend: string; model?: string } {
  const ofProject = project?.backend ?? config.agentBackend
  const backend = conversation.backend ?? ofProject
  // A model of one agent is unknown to another.
  const model = conversation.model ?? (backend === ofProject ? project?.model : undefined)
  return { backend, ...(model !== undefined && { model }) }
}
