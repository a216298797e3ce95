import { BACKEND_NAMES, type BackendName } from '../backends/types.js'
import { type Place, QUEUE_MODES, type Suggestion } from '../channels/types.js'
import type { CommandName } from './command-descriptions.js'
import { oneLine } from '../core/one-line.js'
import { choiceOf, type ConversationChoice, recentSessions } from './conversation-choice.js'
import { knownModels, type ModelDependencies } from './model-command.js'
import { MODE_WORDS, sessionLine } from './conversation-words.js'
import { describeWorkplace } from '../runtime/agent-choice.js'

export interface SuggestionDependencies extends ModelDependencies {
  isInstalled(backend: BackendName): Promise<boolean>
}

type Suggester = (dependencies: SuggestionDependencies, conversation: ConversationChoice) => Promise<Suggestion[]>

const MAX_SUGGESTIONS = 25
/** Platforms wait a few seconds for suggestions; a late list is shown the next time. */
const SUGGEST_WITHIN_MS = 1_500
/** The longest entry that every platform accepts. */
const MAX_CHARACTERS = 100

const DEFAULT: Suggestion = { label: 'default', value: 'default' }

const SUGGESTERS: Partial<Record<CommandName, Suggester>> = {
  backend: async (dependencies, conversation) => {
    // What a pod has installed is unknown until it is used.
    const { pod } = (await choiceOf(dependencies, conversation)).workplace
    const isAvailable = async (name: BackendName): Promise<boolean> =>
      pod !== undefined || (await dependencies.isInstalled(name))
    const agents = await Promise.all(
      BACKEND_NAMES.map(async (name) => ({ name, isAvailable: await isAvailable(name) })),
    )
    const available = agents.filter(({ isAvailable }) => isAvailable).map(({ name }) => ({ label: name, value: name }))
    const missing = agents.filter(({ isAvailable }) => !isAvailable)
    return [...available, ...missing.map(({ name }) => ({ label: `${name} (not installed)`, value: name })), DEFAULT]
  },

  model: async (dependencies, conversation) => {
    const { backend } = await choiceOf(dependencies, conversation)
    const { used, listed } = await knownModels(dependencies, backend, SUGGEST_WITHIN_MS)
    return [...[...used, ...listed].map((model) => ({ label: model, value: model })), DEFAULT]
  },

  queue: async () => [...QUEUE_MODES.map((mode) => ({ label: `${mode}: ${MODE_WORDS[mode]}`, value: mode })), DEFAULT],

  project: async ({ store }) => {
    const projects = await store.projects.list()
    return [
      ...projects.map((project) => ({ label: `${project.id}: ${describeWorkplace(project)}`, value: project.id })),
      DEFAULT,
    ]
  },

  resume: async (dependencies, conversation) => {
    const sessions = await recentSessions(dependencies, conversation)
    return sessions.map((session, index) => ({
      label: sessionLine(index + 1, session, false, dependencies.now()),
      value: session.sessionId,
    }))
  },
}

/** Completions for a partly typed argument. Contract: changes nothing. */
export async function suggestArguments(
  dependencies: SuggestionDependencies,
  channel: string,
  place: Place,
  command: string,
  typed: string,
): Promise<Suggestion[]> {
  const suggester = Object.hasOwn(SUGGESTERS, command) ? SUGGESTERS[command as CommandName] : undefined
  if (!suggester) return []
  const suggestions = await suggester(dependencies, await choiceAt(dependencies, channel, place))
  const part = typed.trim().toLowerCase()
  return suggestions
    .filter(({ value }) => value.length <= MAX_CHARACTERS)
    .filter(({ label, value }) => `${label}\n${value}`.toLowerCase().includes(part))
    .slice(0, MAX_SUGGESTIONS)
    .map(({ label, value }) => ({ label: oneLine(label, MAX_CHARACTERS), value }))
}

/** The choices of a conversation, or those it would start with. */
async function choiceAt(
  { store }: SuggestionDependencies,
  channel: string,
  { address, parent, projectId }: Place,
): Promise<ConversationChoice> {
  const known = await store.conversations.find(channel, address)
  if (known) return known
  const parentConversation = parent === undefined ? undefined : await store.conversations.find(channel, parent)
  const { id: _, ...inherited } = parentConversation ?? {}
  return { channel, ...(projectId !== undefined && { projectId }), ...inherited }
}
