import { BACKEND_NAMES, type BackendName } from '../backends/types.js'
import { type Place, QUEUE_MODES, type Suggestion } from '../channels/types.js'
import type { CommandName } from './command-descriptions.js'
import { oneLine } from '../core/one-line.js'
import {
  type ChoiceDependencies,
  choiceOf,
  type ConversationChoice,
  RECENT_MS,
  recentSessions,
} from './conversation-choice.js'
import { MODE_WORDS, sessionLine } from './conversation-words.js'
import { describeWorkplace } from '../runtime/agent-choice.js'

export interface SuggestionDependencies extends ChoiceDependencies {
  isInstalled(backend: BackendName): Promise<boolean>
  /** Those an agent is known to have. */
  modelsOf(backend: BackendName): string[]
}

type Offer = (dependencies: SuggestionDependencies, conversation: ConversationChoice) => Promise<Suggestion[]>

const MOST_SUGGESTIONS = 25
/** No platform's list has room for more. */
const MOST_CHARACTERS = 100

const DEFAULT: Suggestion = { label: 'default', value: 'default' }

const OFFERS: Partial<Record<CommandName, Offer>> = {
  backend: async (dependencies, conversation) => {
    // What a pod has is seen when it is used.
    const { pod } = (await choiceOf(dependencies, conversation)).workplace
    const isThere = async (name: BackendName): Promise<boolean> =>
      pod !== undefined || (await dependencies.isInstalled(name))
    const agents = await Promise.all(BACKEND_NAMES.map(async (name) => ({ name, isThere: await isThere(name) })))
    const there = agents.filter(({ isThere }) => isThere).map(({ name }) => ({ label: name, value: name }))
    const missing = agents.filter(({ isThere }) => !isThere)
    return [...there, ...missing.map(({ name }) => ({ label: `${name} (not installed)`, value: name })), DEFAULT]
  },

  model: async (dependencies, conversation) => {
    const { store, modelsOf, now } = dependencies
    const { backend } = await choiceOf(dependencies, conversation)
    const used = await store.runs.models(backend, now() - RECENT_MS, MOST_SUGGESTIONS)
    const models = new Set([...used, ...modelsOf(backend)])
    return [...[...models].map((model) => ({ label: model, value: model })), DEFAULT]
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

/** What could stand after a command, of which the person has typed some part. Contract: changes nothing. */
export async function suggestArguments(
  dependencies: SuggestionDependencies,
  channel: string,
  place: Place,
  command: string,
  typed: string,
): Promise<Suggestion[]> {
  const offer = Object.hasOwn(OFFERS, command) ? OFFERS[command as CommandName] : undefined
  if (!offer) return []
  const offered = await offer(dependencies, await choiceAt(dependencies, channel, place))
  const part = typed.trim().toLowerCase()
  return offered
    .filter(({ value }) => value.length <= MOST_CHARACTERS)
    .filter(({ label, value }) => `${label}\n${value}`.toLowerCase().includes(part))
    .slice(0, MOST_SUGGESTIONS)
    .map(({ label, value }) => ({ label: oneLine(label, MOST_CHARACTERS), value }))
}

/** What was chosen there, or would hold if somebody began to write there. */
async function choiceAt(
  { store }: SuggestionDependencies,
  channel: string,
  { address, parent, projectId }: Place,
): Promise<ConversationChoice> {
  const known = await store.conversations.find(channel, address)
  if (known) return known
  const above = parent === undefined ? undefined : await store.conversations.find(channel, parent)
  const { id: _, ...inherited } = above ?? {}
  return { channel, ...(projectId !== undefined && { projectId }), ...inherited }
}
