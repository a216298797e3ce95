// How a command gets into the queue.

import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { MessageOptions } from '../../channels/types.js'
import { askedText } from '../../conversation/conversation-commands.js'
import { GatewayError } from '../../errors.js'
import { chooseAgent } from '../../runtime/agent-choice.js'
import type { ProjectRecord } from '../../store/projects.js'
import type { ServiceDependencies } from '../dependencies.js'
import { HTTP_CHANNEL } from '../http-channel.js'
import { addressIn, isIn } from './command-records.js'

export interface NewCommand {
  project: ProjectRecord
  text: string
  options: MessageOptions
  /** The name of the token. */
  author: string
  /** The client's own name for this command: one that comes again under it is the same. */
  idempotencyKey?: string
}

export interface SubmittedCommand {
  id: string
  conversationId: string
  /** Whether it was taken now, and not before under the same key. */
  isNew: boolean
}

type Dependencies = Pick<ServiceDependencies, 'config' | 'gateway' | 'now' | 'newId'>

/** Contract: when it settles the command is on disk. Throws `conflict` for a key that stands for another command. */
export async function submitCommand(command: NewCommand, dependencies: Dependencies): Promise<SubmittedCommand> {
  const { gateway, newId } = dependencies
  const { project, options, author, idempotencyKey: key } = command
  const platformId = key === undefined ? `${project.instance}:${newId()}` : `${project.instance}:key:${key}`
  const text = askedText(command.text.replaceAll('\0', ''))
  if (key !== undefined) {
    const earlier = await earlierCommand(platformId, { text, options }, dependencies)
    if (earlier) return earlier
  }
  const address =
    options.sessionId === undefined
      ? addressIn(project, newId())
      : await addressOfSession(options.sessionId, project, dependencies)
  const message = { address, projectId: project.id, platformId, author, text, options }
  const acceptance = await gateway.hostOf(HTTP_CHANNEL).onMessage(message)
  if (acceptance.status === 'refused') throw new GatewayError('too_many', acceptance.reason)
  if (acceptance.status === 'duplicate') {
    const earlier = await earlierCommand(platformId, { text, options }, dependencies)
    if (earlier) return earlier
  }
  const { messageId: id, conversationId } = acceptance
  return { id, conversationId, isNew: true }
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
    throw new GatewayError('conflict', `This Idempotency-Key was used with another body before. ${advice}`)
  }
  return { id: earlier.id, conversationId: earlier.conversationId, isNew: false }
}

/** The conversation that goes on in a session, or a new one that begins in it. */
async function addressOfSession(
  sessionId: string,
  project: ProjectRecord,
  { config, gateway, now, newId }: Dependencies,
): Promise<string> {
  const { store } = gateway
  const { backend } = chooseAgent({}, project, config)
  const ids = await store.sessions.conversationsIn({ backend, sessionId })
  const found = await Promise.all(ids.map((id) => store.conversations.get(id)))
  const conversations = found.filter((conversation) => conversation !== undefined)
  const own = conversations.find((conversation) => isIn(project, conversation))
  if (own) {
    await requireRoom(own.id, config.maxQueueDepth, gateway)
    return own.address
  }
  // Whoever may use one project must not read along in another, nor in one that had its id before.
  if (conversations.some(({ projectId, channel }) => projectId !== project.id || channel === HTTP_CHANNEL)) {
    const advice = 'Leave session_id out to begin a new one.'
    throw new GatewayError('not_found', `There is no session ${sessionId} in the project ${project.id}. ${advice}`)
  }
  const address = addressIn(project, newId())
  const place = { channel: HTTP_CHANNEL, address, projectId: project.id }
  const { id: conversationId } = await store.conversations.enter(place, newId(), now())
  await store.sessions.choose({ conversationId, backend, sessionId, directory: resolve(project.directory) }, now())
  return address
}

/** Before it is taken: a command that the queue refuses would stay refused under its key. */
async function requireRoom(
  conversationId: string,
  maxQueueDepth: number,
  { store }: ServiceDependencies['gateway'],
): Promise<void> {
  const open = await store.inbox.countOpen(conversationId)
  if (open <= maxQueueDepth) return
  throw new GatewayError('too_many', `${open} commands wait in this session already. Send it again later.`)
}
