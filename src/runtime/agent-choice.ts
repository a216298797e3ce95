import type { ReplyConfig } from '../config-inbound.js'
import type { GatewayConfig } from '../config.js'
import type { Conversation } from '../store/conversations.js'
import type { Project } from '../store/projects.js'

/** The channel that the block `inbound.reply` is about. */
const RELAYED_CHANNEL = 'whatsapp'

/** How messages of a channel are answered, where the operator says that for it alone. */
export function replyConfigOf(
  channel: string | undefined,
  { inbound }: Pick<GatewayConfig, 'inbound'>,
): ReplyConfig | undefined {
  return channel === RELAYED_CHANNEL ? inbound?.reply : undefined
}

/** Which agent a conversation talks to, and its model where one was chosen: the nearest choice counts. */
export function chooseAgent(
  conversation: Pick<Conversation, 'backend' | 'model'> & Partial<Pick<Conversation, 'channel'>>,
  project: Pick<Project, 'backend' | 'model'> | undefined,
  config: Pick<GatewayConfig, 'agentBackend' | 'inbound'>,
): { backend: string; model?: string } {
  const ofChannel = replyConfigOf(conversation.channel, config)?.agent?.kind ?? config.agentBackend
  const ofProject = project?.backend ?? ofChannel
  const backend = conversation.backend ?? ofProject
  // A model of one agent is unknown to another.
  const model = conversation.model ?? (backend === ofProject ? project?.model : undefined)
  return { backend, ...(model !== undefined && { model }) }
}

/** Where a conversation's agent works. */
export function chooseDirectory(
  channel: string | undefined,
  project: Pick<Project, 'directory'> | undefined,
  config: Pick<GatewayConfig, 'workingDir' | 'inbound'>,
): string {
  return project?.directory ?? replyConfigOf(channel, config)?.cwd ?? config.workingDir
}
