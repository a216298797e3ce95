// The slash commands of chats, for conversations of the dashboard.

import { COMMANDS, HELP_TEXT } from '../../conversation/command-descriptions.js'
import { type ActionName, parseCommand, unknownCommand } from '../../conversation/conversation-commands.js'
import { type ErrorCode, GatewayError } from '../../errors.js'
import type { ConversationView } from '../../store/conversation-views.js'
import * as api from '../api/conversations.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'
import { actorOf, callerOf } from './changes.js'
import { requireMovable, requireOwnProject } from './conversation-moves.js'
import { findChangeable, findConversation, visibilityOf } from './visibility.js'

/** A person's mistakes, which a chat answers with text. */
const ANSWERED = new Set<ErrorCode>([
  'backend_missing',
  'backend_unknown',
  'conflict',
  'not_found',
  'request_invalid',
  'too_many',
])

export function registerConversationCommandRoutes(app: App, { gateway }: ServiceDependencies): void {
  const route = routesOf(app, 'conversations')

  route(
    'GET /conversations/:id/commands',
    { scope: 'read', allowsProjectTokens: true },
    'List the slash commands',
    { params: api.conversationParams, response: { 200: api.commandListSchema } },
    async (request) => {
      await findConversation(request.params.id, callerOf(request), gateway.store)
      return {
        commands: COMMANDS.map((command) => ({
          name: command.name,
          description: command.meaning,
          argument: 'argument' in command ? argumentView(command.argument) : null,
          is_question: command.isQuestion,
        })),
      }
    },
  )
}

function argumentView({ name, meaning, isRequired }: { name: string; meaning: string; isRequired: boolean }) {
  return { name, description: meaning, is_required: isRequired }
}

/** Contract: throws `request_invalid` for an unknown command, `forbidden` for one that the token does not allow. */
export async function runCommand(
  conversation: ConversationView,
  line: string,
  caller: Caller,
  dependencies: Pick<ServiceDependencies, 'gateway' | 'projects'>,
): Promise<api.AnsweredCommand> {
  const { name, word, argument } = parseCommand(line)
  if (name === undefined) throw new GatewayError('request_invalid', unknownCommand(word))
  const about = { conversationId: conversation.id, command: name }
  if (name === 'help') return toWire(api.answeredCommandSchema, { ...about, answer: HELP_TEXT, isChange: false })
  // `isCommand` does not count these: they are messages.
  if (name === 'ask' || name === 'compact') throw new Error(`/${name} is a message`)
  const { subject, text, isChange } = await act(conversation, name, argument, caller, dependencies)
  dependencies.gateway.wake()
  const messageId = name === 'continue' ? subject : undefined
  return toWire(api.answeredCommandSchema, { ...about, answer: text, isChange, messageId })
}

async function act(
  conversation: ConversationView,
  name: ActionName,
  argument: string,
  caller: Caller,
  { gateway, projects }: Pick<ServiceDependencies, 'gateway' | 'projects'>,
) {
  const { store, commands } = gateway
  const limited = {
    name: caller.name,
    visibility: await visibilityOf(caller, store),
    requireChangeable: (id: string) => findChangeable(id, caller, store),
  }
  try {
    if (name === 'project') {
      // Without an argument, it lists all projects.
      const chosen = argument === '' || argument === 'default' ? undefined : argument
      if (argument === '') requireOwnProject(caller, undefined)
      else await requireMovable(conversation, caller, chosen ?? null, { projects })
    }
    return await commands.act(conversation, actorOf(caller), name, argument, limited)
  } catch (error) {
    const isAnswer = error instanceof GatewayError && ANSWERED.has(error.code)
    if (isAnswer) return { text: error.message, isChange: false, subject: undefined }
    throw error
  }
}
