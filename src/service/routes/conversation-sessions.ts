// The sessions that a conversation could go on in: what the words `/sessions` and `/resume` do.

import { z } from 'zod'
import { recentSessions } from '../../conversation/conversation-choice.js'
import { GatewayError } from '../../errors.js'
import type { ConversationView } from '../../store/conversation-views.js'
import type { UsedSession } from '../../store/runs.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { runnerName } from '../../backends/engine/provider-names.js'
import { actorOf, callerOf } from './changes.js'
import { doneSchema } from './conversation-actions.js'
import { conversationParams } from './conversations.js'
import { sessionIdSchema } from './execute.js'
import { beginningOf, isoTime, timeSchema } from './schemas.js'
import { findChangeable, findConversation, sightOf } from './sight.js'

export const usedSessionSchema = z.object({
  id: z.string(),
  provider: z.string(),
  used_at: timeSchema.describe('When its last turn began.'),
  question: z.string().describe('The beginning of the last message to it.'),
  is_current: z.boolean().describe('Whether the conversation goes on in it as it is.'),
})

export function registerConversationSessionRoutes(app: App, dependencies: ServiceDependencies): void {
  const { config, gateway, now } = dependencies
  const { store, commands, agents, scrubber } = gateway
  const tags = ['conversations']

  app.route({
    method: 'GET',
    url: '/conversations/:id/sessions',
    config: { scope: 'read', allowsProjectTokens: true },
    schema: {
      summary: 'The sessions that a conversation could go on in, last used first',
      tags,
      params: conversationParams,
      response: { 200: z.object({ sessions: z.array(usedSessionSchema) }) },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const conversation = await findConversation(request.params.id, caller, store)
      const current = await store.sessions.get(conversation.id)
      const sessions = await sessionsFor(conversation, caller)
      return {
        sessions: sessions.map(({ sessionId, backend, usedAt, question }) => ({
          id: sessionId,
          provider: runnerName(backend),
          used_at: isoTime(usedAt),
          question: beginningOf(question, scrubber),
          is_current: current?.sessionId === sessionId && current.backend === backend,
        })),
      }
    },
  })

  app.route({
    method: 'POST',
    url: '/conversations/:id/resume',
    config: { scope: 'run', allowsProjectTokens: true },
    schema: {
      summary: 'Let the next message of a conversation go on in an earlier session',
      tags,
      params: conversationParams,
      body: z.strictObject({ session_id: sessionIdSchema.describe('One of GET /conversations/:id/sessions.') }),
      response: { 200: doneSchema },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const conversation = await findChangeable(request.params.id, caller, store)
      const { session_id: sessionId } = request.body
      const sessions = await sessionsFor(conversation, caller, sessionId)
      const session = sessions.find((candidate) => candidate.sessionId === sessionId)
      if (!session) {
        const advice = `GET /conversations/${conversation.id}/sessions shows those there are.`
        throw new GatewayError('not_found', `There is no session ${sessionId} for this conversation. ${advice}`)
      }
      // Whoever is in it begins a fresh one.
      for (const holder of await store.sessions.conversationsIn(session)) await findChangeable(holder, caller, store)
      const { isChange, text } = await commands.act(conversation, actorOf(caller), 'resume', sessionId)
      return { is_change: isChange, text }
    },
  })

  async function sessionsFor(conversation: ConversationView, caller: Caller, prefix?: string): Promise<UsedSession[]> {
    const sight = await sightOf(caller, store)
    return recentSessions({ config, agents, store, now }, conversation, {
      sight,
      ...(prefix !== undefined && { prefix }),
    })
  }
}
