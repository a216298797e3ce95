// `/model`: shows the model in use and the others known, and chooses one.

import type { BackendName } from '../backends/types.js'
import { shownAgent } from '../core/demo-agent.js'
import type { Conversation } from '../store/conversations.js'
import { type Answer, changed, info } from './answer.js'
import { type ChoiceDependencies, choiceOf, RECENT_MS } from './conversation-choice.js'

export interface ModelDependencies extends ChoiceDependencies {
  /** The models that an agent's command line lists; empty if it does not answer in time. */
  modelsOf(backend: BackendName, withinMs: number): Promise<string[]>
}

export const OWN_MODEL = "the agent's default"
const LIST_WITHIN_MS = 10_000
const MAX_USED = 25
/** The agent's own command lists the rest. */
const MAX_SHOWN = 15

export async function modelCommand(
  dependencies: ModelDependencies,
  conversation: Conversation,
  argument: string,
): Promise<Answer> {
  if (argument === '') return info(await describeModels(dependencies, conversation))
  if (!/^[^\s\p{Cc}-][^\s\p{Cc}]*$/u.test(argument)) {
    return info(`${JSON.stringify(argument)} is not a valid model name.`)
  }
  const { conversations } = dependencies.store
  const { id } = conversation
  // Stored with its agent: a model of one agent is unknown to another.
  const { backend } = await choiceOf(dependencies, conversation)
  if (argument !== 'default') {
    await conversations.configure(id, { backend, model: argument })
    return changed(`The next message uses the model ${argument}.`)
  }
  await conversations.configure(id, { backend: null, model: null })
  const next = await choiceOf(dependencies, (await conversations.get(id)) ?? conversation)
  // The agent was chosen separately and stays.
  if (next.backend !== backend) await conversations.configure(id, { backend, model: null })
  return changed('The model is the configured one again.')
}

async function describeModels(dependencies: ModelDependencies, conversation: Conversation): Promise<string> {
  const { store, config } = dependencies
  const { backend, model, workplace } = await choiceOf(dependencies, conversation)
  const agent = shownAgent(backend, config)
  const answered = await store.runs.latestAnswer(conversation.id, backend)
  const told = answered === undefined ? undefined : await store.events.modelOf(answered)
  // A command line in a pod may have other models than the one here.
  const { used, listed } = await knownModels(dependencies, backend, workplace.pod ? 0 : LIST_WITHIN_MS)
  return [
    `The model is ${model ?? OWN_MODEL}.`,
    ...(told === undefined || told === model ? [] : [`The last answer from ${agent} here used ${told}.`]),
    ...(used.length === 0 ? [] : [`Recently used with ${agent}: ${shown(used)}`]),
    ...(listed.length === 0 ? [] : [`${agent} lists: ${shown(listed)}`]),
    '/model <name> chooses one of these, or any other the agent knows; /model default resets it.',
  ].join('\n')
}

/** Models that answered recently in this gateway, and the others that the agent's command line lists. */
export async function knownModels(
  { store, modelsOf, now }: Pick<ModelDependencies, 'store' | 'modelsOf' | 'now'>,
  backend: BackendName,
  withinMs: number,
): Promise<{ used: string[]; listed: string[] }> {
  const since = now() - RECENT_MS
  const [asked, told, listed] = await Promise.all([
    store.runs.models(backend, since, MAX_USED),
    store.events.modelsOf(backend, since),
    withinMs === 0 ? [] : modelsOf(backend, withinMs),
  ])
  const used = [...new Set([...asked, ...told])].slice(0, MAX_USED)
  return { used, listed: listed.filter((model) => !used.includes(model)) }
}

function shown(models: string[]): string {
  const rest = models.length - MAX_SHOWN
  return `${models.slice(0, MAX_SHOWN).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}
