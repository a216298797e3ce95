// The sessions a conversation could resume: the equivalents of `/sessions` and `/resume`.

import { recentSessions } from '../../conversation/conversation-choice.js'
import { GatewayError } from '../../errors.js'
import type { ConversationView } from '../../store/conversation-views.js'
import type { UsedSession } from '../../store/runs.js'
import * as api from '../api/conversations.js'
import type { App, Caller, ServiceDependencies } from '../dependencies.js'
import { runnerName } from '../../backends/agents.js'
import { routesOf } from '../route.js'
import { definedFields, toWire } from '../wire.js'
import { beginningOf } from './beginning-of.js'
import { actorOf, callerOf } from './changes.js'
import { findChangeable, findConversation, visibilityOf } from './visibility.js'

export function registerConversationSessionRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'conversations')
  const { config, gateway, now } = dependencies
  const { store, commands, agents, scrubber } = gateway

  route(
    'GET /conversations/:id/sessions',
    { scope: 'read', allowsProjectTokens: true },
    'List the sessions that a conversation can resume, latest used first',
    { params: api.conversationParams, response: { 200: api.usedSessionListSchema } },
    async (request) => {
      const caller = callerOf(request)
      const conversation = await findConversation(request.params.id, caller, store)
      const current = await store.sessions.get(conversation.id)
      const sessions = await sessionsFor(conversation, caller)
      return {
        sessions: sessions.map((session) =>
          toWire(api.usedSessionSchema, {
            ...session,
            id: session.sessionId,
            provider: runnerName(session.backend),
            question: beginningOf(session.question, scrubber),
            isCurrent: current?.sessionId === session.sessionId && current.backend === session.backend,
          }),
        ),
      }
    },
  )

  route(
    'POST /conversations/:id/resume',
    { scope: 'run', allowsProjectTokens: true },
    'Resume an earlier session with the next message',
    { params: api.conversationParams, body: api.resumeBodySchema, response: { 200: api.doneSchema } },
    async (request) => {
      const caller = callerOf(request)
      const conversation = await findChangeable(request.params.id, caller, store)
      const { session_id: sessionId } = request.body
      const sessions = await sessionsFor(conversation, caller, sessionId)
      const session = sessions.find((candidate) => candidate.sessionId === sessionId)
      if (!session) {
        const advice = `List them with GET /conversations/${conversation.id}/sessions.`
        throw new GatewayError('not_found', `There is no session ${sessionId} for this conversation. ${advice}`)
      }
      // Conversations now in it will start a fresh session, so the caller must be allowed to change them.
      for (const holder of await store.sessions.conversationsIn(session)) await findChangeable(holder, caller, store)
      return toWire(api.doneSchema, await commands.act(conversation, actorOf(caller), 'resume', sessionId))
    },
  )

  async function sessionsFor(conversation: ConversationView, caller: Caller, prefix?: string): Promise<UsedSession[]> {
    const visibility = await visibilityOf(caller, store)
    const scrub = (text: string): string => scrubber.scrub(text)
    return recentSessions({ config, agents, store, scrub, now }, conversation, definedFields({ visibility, prefix }))
  }
}
