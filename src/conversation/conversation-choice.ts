import type { GatewayConfig } from '../config.js'
import { chooseAgent, chooseDirectory } from '../runtime/agent-choice.js'
import type { Conversation } from '../store/conversations.js'
import type { UsedSession } from '../store/runs.js'
import type { Store } from '../store/store.js'

export interface ChoiceDependencies {
  config: Pick<GatewayConfig, 'agentBackend' | 'backendModel' | 'workingDir' | 'inbound'>
  store: Store
  now: () => number
}

/** What was chosen in a conversation. */
export type ConversationChoice = Pick<Conversation, 'projectId' | 'backend' | 'model'> &
  Partial<Pick<Conversation, 'id' | 'channel'>>

/** Most agents clear their sessions away after so long, and nobody remembers more. */
export const RECENT_MS = 30 * 86_400_000
const LISTED_SESSIONS = 10

/** What a conversation works with; the model in words. */
export async function choiceOf(
  { config, store }: ChoiceDependencies,
  conversation: ConversationChoice,
): Promise<{ backend: string; model: string; directory: string }> {
  const { projectId } = conversation
  const project = projectId === undefined ? undefined : await store.projects.get(projectId)
  const { backend, model } = chooseAgent(conversation, project, config)
  const configured = backend === config.agentBackend ? config.backendModel : undefined
  const directory = chooseDirectory(conversation.channel, project, config)
  return { backend, model: model ?? configured ?? "the agent's own", directory }
}

/** The sessions that a conversation could go on in, last used first. */
export async function recentSessions(
  dependencies: ChoiceDependencies,
  conversation: ConversationChoice,
  prefix?: string,
): Promise<UsedSession[]> {
  const { store, now } = dependencies
  const { directory } = await choiceOf(dependencies, conversation)
  const { id: conversationId } = conversation
  const filter = { conversationId, directory, since: now() - RECENT_MS, ...(prefix !== undefined && { prefix }) }
  return store.runs.sessions(filter, LISTED_SESSIONS)
}
