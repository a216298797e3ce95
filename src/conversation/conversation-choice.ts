import type { GatewayConfig } from '../config.js'
import type { BackendRegistry } from '../backends/registry.js'
import type { BackendName } from '../backends/types.js'
import { chooseWorkplace, workplaceKey, resolveAgent, type Workplace } from '../runtime/agent-choice.js'
import type { Conversation } from '../store/conversations.js'
import type { SessionFilter, UsedSession } from '../store/runs.js'
import type { Store } from '../store/store.js'

export interface ChoiceDependencies {
  config: Pick<GatewayConfig, 'agentBackend' | 'isDemoAgent' | 'backendModel' | 'workingDir' | 'inbound' | 'queueMode'>
  agents: Pick<BackendRegistry, 'resolve'>
  store: Store
  /** Hides known secrets, which earlier messages may contain. */
  scrub(text: string): string
  now: () => number
}

/** What was chosen in a conversation. */
export type ConversationChoice = Pick<Conversation, 'projectId' | 'backend' | 'model'> &
  Partial<Pick<Conversation, 'id' | 'channel'>>

/** Most agents delete sessions after this long, and nobody remembers older ones. */
export const RECENT_MS = 30 * 86_400_000
const LISTED_SESSIONS = 10

interface Choice {
  /** The agent that answers. */
  backend: BackendName
  /** The chosen agent, if this gateway does not have it. */
  missing?: string
  /** The agent's default if omitted. */
  model?: string
  workplace: Workplace
}

/** The agent, model and workplace in effect for a conversation. */
export async function choiceOf(
  { config, agents, store }: Omit<ChoiceDependencies, 'scrub' | 'now'>,
  conversation: ConversationChoice,
): Promise<Choice> {
  const { projectId } = conversation
  const project = projectId === undefined ? undefined : await store.projects.get(projectId)
  const { backend, missing, model: chosen } = resolveAgent(conversation, project, config, agents)
  const model = chosen ?? (backend === config.agentBackend ? config.backendModel : undefined)
  return {
    backend,
    ...(missing !== undefined && { missing }),
    ...(model !== undefined && { model }),
    workplace: chooseWorkplace(conversation.channel, project, config),
  }
}

/** The sessions a conversation could resume, most recently used first. */
export async function recentSessions(
  dependencies: ChoiceDependencies,
  conversation: ConversationChoice,
  filter: Pick<SessionFilter, 'prefix' | 'visibility'> = {},
): Promise<UsedSession[]> {
  const { store, scrub, now } = dependencies
  const directory = workplaceKey((await choiceOf(dependencies, conversation)).workplace)
  const { id: conversationId } = conversation
  const wanted = { conversationId, directory, since: now() - RECENT_MS, ...filter }
  const sessions = await store.runs.sessions(wanted, LISTED_SESSIONS)
  return sessions.map((session) => ({ ...session, question: scrub(session.question) }))
}
