// `/continue`: lets an agent that paused at its turn limit continue in its session.

import type { Acceptance, ChannelMessage, MessageOptions, PausedTurn } from '../channels/types.js'
import { GatewayError } from '../errors.js'
import { replyConfigOf } from '../runtime/agent-choice.js'
import type { SessionManager } from '../runtime/session-manager.js'
import type { Conversation } from '../store/conversations.js'
import type { Message } from '../store/inbox.js'
import type { RunRecord } from '../store/runs.js'
import type { Admit } from '../turns/queue.js'
import { type Answer, changed, info } from './answer.js'
import type { ChoiceDependencies } from './conversation-choice.js'

export interface ContinueDependencies extends ChoiceDependencies {
  sessions: Pick<SessionManager, 'peek'>
  /** Takes a message as if it had come through its channel. */
  submit(channel: string, message: ChannelMessage, admit: Admit): Promise<Acceptance>
}

/** The platform id of a continuation is this prefix with the id of the paused message. */
const CONTINUES = 'continue:'
const PROMPT = 'Continue where you stopped.'
const NOTHING = 'Nothing is paused here.'
const MOVED_ON = 'The conversation has moved on. Write what the agent should do next.'
const CONTINUED = 'It has already been continued.'

/** With `messageId`, only if that is the paused message. */
export async function continuePaused(
  dependencies: ContinueDependencies,
  conversation: Conversation,
  messageId?: string,
): Promise<Answer> {
  const { store, submit } = dependencies
  const { channel } = conversation
  if (messageId !== undefined && (await store.inbox.findByPlatformId(channel, CONTINUES + messageId))) {
    return info(CONTINUED)
  }
  const latest = await store.inbox.latest(conversation.id)
  if (messageId === undefined && latest?.state === 'open' && latest.platformId.startsWith(CONTINUES)) {
    return info(CONTINUED)
  }
  const run = latest && (await pausedRun(dependencies, conversation, latest))
  const paused = run && latest
  if (!paused) return info(messageId === undefined ? NOTHING : MOVED_ON)
  if (messageId !== undefined && paused.id !== messageId) return info(MOVED_ON)
  const place = await store.conversations.place(conversation.id)
  const message = {
    ...place,
    // Asking twice, or asking several gateways, gives one continuation.
    platformId: CONTINUES + paused.id,
    // The answer goes to whoever wrote the paused message.
    author: paused.author,
    text: PROMPT,
    options: { ...optionsOf(paused), continues: await pausedTurn(dependencies, channel, paused, run) },
  }
  const acceptance = await submit(channel, message, async (_tables, _message, problem) => {
    // If stored as refused, it would stay refused.
    if (problem !== undefined) throw new GatewayError('too_many', problem)
  })
  if (acceptance.status === 'duplicate') return info(CONTINUED)
  const { messageId: id } = acceptance
  return { ...changed('Continuing.'), subject: id, messageId: id }
}

/** The run of the latest message, if it paused and its session is still the conversation's. */
async function pausedRun(
  { store, sessions, config }: ContinueDependencies,
  { id, channel }: Conversation,
  message: Message,
): Promise<RunRecord | undefined> {
  if (message.state !== 'answered') return undefined
  const run = (await store.runs.ofMessage(message.id)).at(-1)
  if (run?.result?.failure?.reason !== 'max_turns') return undefined
  const { idleMinutes } = replyConfigOf(channel, config)?.session ?? {}
  const session = await sessions.peek(id, run.backend, idleMinutes === undefined ? undefined : idleMinutes * 60_000)
  return session !== undefined && session.sessionId === run.sessionId ? run : undefined
}

/** If it was a continuation itself, includes what came before it. */
async function pausedTurn(
  { store: { inbox } }: ContinueDependencies,
  channel: string,
  { id, text, options: { continues } = {} }: Message,
  { result }: RunRecord,
): Promise<PausedTurn> {
  const merged = await Promise.all((await inbox.mergedInto(id)).map((other) => inbox.findByPlatformId(channel, other)))
  const others = merged.flatMap((message) => message?.text ?? [])
  const said = [continues?.said, result?.finalOutput].filter(Boolean).join('\n\n')
  return { asked: [...(continues?.asked ?? [text]), ...others], said }
}

/** A continuation inherits the options of its message, except those that name or begin something. */
function optionsOf({ options = {} }: Message): MessageOptions {
  const { streamId: _name, beginsSession: _begins, variables, ...rest } = options
  const { From, To } = variables ?? {}
  return {
    ...rest,
    ...(variables && { variables: { ...(From !== undefined && { From }), ...(To !== undefined && { To }) } }),
  }
}
