import type { BackendRegistry } from '../backends/registry.js'
import type { AgentBackend, BackendName } from '../backends/types.js'
import type { ReplyConfig } from '../config/inbound.js'
import type { GatewayConfig } from '../config.js'
import { describePod, type PodAddress, podDirectory } from '../kubernetes/types.js'
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

/** Who answers in a conversation: the agent chosen there or, where this gateway has no such agent, the default. */
export function resolveAgent(
  conversation: Parameters<typeof chooseAgent>[0],
  project: Parameters<typeof chooseAgent>[1],
  config: Parameters<typeof chooseAgent>[2],
  agents: Pick<BackendRegistry, 'resolve'>,
): { agent: AgentBackend; backend: BackendName; missing?: string; model?: string } {
  const { backend: chosen, model } = chooseAgent(conversation, project, config)
  const { agent, missing } = agents.resolve(chosen)
  const backend = agent.name()
  if (missing !== undefined) return { agent, backend, missing }
  return { agent, backend, ...(model !== undefined && { model }) }
}

export interface Workplace {
  /** Of the pod, where there is one. */
  directory: string
  pod?: PodAddress
}

/** Where a conversation's agent works. */
export function chooseWorkplace(
  channel: string | undefined,
  project: Workplace | undefined,
  config: Pick<GatewayConfig, 'workingDir' | 'inbound'>,
): Workplace {
  if (!project) return { directory: replyConfigOf(channel, config)?.cwd ?? config.workingDir }
  const { directory, pod } = project
  return { directory, ...(pod && { pod }) }
}

/** One text for one place: sessions are at home there. */
export function homeOf({ directory, pod }: Workplace): string {
  return pod ? podDirectory(pod, directory) : directory
}

/** For people. */
export function describePlace({ directory, pod }: Workplace): string {
  return pod ? `${directory} in ${describePod(pod)}` : directory
}
