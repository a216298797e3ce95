import type { BackendRegistry } from '../backends/registry.js'
import type { AgentBackend, BackendName } from '../backends/types.js'
import type { ReplyConfig } from '../config/inbound.js'
import type { GatewayConfig } from '../config.js'
import { describePod, type PodAddress, podDirectory } from '../kubernetes/types.js'
import type { Conversation } from '../store/conversations.js'
import type { Project } from '../store/projects.js'

/** The channel that `inbound.reply` configures. */
const RELAYED_CHANNEL = 'whatsapp'

/** The reply settings of a channel that has its own. */
export function replyConfigOf(
  channel: string | undefined,
  { inbound }: Pick<GatewayConfig, 'inbound'>,
): ReplyConfig | undefined {
  return channel === RELAYED_CHANNEL ? inbound?.reply : undefined
}

type ChosenIn = Pick<Conversation, 'backend' | 'model'> & Partial<Pick<Conversation, 'channel'>>
type ProjectDefaults = Pick<Project, 'backend' | 'model'> | undefined
type Defaults = Pick<GatewayConfig, 'agentBackend' | 'inbound'>

/** The choice for a conversation, whether or not this gateway has that agent. The most specific choice wins. */
export function chooseAgent(
  conversation: ChosenIn,
  project: ProjectDefaults,
  config: Defaults,
): { backend: string; model?: string } {
  const channelDefault = replyConfigOf(conversation.channel, config)?.agent?.kind ?? config.agentBackend
  const projectDefault = project?.backend ?? channelDefault
  const backend = conversation.backend ?? projectDefault
  // A model of one agent is unknown to another.
  const model = conversation.model ?? (backend === projectDefault ? project?.model : undefined)
  return { backend, ...(model !== undefined && { model }) }
}

/**
 * The agent that answers in a conversation, and the model if one was chosen. If this gateway does not have the chosen
 * agent, it is `missing` and the default one answers.
 */
export function resolveAgent(
  conversation: ChosenIn,
  project: ProjectDefaults,
  config: Defaults,
  agents: Pick<BackendRegistry, 'resolve'>,
): { agent: AgentBackend; backend: BackendName; missing?: string; model?: string } {
  const { backend: chosen, model } = chooseAgent(conversation, project, config)
  const { agent, missing } = agents.resolve(chosen)
  const backend = agent.name()
  if (missing !== undefined) return { agent, backend, missing }
  return { agent, backend, ...(model !== undefined && { model }) }
}

export interface Workplace {
  /** Within the pod, if there is one. */
  directory: string
  pod?: PodAddress
}

/** The directory a conversation's agent works in. */
export function chooseWorkplace(
  channel: string | undefined,
  project: Workplace | undefined,
  config: Pick<GatewayConfig, 'workingDir' | 'inbound'>,
): Workplace {
  if (!project) return { directory: replyConfigOf(channel, config)?.cwd ?? config.workingDir }
  const { directory, pod } = project
  return { directory, ...(pod && { pod }) }
}

/** A unique text for a workplace. Sessions belong to it. */
export function workplaceKey({ directory, pod }: Workplace): string {
  return pod ? podDirectory(pod, directory) : directory
}

export function describeWorkplace({ directory, pod }: Workplace): string {
  return pod ? `${directory} in ${describePod(pod)}` : directory
}
