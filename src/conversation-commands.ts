import { resolveBackendName } from './backends/registry.js'
import { BACKEND_NAMES, type BackendName } from './backends/types.js'
import type { GatewayConfig } from './config.js'
import { GatewayError } from './errors.js'
import type { Queue } from './queue/queue.js'
import type { Worker } from './queue/worker.js'
import { chooseAgent } from './runtime/agent-choice.js'
import type { SessionManager } from './runtime/session-manager.js'
import type { Conversation } from './store/conversations.js'
import type { Store } from './store/store.js'

interface CommandDependencies {
  config: Pick<GatewayConfig, 'agentBackend' | 'backendModel'>
  store: Store
  queue: Queue
  worker: Worker
  sessions: SessionManager
  isInstalled(backend: BackendName): Promise<boolean>
  now: () => number
  newId: () => string
}

const HELP = {
  new: 'begin a fresh session',
  stop: 'end what the agent is doing',
  status: 'what is going on here',
  model: 'show the model, or choose one: /model <name>; /model default takes the choice back',
  backend: `show the agent, or choose one: /backend <${BACKEND_NAMES.join('|')}>; /backend default takes the choice back`,
  help: 'this list',
} as const

type CommandName = keyof typeof HELP

const HELP_TEXT = Object.entries(HELP)
  .map(([command, meaning]) => `/${command}: ${meaning}`)
  .join('\n')

/** Whether a line is meant for the gateway and not for the agent: `/stop`, but not `/etc/hosts is empty`. */
export function isCommand(line: string): boolean {
  return /^\/[a-z]+(?:\s|$)/i.test(line)
}

/** What people can tell the gateway from any channel. Each command answers with a sentence for the person. */
export class ConversationCommands {
  readonly #handlers: Record<CommandName, (conversation: Conversation, argument: string) => Promise<string>> = {
    new: (conversation) => this.#new(conversation),
    stop: (conversation) => this.#stop(conversation),
    status: (conversation) => this.#status(conversation),
    model: (conversation, argument) => this.#model(conversation, argument),
    backend: (conversation, argument) => this.#backend(conversation, argument),
    help: async () => HELP_TEXT,
  }

  constructor(private readonly dependencies: CommandDependencies) {}

  async run(channel: string, address: string, author: string, line: string): Promise<string> {
    const [, word = '', argument = ''] = /^\/(\S*)\s*(.*)$/s.exec(line.trim()) ?? []
    const name = word.toLowerCase()
    if (!Object.hasOwn(HELP, name)) return `There is no command /${word}. /help lists those there are.`
    try {
      const conversation = await this.#conversation(channel, address)
      const answer = await this.#handlers[name as CommandName](conversation, argument.trim())
      const changesSomething = name === 'new' || name === 'stop' || argument.trim() !== ''
      if (changesSomething) await this.#note(author, name, conversation.id, argument)
      return answer
    } catch (error) {
      if (error instanceof GatewayError) return error.message
      throw error
    }
  }

  async #new({ id }: Conversation): Promise<string> {
    const hadSession = await this.dependencies.sessions.reset(id)
    return hadSession
      ? 'The next message begins a fresh session.'
      : 'There is no session yet; the next message begins one.'
  }

  async #stop({ id }: Pick<Conversation, 'id'>): Promise<string> {
    const { store, queue, worker } = this.dependencies
    const stopped = await worker.cancel(id)
    if (stopped) {
      const seconds = Math.round(stopped.durationMs / 1000)
      return `Stopped ${stopped.backend} after ${seconds} s.${await this.#waiting(id)}`
    }
    const first = await store.inbox.first(id)
    if (!first) return 'Nothing is running here.'
    if (first.state === 'active') {
      await store.inbox.requestCancel(first.messageId)
      return 'Another gateway works on it and was asked to stop.'
    }
    const outcome = await queue.drop(first.messageId)
    // It was taken up in this very moment.
    if (outcome === 'active') return this.#stop({ id })
    if (outcome === 'finished') return 'Nothing is running here.'
    return `Dropped the message that waited.${await this.#waiting(id)}`
  }

  async #waiting(conversationId: string): Promise<string> {
    const count = await this.dependencies.store.inbox.countOpen(conversationId)
    return count === 0 ? '' : ` ${count} more ${count === 1 ? 'message waits' : 'messages wait'}.`
  }

  async #status(conversation: Conversation): Promise<string> {
    const { store, now } = this.dependencies
    const { backend, model } = await this.#choice(conversation)
    const session = await store.sessions.get(conversation.id)
    const first = await store.inbox.first(conversation.id)
    const open = await store.inbox.countOpen(conversation.id)
    const seconds = first ? Math.max(0, Math.round((first.dueAt - now()) / 1000)) : 0
    const work =
      first?.state === 'active'
        ? `working, ${open - 1} waiting`
        : seconds > 0
          ? `waiting ${seconds} s before it tries again, ${open} waiting`
          : `${open} waiting`
    return [
      `agent: ${backend}`,
      `model: ${model}`,
      ...(conversation.projectId === undefined ? [] : [`project: ${conversation.projectId}`]),
      `session: ${session?.backend === backend ? session.sessionId : 'none yet'}`,
      `queue: ${work}`,
    ].join('\n')
  }

  async #model(conversation: Conversation, argument: string): Promise<string> {
    if (argument === '') return `The model is ${(await this.#choice(conversation)).model}.`
    if (!/^[^\s\p{Cc}-][^\s\p{Cc}]*$/u.test(argument)) return `${JSON.stringify(argument)} is not the name of a model.`
    const model = argument === 'default' ? null : argument
    // With its agent: a model of one is unknown to another.
    const { backend } = await this.#choice(conversation)
    await this.dependencies.store.conversations.configure(conversation.id, { backend, model })
    return model === null ? 'The model is the configured one again.' : `The next message goes to the model ${model}.`
  }

  async #backend(conversation: Conversation, argument: string): Promise<string> {
    if (argument === '') return `The agent is ${(await this.#choice(conversation)).backend}.`
    const backend = argument === 'default' ? null : resolveBackendName(argument)
    const { store, sessions, isInstalled } = this.dependencies
    if (backend !== null && !(await isInstalled(backend))) {
      return `${backend} is not installed where the gateway runs. "aetheel doctor" says how to install it.`
    }
    // A model of one agent is unknown to another, and so is its session.
    await store.conversations.configure(conversation.id, { backend, model: null })
    await sessions.reset(conversation.id)
    const next = backend === null ? 'the configured agent' : backend
    return `The next message goes to ${next}, in a fresh session.`
  }

  async #choice(conversation: Conversation): Promise<{ backend: string; model: string }> {
    const { config, store } = this.dependencies
    const project = conversation.projectId === undefined ? undefined : await store.projects.get(conversation.projectId)
    const { backend, model } = chooseAgent(conversation, project, config)
    const configured = backend === config.agentBackend ? config.backendModel : undefined
    return { backend, model: model ?? configured ?? "the agent's own" }
  }

  async #conversation(channel: string, address: string): Promise<Conversation> {
    const { store, now, newId } = this.dependencies
    const known = await store.conversations.find(channel, address)
    if (known) return known
    const { id } = await store.conversations.enter(channel, address, newId(), now())
    return { id, channel, address }
  }

  async #note(actor: string, action: string, subject: string, detail: string): Promise<void> {
    await this.dependencies.store.audit.add({
      at: this.dependencies.now(),
      actor,
      action,
      subject,
      ...(detail !== '' && { detail }),
    })
  }
}
