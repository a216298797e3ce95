// Puts a command into the queue.

import { isDeepStrictEqual } from 'node:util'
import type { MessageOptions } from '../../channels/types.js'
import { GatewayError } from '../../errors.js'
import { withoutAskPrefix } from '../../turns/accept.js'
import { limitTurn, requireRoom } from '../../turns/limits.js'
import { storableText } from '../../turns/queue.js'
import { resolveAgent, workplaceKey } from '../../runtime/agent-choice.js'
import type { Conversation } from '../../store/conversations.js'
import type { ProjectRecord } from '../../store/projects.js'
import type { Session } from '../../store/sessions.js'
import type { Store, Tables } from '../../store/store.js'
import type { ServiceDependencies } from '../dependencies.js'
import { HTTP_CHANNEL } from '../http-channel.js'
import { addressIn, commandsOf, isIn } from './command-records.js'

export interface NewCommand {
  project: ProjectRecord
  text: string
  options: MessageOptions
  /** The name of the token. */
  author: string
  /** The client's key for this command: a repeat under the same key is the same command. */
  idempotencyKey?: string
}

export interface SubmittedCommand {
  id: string
  conversationId: string
  /** Whether it was accepted now rather than earlier under the same key. */
  isNew: boolean
}

type Dependencies = Pick<ServiceDependencies, 'config' | 'gateway' | 'now' | 'newId'>

/** Contract: when it settles, the command is on disk. Throws `conflict` for a key or stream_id of another command. */
export async function submitCommand(command: NewCommand, dependencies: Dependencies): Promise<SubmittedCommand> {
  const { config, gateway, now, newId } = dependencies
  const { project, author, idempotencyKey: key } = command
  const options = { ...command.options, projectInstance: project.instance }
  const platformId = key === undefined ? `${project.instance}:${newId()}` : `${project.instance}:key:${key}`
  const text = withoutAskPrefix(storableText(command.text))
  if (key !== undefined) {
    const earlier = await earlierCommand(platformId, { text, options }, dependencies)
    if (earlier) return earlier
  }
  const { agent, backend, missing } = resolveAgent({}, project, config, gateway.agents)
  // Report now what the worker would find later.
  if (!options.command) limitTurn(options, project, config, agent.capabilities())
  const address =
    options.sessionId === undefined
      ? addressIn(project, newId())
      : await addressOfSession({ backend, sessionId: options.sessionId }, project, gateway.store)
  const message = { address, projectId: project.id, platformId, author, text, options }
  const acceptance = await gateway.hostOf(HTTP_CHANNEL).onMessage(message, async (tables, taken, problem) => {
    const { id, conversationId, seq } = taken
    await requireProject(tables, project)
    await requireRoom(tables, commandsOf(project), config.maxWaitingCommands)
    // If stored as refused, it would stay refused under its key.
    if (problem !== undefined) throw new GatewayError('too_many', problem)
    if (options.sessionId !== undefined && seq === 1) {
      const session = { conversationId, backend, sessionId: options.sessionId, directory: workplaceKey(project) }
      await tables.sessions.choose(session, now())
    }
    // The agent is fixed now: a later change of the project's agent does not affect a waiting command. Stored as
    // chosen, so the stream says if another agent answers.
    if (!options.command) await tables.conversations.configure(conversationId, { backend: missing ?? backend })
    if (options.streamId !== undefined) await nameStream(tables, project, options.streamId, id)
  })
  if (acceptance.status === 'refused') throw new GatewayError('too_many', acceptance.reason)
  if (acceptance.status === 'duplicate') {
    const earlier = await earlierCommand(platformId, { text, options }, dependencies)
    if (earlier) return earlier
  }
  const { messageId: id, conversationId } = acceptance
  return { id, conversationId, isNew: true }
}

/** Contract: the project cannot be removed before the command is accepted. */
export async function requireProject({ projects }: Tables, { id, instance }: ProjectRecord): Promise<void> {
  if ((await projects.hold(id, 'use'))?.instance === instance) return
  throw new GatewayError('not_found', `Project ${id} was just removed. List the others with GET /projects.`)
}

/** The key under which a stream's command is stored. */
export function streamName({ instance }: ProjectRecord, streamId: string): string {
  return `stream:${instance}/${streamId}`
}

/** Permanent: event numbers would mean something else in another command's stream. */
async function nameStream(
  { channelValues }: Tables,
  project: ProjectRecord,
  streamId: string,
  commandId: string,
): Promise<void> {
  if (await channelValues.add(HTTP_CHANNEL, streamName(project, streamId), commandId)) return
  const advice = 'Choose another, or omit it.'
  const message = `Another command of project ${project.id} uses the stream_id ${streamId}. ${advice}`
  throw new GatewayError('conflict', message)
}

async function earlierCommand(
  platformId: string,
  { text, options }: Pick<NewCommand, 'text' | 'options'>,
  { gateway }: Dependencies,
): Promise<SubmittedCommand | undefined> {
  const earlier = await gateway.store.inbox.findByPlatformId(HTTP_CHANNEL, platformId)
  if (!earlier) return undefined
  if (earlier.text !== text || !isDeepStrictEqual(earlier.options, options)) {
    const advice = 'Use a new key for a new command.'
    throw new GatewayError('conflict', `This Idempotency-Key was already used with another body. ${advice}`)
  }
  return { id: earlier.id, conversationId: earlier.conversationId, isNew: false }
}

/** The address of the conversation in a session, or of a new one that will resume it. */
async function addressOfSession(
  { backend, sessionId }: Pick<Session, 'backend' | 'sessionId'>,
  project: ProjectRecord,
  store: Store,
): Promise<string> {
  const current = await conversationsOf(await store.sessions.conversationsIn({ backend, sessionId }), store)
  const own = current.find((conversation) => isIn(project, conversation))
  if (own) return own.address
  // A caller with access to one project must not read another's sessions, nor those of a project that had its id
  // before, nor the operator's elsewhere.
  const earlier = await conversationsOf(await store.runs.conversationsIn({ backend, sessionId }), store)
  const all = [...current, ...earlier]
  const isOurs = ({ channel, address, projectId }: Conversation): boolean =>
    channel === HTTP_CHANNEL ? isIn(project, { channel, address }) : projectId === project.id
  if (all.length === 0 || !all.every(isOurs)) {
    const advice = 'Omit session_id to start a new one.'
    const message = `There is no session ${sessionId} of ${backend} in project ${project.id}.`
    throw new GatewayError('not_found', `${message} ${advice}`)
  }
  // Concurrent requests must get the same address, or two agents would work in one session.
  for (let count = 1; ; count++) {
    const address = addressIn(project, `session-${count}:${backend}:${sessionId}`)
    const conversation = await store.conversations.find(HTTP_CHANNEL, address)
    if (!conversation) return address
    // A conversation that has moved to another session stays there.
    if ((await store.sessions.get(conversation.id))?.sessionId === sessionId) return address
  }
}

async function conversationsOf(
  ids: string[],
  { conversations }: Pick<Store, 'conversations'>,
): Promise<Conversation[]> {
  const found = await Promise.all(ids.map((id) => conversations.get(id)))
  return found.filter((conversation) => conversation !== undefined)
}
