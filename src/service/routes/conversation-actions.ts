// Actions on conversations from the dashboard: messages to those of its own channel and, for all, the equivalents of
// `/stop`, `/continue`, `/new`, `/project`, `/backend`, `/model` and `/queue`.

import { backendOf } from '../../backends/agents.js'
import { GatewayError } from '../../errors.js'
import { splitAttached } from '../../media/inbox-files.js'
import type { ConversationView } from '../../store/conversation-views.js'
import type { Message } from '../../store/inbox.js'
import type { Store } from '../../store/store.js'
import { isCommand, withoutAskPrefix } from '../../turns/accept.js'
import { storableText } from '../../turns/queue.js'
import * as api from '../api/conversations.js'
import { nothingSchema, submitHeaders } from '../api/values.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { requireWeb, WEB_CHANNEL } from '../http-channel.js'
import { routesOf } from '../route.js'
import { definedFields, toWire } from '../wire.js'
import { actorOf, auditFor, callerOf } from './changes.js'
import { addressIn } from './command-records.js'
import { runCommand } from './conversation-commands.js'
import { requireMovable, requireOwnProject } from './conversation-moves.js'
import { uploadedFiles } from './conversation-files.js'
import { conversationDetails } from './conversation-view.js'
import { findChangeable, findConversation } from './visibility.js'
import { requireProject } from './submit-command.js'

export function registerConversationActionRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'conversations')
  const { gateway, projects, now, newId } = dependencies
  const { store, commands } = gateway
  const config = { scope: 'run', allowsProjectTokens: true } as const

  route(
    'POST /conversations',
    config,
    'Start a conversation in the channel `web`',
    { body: api.newConversationSchema, response: { 201: api.conversationDetailsSchema } },
    async (request, reply) => {
      const caller = callerOf(request)
      const { project_id: projectId, ...choices } = request.body
      const { agent_provider: provider } = choices
      requireOwnProject(caller, projectId)
      const project = projectId === undefined ? undefined : await projects.get(projectId)
      if (provider !== undefined && !project?.pod) await projects.requireAvailable(backendOf(provider))
      const place = project ? { address: addressIn(project, newId()), projectId: project.id } : { address: newId() }
      const id = await store.transaction(async (tables) => {
        if (project) await requireProject(tables, project)
        const entered = await tables.conversations.enter({ ...place, channel: WEB_CHANNEL }, newId(), now())
        const detail = project && { detail: project.id }
        await auditFor(request, now)(tables, { action: 'conversation.create', subject: entered.id, ...detail })
        return entered.id
      })
      await choose(id, caller, choices, dependencies)
      return reply.code(201).send(await conversationDetails(await findConversation(id, caller, store), dependencies))
    },
  )

  route(
    'POST /conversations/:id/messages',
    config,
    'Send a message, or a slash command, which is answered at once; only in the channel `web`',
    {
      params: api.conversationParams,
      headers: submitHeaders,
      body: api.newMessageSchema,
      response: { 200: api.answeredCommandSchema, 202: api.takenMessageSchema },
    },
    async (request, reply) => {
      const { id } = request.params
      const caller = callerOf(request)
      const conversation = await findConversation(id, caller, store)
      requireWeb(conversation)
      const text = storableText(request.body.text)
      if (isCommand(text)) return reply.code(200).send(await runCommand(conversation, text, caller, dependencies))
      const key = request.headers['idempotency-key']
      const sent = { text, author: caller.name, key, fileIds: [...new Set(request.body.files)] }
      const { messageId, notes, isNew } = await send(conversation, sent, dependencies)
      if (isNew) await auditFor(request, now)(store, { action: 'conversation.message', subject: messageId })
      return reply.code(202).send({ conversation_id: id, message_id: messageId, notes })
    },
  )

  route(
    'PATCH /conversations/:id',
    config,
    'Choose the project, agent, model or queue mode of a conversation; rename, pin or archive it',
    {
      params: api.conversationParams,
      body: api.conversationChangesSchema,
      response: { 200: api.conversationDetailsSchema },
    },
    async (request) => {
      const { id } = request.params
      const caller = callerOf(request)
      const conversation = await findChangeable(id, caller, store)
      const {
        project_id: projectId,
        agent_provider: provider,
        title,
        is_pinned: isPinned,
        is_archived: isArchived,
      } = request.body
      if (projectId !== undefined) await requireMovable(conversation, caller, projectId, dependencies)
      // Checked before anything is changed.
      const place = projectId ?? conversation.projectId
      const isInPod = place !== undefined && (await store.projects.get(place))?.pod !== undefined
      if (provider && !isInPod) await projects.requireAvailable(backendOf(provider))
      await choose(id, caller, request.body, dependencies)
      const label = definedFields({ title, isPinned, isArchived })
      if (Object.keys(label).length > 0) {
        await store.transaction(async (tables) => {
          await tables.conversations.label(id, label, now())
          const detail = LABELS.filter((name) => request.body[name] !== undefined).join(', ')
          await auditFor(request, now)(tables, { action: 'conversation.update', subject: id, detail })
        })
        gateway.wake()
      }
      return conversationDetails(await findConversation(id, caller, store), dependencies)
    },
  )

  route(
    'DELETE /conversations/:id',
    config,
    'Delete a conversation, with its messages, runs and uploaded files',
    { params: api.conversationParams, response: { 204: nothingSchema } },
    async (request, reply) => {
      const conversation = await findChangeable(request.params.id, callerOf(request), store)
      await gateway.deleteConversation(conversation, auditFor(request, now))
      return reply.code(204).send()
    },
  )

  route(
    'POST /conversations/:id/stop',
    config,
    'Stop the agent of a conversation, or remove the first waiting message',
    { params: api.conversationParams, body: api.stopBodySchema, response: { 200: api.doneSchema } },
    async (request) => {
      const caller = callerOf(request)
      const conversation = await findChangeable(request.params.id, caller, store)
      const messageId = request.body?.message_id
      if (messageId !== undefined) await requireMessage(conversation.id, messageId, store)
      const done =
        messageId === undefined
          ? await commands.act(conversation, actorOf(caller), 'stop')
          : await commands.stopMessage(conversation, actorOf(caller), messageId)
      gateway.wake()
      return toWire(api.doneSchema, done)
    },
  )

  route(
    'POST /conversations/:id/continue',
    config,
    'Continue an agent that paused at its turn limit',
    { params: api.conversationParams, body: api.continueBodySchema, response: { 200: api.continuedSchema } },
    async (request) => {
      const caller = callerOf(request)
      const conversation = await findChangeable(request.params.id, caller, store)
      const messageId = request.body?.message_id
      if (messageId !== undefined) await requireMessage(conversation.id, messageId, store)
      const { subject, ...done } =
        messageId === undefined
          ? await commands.act(conversation, actorOf(caller), 'continue')
          : await commands.continueMessage(conversation, actorOf(caller), messageId)
      return toWire(api.continuedSchema, { ...done, messageId: subject })
    },
  )

  route(
    'POST /conversations/:id/new-session',
    config,
    'Start a fresh session with the next message',
    { params: api.conversationParams, response: { 200: api.doneSchema } },
    async (request) => {
      const caller = callerOf(request)
      const conversation = await findChangeable(request.params.id, caller, store)
      const done = await commands.act(conversation, actorOf(caller), 'new')
      gateway.wake()
      return toWire(api.doneSchema, done)
    },
  )

  route(
    'POST /conversations/:id/retry',
    config,
    'Retry a failed message',
    { params: api.conversationParams, body: api.retryBodySchema, response: { 200: api.doneSchema } },
    async (request) => {
      const { id } = await findChangeable(request.params.id, callerOf(request), store)
      const { message_id: messageId } = request.body
      await requireMessage(id, messageId, store)
      await gateway.queue.retry(messageId, auditFor(request, now))
      gateway.wake()
      return { is_change: true, text: 'Queued again.' }
    },
  )
}

const LABELS = ['title', 'is_pinned', 'is_archived'] as const

async function requireMessage(id: string, messageId: string, { inbox }: Pick<Store, 'inbox'>): Promise<void> {
  if ((await inbox.get(messageId))?.conversationId === id) return
  const advice = `List them with GET /conversations/${id}/messages.`
  throw new GatewayError('not_found', `There is no message ${messageId} in conversation ${id}. ${advice}`)
}

/** The agent comes before the model: choosing an agent resets the model. */
async function choose(
  id: string,
  caller: Caller,
  changes: api.ConversationChanges,
  { gateway: { store, commands } }: Pick<ServiceDependencies, 'gateway'>,
): Promise<void> {
  const choices = [
    ['project', changes.project_id],
    ['backend', changes.agent_provider && backendOf(changes.agent_provider)],
    ['model', changes.model],
    ['queue', changes.queue_mode],
  ] as const
  for (const [name, choice] of choices) {
    if (choice === undefined) continue
    const conversation = await store.conversations.get(id)
    if (conversation) await commands.act(conversation, actorOf(caller), name, choice ?? 'default')
  }
}

/** Contract: when it settles, the message is on disk. Throws `conflict` for a key already used with another text. */
async function send(
  { id, address, projectId }: ConversationView,
  { text, author, key, fileIds }: { text: string; author: string; key: string | undefined; fileIds: string[] },
  { gateway, projects, newId }: Pick<ServiceDependencies, 'gateway' | 'projects' | 'newId'>,
): Promise<{ messageId: string; notes: string[]; isNew: boolean }> {
  const { store } = gateway
  const files = await uploadedFiles(id, fileIds, { gateway })
  const project = projectId === undefined ? undefined : await projects.get(projectId)
  // The project it was started in: a later choice is separate and can be undone.
  const origin = (await store.projects.list()).find((candidate) => address.startsWith(addressIn(candidate, '')))
  const message = definedFields({
    address,
    projectId: (origin ?? project)?.id,
    options: project && { projectInstance: project.instance },
    platformId: key === undefined ? `${id}:${newId()}` : `${id}:key:${key}`,
    author,
    text,
  })
  const acceptance = await gateway
    .hostOf(WEB_CHANNEL)
    .onMessage(files.length > 0 ? { ...message, files } : message, async (tables, taken, problem) => {
      if (project) await requireProject(tables, project)
      // If stored as refused, it would stay refused under its key.
      if (problem !== undefined) throw new GatewayError('too_many', problem)
      if (!(await tables.uploads.take(fileIds, taken.id))) throw sentBefore()
    })
  const { messageId, status } = acceptance
  if (status === 'duplicate') requireSame(await store.inbox.get(messageId), text)
  return { messageId, notes: status === 'accepted' ? acceptance.notes : [], isNew: status === 'accepted' }
}

function requireSame(earlier: Message | undefined, text: string): void {
  const same = withoutAskPrefix(text)
  if (earlier && [earlier.text, splitAttached(earlier.text).text].includes(same)) return
  const advice = 'Use a new key for a new message.'
  throw new GatewayError('conflict', `This Idempotency-Key was already used with another text. ${advice}`)
}

function sentBefore(): GatewayError {
  return new GatewayError('conflict', 'One of the files was already sent with another message. Upload it again.')
}
