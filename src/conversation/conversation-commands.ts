import type { ApprovalDecision } from '../approvals/answer-approval.js'
import { type ApprovalService, MAX_OPEN_QUESTIONS } from '../approvals/approval-service.js'
import { shortApprovalId } from '../approvals/approval-words.js'
import { resolveBackendName } from '../backends/registry.js'
import {
  type ButtonAction,
  type ButtonAnswer,
  type Channel,
  type Place,
  QUEUE_MODES,
  type QueueMode,
  type Suggestion,
} from '../channels/types.js'
import { type CommandName, COMMANDS, HELP_TEXT, MESSAGE_COMMANDS } from './command-descriptions.js'
import { suggestArguments, type SuggestionDependencies } from './command-suggestions.js'
import { shownAgent } from '../core/demo-agent.js'
import { oneLine } from '../core/one-line.js'
import { type Answer, changed, info } from './answer.js'
import { type ContinueDependencies, continuePaused } from './continuing.js'
import { choiceOf, RECENT_MS } from './conversation-choice.js'
import type { LimitedCaller } from './limited-caller.js'
import { modelCommand, OWN_MODEL } from './model-command.js'
import { listSessions, requireInstalled, resumeSession, runningText } from './session-commands.js'
import { describeUsage, MODE_WORDS, queueLine } from './conversation-words.js'
import { GatewayError } from '../errors.js'
import type { Queue } from '../turns/queue.js'
import { stopConversation, stopMessage } from '../turns/stop.js'
import type { StoppedTurn, Worker } from '../turns/work.js'
import { describeWorkplace, replyConfigOf } from '../runtime/agent-choice.js'
import { describeTool } from '../runtime/describe-tool.js'
import type { SessionManager } from '../runtime/session-manager.js'
import { duration, timeOfDay } from '../runtime/time-words.js'
import type { Approval } from '../store/approvals.js'
import type { Conversation } from '../store/conversations.js'
import type { Project } from '../store/projects.js'
import type { MessageState } from '../store/schema.js'

interface CommandDependencies extends SuggestionDependencies, Pick<ContinueDependencies, 'submit'> {
  queue: Queue
  worker: Worker
  sessions: SessionManager
  approvals: Pick<ApprovalService, 'answer'>
  channels: Pick<Channel, 'name' | 'takesEdits'>[]
  newId: () => string
}

const STOPPED_BY_OTHERS =
  'Someone else stopped your message. Changes already made are kept. Send it again to have it finished.'
/** Channels that let people in handle the command themselves: they know who people are. */
const ADMISSION_ELSEWHERE = 'Use this command on Discord or WhatsApp. "aetheel people" lists who was let in.'
const FINISHED = 'That has already finished.'
const DAY_MS = 86_400_000
const LISTED_MESSAGES = 10
/** How far `/status` searches for the author's own message. */
const SEARCHED_MESSAGES = 100
const NAMED_TOOLS = 3

/** Names that people know from the agents. */
const ALIASES: Partial<Record<string, CommandName>> = { clear: 'new' }

/** Commands that act on a conversation. */
export type ActionName = Exclude<CommandName, (typeof MESSAGE_COMMANDS)[number] | 'help'>

interface CommandInput {
  conversation: Conversation
  author: string
  argument: string
  caller?: LimitedCaller | undefined
}

/** A line such as `/model opus`. */
export interface GivenCommand {
  /** Undefined if there is no such command. */
  name: CommandName | undefined
  /** As it was typed. */
  word: string
  argument: string
}

export function parseCommand(line: string): GivenCommand {
  const [, word = '', argument = ''] = /^\/(\S*)\s*(.*)$/s.exec(line.trim()) ?? []
  const typed = word.toLowerCase()
  const name = COMMANDS.find((command) => command.name === (ALIASES[typed] ?? typed))?.name
  return { name, word, argument: argument.trim() }
}

export function unknownCommand(word: string): string {
  return `Unknown command /${word}. /help lists the commands; //${word} sends /${word} to the agent.`
}

/** The slash commands of every channel. Each returns a text for the person. */
export class ConversationCommands {
  readonly #handlers: Record<ActionName, (input: CommandInput) => Promise<Answer>> = {
    new: ({ conversation }) => this.#new(conversation),
    stop: (input) => this.#stopFirst(input),
    continue: ({ conversation }) => continuePaused(this.dependencies, conversation),
    approve: (input) => this.#approve(input),
    deny: (input) => this.#deny(input),
    status: (input) => this.#status(input),
    queue: (input) => this.#queue(input),
    model: ({ conversation, argument }) => modelCommand(this.dependencies, conversation, argument),
    backend: (input) => this.#backend(input),
    sessions: ({ conversation, caller }) => listSessions(this.dependencies, conversation, caller),
    resume: ({ conversation, argument, caller }) => resumeSession(this.dependencies, conversation, argument, caller),
    project: (input) => this.#project(input),
    allow: async () => info(ADMISSION_ELSEWHERE),
    disallow: async () => info(ADMISSION_ELSEWHERE),
    usage: ({ conversation }) => this.#usage(conversation),
  }

  constructor(private readonly dependencies: CommandDependencies) {}

  async run(channel: string, place: Place, author: string, line: string): Promise<Answer> {
    const { name, word, argument } = parseCommand(line)
    if (name === undefined) return info(unknownCommand(word))
    if (name === 'help') return info(HELP_TEXT)
    if (isMessageCommand(name)) return info('Send it as a message.')
    return answerOf(async () => this.act(await this.#enter(channel, place), author, name, argument))
  }

  /** Like `run`, in an existing conversation. Contract: throws the errors that `run` returns as text. */
  async act(
    conversation: Conversation,
    actor: string,
    name: ActionName,
    argument = '',
    caller?: LimitedCaller,
  ): Promise<Answer> {
    const answer = await this.#handlers[name]({ conversation, author: caller?.name ?? actor, argument, caller })
    if (answer.isChange) await this.#audit(actor, name, answer.subject ?? conversation.id, argument)
    return answer
  }

  /** Like `act` with `stop`, but only for the given message: if it has ended, the next one is left alone. */
  async stopMessage(conversation: Conversation, author: string, messageId: string): Promise<Answer> {
    const answer = await this.#stop(conversation.id, messageId, FINISHED)
    if (!answer.isChange) return answer
    await this.#tellAuthor(conversation, author, messageId)
    await this.#audit(author, 'stop', messageId)
    return answer
  }

  /** Like `act` with `continue`, but only if the given message is the paused one. */
  async continueMessage(conversation: Conversation, author: string, messageId: string): Promise<Answer> {
    const answer = await continuePaused(this.dependencies, conversation, messageId)
    if (answer.isChange) await this.#audit(author, 'continue', messageId)
    return answer
  }

  /** A button of a message or of a question. */
  async button(action: ButtonAction, id: string, author: string): Promise<ButtonAnswer> {
    try {
      const { text, isChange } = await this.#press(action, id, author)
      if (isChange) await this.#audit(author, action, id)
      return { text, isDone: true }
    } catch (error) {
      if (error instanceof GatewayError) return { text: error.message, isDone: false }
      throw error
    }
  }

  #press(action: ButtonAction, id: string, author: string): Promise<Answer> {
    if (action === 'stop') return this.#stopPressed(id)
    if (action === 'retry') return this.#retry(id)
    if (action === 'continue') return this.#continuePressed(id)
    return this.#decide(id, {
      decision: action === 'deny' ? 'deny' : 'allow',
      ...(action === 'always' && { remember: 'this' }),
      by: author,
    })
  }

  /** Completions for a partly typed argument. Contract: changes nothing. */
  async suggest(channel: string, place: Place, command: string, typed: string): Promise<Suggestion[]> {
    return suggestArguments(this.dependencies, channel, place, command, typed)
  }

  async #audit(actor: string, action: string, subject: string, detail = ''): Promise<void> {
    const { store, now } = this.dependencies
    await store.audit.add({ at: now(), actor, action, subject, ...(detail !== '' && { detail }) })
  }

  async #new({ id }: Conversation): Promise<Answer> {
    const hadSession = await this.dependencies.sessions.reset(id)
    return changed(
      hadSession ? 'The next message starts a fresh session.' : 'There is no session yet; the next message starts one.',
    )
  }

  async #stopFirst({ conversation, author }: CommandInput): Promise<Answer> {
    const first = await this.dependencies.store.jobs.first(conversation.id)
    const answer = await this.#stop(conversation.id, undefined, 'Nothing is running here.')
    if (answer.isChange && first) await this.#tellAuthor(conversation, author, first.messageId)
    return answer
  }

  /**
   * Where people share a conversation but see only their own answers, the author would not notice the stop.
   */
  async #tellAuthor({ channel, address }: Conversation, by: string, messageId: string): Promise<void> {
    const { store, queue, config } = this.dependencies
    if (replyConfigOf(channel, config)?.session?.scope !== 'global') return
    const message = await store.inbox.get(messageId)
    const isDone = message?.state === 'answered' || message?.state === 'failed'
    if (message?.kind === 'message' && !isDone && message.author !== by) {
      await queue.say({ channel, address }, STOPPED_BY_OTHERS, message.author)
    }
  }

  /** With `messageId`, only that message. */
  async #stop(conversationId: string, messageId: string | undefined, nothing: string): Promise<Answer> {
    const target = messageId ?? (await this.dependencies.store.jobs.first(conversationId))?.messageId
    if (target === undefined) return info(nothing)
    // Looked up first: once the turn has ended, so have its tools.
    const tools = await this.#tools(target)
    const outcome = await (messageId === undefined
      ? stopConversation(conversationId, this.dependencies)
      : stopMessage(messageId, this.dependencies))
    if (outcome.kind === 'finished') return info(nothing)
    if (outcome.kind === 'asked') return changed('Another gateway is working on it and was asked to stop.')
    const waiting = await this.#waitingText(conversationId)
    if (outcome.kind === 'dropped') return changed(`Dropped the waiting message.${waiting}`)
    const { turn } = outcome
    const running = turn.messageId === target ? tools.filter(({ isRunning }) => isRunning) : []
    return changed(stoppedText(turn, running.map(describeTool)) + waiting)
  }

  async #stopPressed(messageId: string): Promise<Answer> {
    const message = await this.dependencies.store.inbox.get(messageId)
    return message ? this.#stop(message.conversationId, messageId, FINISHED) : info(FINISHED)
  }

  async #continuePressed(messageId: string): Promise<Answer> {
    const { store } = this.dependencies
    const message = await store.inbox.get(messageId)
    const conversation = message && (await store.conversations.get(message.conversationId))
    return conversation ? continuePaused(this.dependencies, conversation, messageId) : info(FINISHED)
  }

  async #retry(messageId: string): Promise<Answer> {
    const { store, queue } = this.dependencies
    const message = await store.inbox.get(messageId)
    if (message && message.state !== 'failed') return info(NOT_FAILED[message.state])
    await queue.retry(messageId)
    return changed('Queued again.')
  }

  async #approve({ conversation, author, argument }: CommandInput): Promise<Answer> {
    const words = argument.split(/\s+/).filter((word) => word !== '')
    const isAlways = (word: string): boolean => word.toLowerCase() === 'always'
    const [wanted, ...others] = words.filter((word) => !isAlways(word))
    if (others.length > 0) return info('Write /approve or /approve always, with the id if several are waiting.')
    const { id } = await this.#findApproval(conversation, wanted)
    return this.#decide(id, { decision: 'allow', ...(words.some(isAlways) && { remember: 'this' }), by: author })
  }

  async #deny({ conversation, author, argument }: CommandInput): Promise<Answer> {
    const { id } = await this.#findApproval(conversation, argument === '' ? undefined : argument)
    return this.#decide(id, { decision: 'deny', by: author })
  }

  async #decide(id: string, decision: ApprovalDecision): Promise<Answer> {
    const { summary } = await this.dependencies.approvals.answer(id, decision)
    const always = decision.remember ? ', now and always' : ''
    const text = `${decision.decision === 'allow' ? `Allowed${always}` : 'Denied'}: ${summary}`
    return { ...changed(text), subject: id }
  }

  /**
   * The open question; `wanted` is the beginning of its id. Contract: throws `not_found` or `request_invalid`, saying
   * what to do.
   */
  async #findApproval({ id: conversationId }: Conversation, wanted: string | undefined): Promise<Approval> {
    const { approvals } = this.dependencies.store
    const waiting = await approvals.list({ states: ['asked'], conversationId }, MAX_OPEN_QUESTIONS)
    const fitting = waiting.filter(({ id }) => id.startsWith(wanted?.toLowerCase() ?? ''))
    const [first, another] = fitting
    if (first && !another) return first
    const lines = waiting.map((approval) => `${shortApprovalId(approval)}: ${approval.summary}`)
    if (first) throw new GatewayError('request_invalid', ['Which one? Add its id.', ...lines].join('\n'))
    if (waiting.length === 0) throw new GatewayError('not_found', 'Nothing is waiting for approval here.')
    throw new GatewayError(
      'not_found',
      [`No request ${oneLine(wanted ?? '', 40)} is waiting here.`, ...lines].join('\n'),
    )
  }

  async #waitingText(conversationId: string): Promise<string> {
    const count = await this.dependencies.store.jobs.countOpen(conversationId)
    return count === 0 ? '' : ` ${count} more ${count === 1 ? 'message is' : 'messages are'} waiting.`
  }

  async #tools(messageId: string) {
    const { runs, events } = this.dependencies.store
    const run = await runs.running(messageId)
    return run ? events.latestTools(run.id) : []
  }

  async #status({ conversation, author }: CommandInput): Promise<Answer> {
    const { store, now } = this.dependencies
    const { id, projectId } = conversation
    const { backend, missing, model, workplace } = await choiceOf(this.dependencies, conversation)
    const session = await store.sessions.get(id)
    const usage = await store.figures.usage({ conversationId: id }, startOfDay(now()))
    return info(
      [
        `agent: ${this.#shown(backend)}${missing === undefined ? '' : ` (${missing} is not registered here)`}`,
        `model: ${model ?? OWN_MODEL}`,
        ...(projectId === undefined ? [] : [`project: ${projectId}`]),
        `directory: ${describeWorkplace(workplace)}`,
        session?.backend === backend
          ? `session: ${session.sessionId}, used ${duration(now() - session.usedAt)} ago`
          : 'session: none yet',
        ...(await this.#workLines(id)),
        `queue: ${await this.#queueText(id, author)}`,
        `queue mode: ${modeText(this.#modeOf(conversation))}`,
        `usage today: ${describeUsage(usage)}`,
      ].join('\n'),
    )
  }

  async #workLines(conversationId: string): Promise<string[]> {
    const { store, now } = this.dependencies
    const first = await store.jobs.first(conversationId)
    const run = first?.state === 'active' ? await store.runs.running(first.messageId) : undefined
    if (!run) return []
    const [tool] = await store.events.latestTools(run.id)
    const waiting = await store.approvals.list({ states: ['asked'], conversationId }, MAX_OPEN_QUESTIONS)
    const asked = waiting.map((approval) => `waiting for approval (${shortApprovalId(approval)}): ${approval.summary}`)
    const at = now()
    const since = `${this.#shown(run.backend)} for ${duration(at - run.startedAt)}, since ${timeOfDay(run.startedAt, at)}`
    return [`working: ${since}${tool ? `; ${tool.isRunning ? 'now' : 'last'} ${describeTool(tool)}` : ''}`, ...asked]
  }

  async #queueText(conversationId: string, author: string): Promise<string> {
    const { store, now } = this.dependencies
    const open = await store.jobs.countOpen(conversationId)
    const messages = await store.inbox.waiting(conversationId, SEARCHED_MESSAGES)
    const [first] = messages
    const waitMs = first ? first.dueAt - now() : 0
    const own = messages.findIndex((message) => message.author === author && message.state !== 'active')
    const place = own <= 0 ? '' : `; yours is number ${own + 1}`
    if (first?.state === 'active') return `working, ${open - 1} waiting${place}`
    const until = waitMs > 0 ? `retrying in ${duration(waitMs)}, ` : ''
    return `${until}${open} waiting${place}`
  }

  #modeOf({ queueMode }: Conversation): QueueMode {
    return queueMode ?? this.dependencies.config.queueMode
  }

  async #queue({ conversation, argument }: CommandInput): Promise<Answer> {
    if (argument !== '') return this.#chooseMode(conversation, argument)
    const { store, scrub, now } = this.dependencies
    const { id } = conversation
    const open = await store.jobs.countOpen(id)
    const messages = await store.inbox.waiting(id, LISTED_MESSAGES)
    const mode = `Mode ${modeText(this.#modeOf(conversation))}.`
    if (messages.length === 0) return info(`Nothing is running or waiting here.\n${mode}`)
    const lines = messages.map((message, index) =>
      queueLine(index + 1, { ...message, text: scrub(message.text) }, now()),
    )
    const more = open - messages.length
    const takesEdits = this.dependencies.channels.some(
      (channel) => channel.name === conversation.channel && channel.takesEdits,
    )
    const mayEdit = takesEdits && messages.some(({ state }) => state !== 'active')
    return info(
      [
        ...lines,
        ...(more > 0 ? [`… and ${more} more`] : []),
        ...(mayEdit ? ['You can edit or delete your message while it waits.'] : []),
        mode,
      ].join('\n'),
    )
  }

  async #chooseMode({ id }: Conversation, argument: string): Promise<Answer> {
    const { conversations } = this.dependencies.store
    const wanted = argument.toLowerCase()
    const queueMode = QUEUE_MODES.find((mode) => mode === wanted) ?? null
    if (queueMode === null && wanted !== 'default') {
      const known = QUEUE_MODES.join(', ')
      throw new GatewayError('request_invalid', `Unknown mode ${oneLine(argument, 40)}. Known: ${known}, default.`)
    }
    await conversations.configure(id, { queueMode })
    const chosen = (await conversations.get(id))?.queueMode ?? this.dependencies.config.queueMode
    return changed(`The mode is ${modeText(chosen)}.`)
  }

  #shown(backend: string): string {
    return shownAgent(backend, this.dependencies.config)
  }

  async #backend({ conversation, argument }: CommandInput): Promise<Answer> {
    if (argument === '')
      return info(`The agent is ${this.#shown((await choiceOf(this.dependencies, conversation)).backend)}.`)
    const { store, now } = this.dependencies
    const backend = argument === 'default' ? null : resolveBackendName(argument)
    const { id } = conversation
    const { backend: before, workplace } = await choiceOf(this.dependencies, conversation)
    if (backend !== null) await requireInstalled(this.dependencies, backend, workplace)
    if (backend === before) return info(`The agent is already ${this.#shown(backend)}.`)
    await store.conversations.configure(id, { backend, model: null })
    const next = (await choiceOf(this.dependencies, (await store.conversations.get(id)) ?? conversation)).backend
    if (next === before) return changed(`The agent is ${this.#shown(next)} again, as configured.`)
    // A session of one agent means nothing to another.
    await store.sessions.reset(id, now())
    return changed(`The next message goes to ${this.#shown(next)}, in a fresh session.`)
  }

  async #project({ conversation, argument }: CommandInput): Promise<Answer> {
    const { store, now } = this.dependencies
    const { id } = conversation
    const projects = await store.projects.list()
    if (argument === '') {
      const { backend, workplace } = await choiceOf(this.dependencies, conversation)
      const shown = `${projectText(conversation.projectId)}: ${backend} works in ${describeWorkplace(workplace)}.`
      const known = projects.map((project) => `${project.id}: ${describeWorkplace(project)}`)
      return info(known.length === 0 ? shown : [shown, 'Available:', ...known].join('\n'))
    }
    const chosen = argument === 'default' ? null : findProject(projects, argument).id
    const after = await store.transaction(async (tables) => {
      await tables.conversations.configure(id, { projectId: chosen })
      const configured = (await tables.conversations.get(id)) ?? conversation
      // Most agents find a session only in the directory where it began.
      if (configured.projectId !== conversation.projectId) await tables.sessions.reset(id, now())
      return configured
    })
    if (after.projectId === conversation.projectId) return changed(`${projectText(after.projectId)}, as before.`)
    const { backend, workplace } = await choiceOf(this.dependencies, after)
    const next = `the next message goes to ${backend} in ${describeWorkplace(workplace)}, in a fresh session.`
    return changed(`${projectText(after.projectId)}: ${next}${await runningText(this.dependencies, id)}`)
  }

  async #usage({ id, projectId }: Conversation): Promise<Answer> {
    const { store, now } = this.dependencies
    const since = now() - RECENT_MS
    const scope = projectId === undefined ? 'everything without a project' : `project ${projectId}`
    return info(
      [
        `here today (UTC): ${describeUsage(await store.figures.usage({ conversationId: id }, startOfDay(now())))}`,
        `here, last 30 days: ${describeUsage(await store.figures.usage({ conversationId: id }, since))}`,
        `${scope}, last 30 days: ${describeUsage(await store.figures.usage({ projectId }, since))}`,
      ].join('\n'),
    )
  }

  /** Also updates a known conversation: its parent or the project of its address may have changed. */
  async #enter(channel: string, place: Place): Promise<Conversation> {
    const { store, now, newId } = this.dependencies
    const { seq: _, ...conversation } = await store.conversations.enter({ channel, ...place }, newId(), now())
    return conversation
  }
}

function isMessageCommand(name: CommandName): name is (typeof MESSAGE_COMMANDS)[number] {
  return MESSAGE_COMMANDS.some((known) => known === name)
}

/** A user error is an answer too. */
async function answerOf(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof GatewayError) return info(error.message)
    throw error
  }
}

/** Why a message cannot be retried. */
const NOT_FAILED: Record<Exclude<MessageState, 'failed'>, string> = {
  open: 'It is already waiting or running.',
  answered: 'It has been answered already.',
  cancelled: 'It was stopped. Send it again.',
  dropped: 'It was removed from the queue. Send it again.',
  refused: 'It was not accepted. Send it again.',
}

function stoppedText({ backend, durationMs }: StoppedTurn, tools: string[]): string {
  if (backend === '') return 'Stopped before an agent started.'
  const named = tools.slice(0, NAMED_TOOLS).join(', ')
  return `Stopped ${backend} after ${Math.round(durationMs / 1000)} s${named === '' ? '' : `, during ${named}`}.`
}

function modeText(mode: QueueMode): string {
  return `${mode}: ${MODE_WORDS[mode]}`
}

function projectText(id: string | undefined): string {
  return id === undefined ? 'No project' : `The project is ${id}`
}

/** Contract: throws `not_found` with the known projects. */
function findProject(projects: Project[], wanted: string): Project {
  const found =
    projects.find(({ id }) => id === wanted) ?? projects.find(({ id }) => id.toLowerCase() === wanted.toLowerCase())
  if (found) return found
  const known = projects.map(({ id }) => id).join(', ') || 'none yet'
  throw new GatewayError('not_found', `There is no project ${oneLine(wanted, 64)}. Known: ${known}.`)
}

function startOfDay(now: number): number {
  return now - (now % DAY_MS)
}
