// `/sessions` and `/resume`.

import { resolveBackendName } from '../backends/registry.js'
import type { BackendName } from '../backends/types.js'
import { oneLine } from '../core/one-line.js'
import { GatewayError } from '../errors.js'
import { workplaceKey, type Workplace } from '../runtime/agent-choice.js'
import type { Conversation } from '../store/conversations.js'
import type { SessionFilter, UsedSession } from '../store/runs.js'
import type { Session } from '../store/sessions.js'
import { type Answer, changed, info } from './answer.js'
import { type ChoiceDependencies, choiceOf, recentSessions } from './conversation-choice.js'
import type { LimitedCaller } from './limited-caller.js'
import { QUESTION_CHARACTERS, sessionLine } from './conversation-words.js'

interface SessionDependencies extends ChoiceDependencies {
  isInstalled(backend: BackendName): Promise<boolean>
}

export async function listSessions(
  dependencies: SessionDependencies,
  conversation: Conversation,
  caller?: LimitedCaller,
): Promise<Answer> {
  const { store, now } = dependencies
  const sessions = await recentSessions(dependencies, conversation, filterFor(caller))
  if (sessions.length === 0) return info('There are no sessions yet.')
  const current = await store.sessions.get(conversation.id)
  const lines = sessions.map((session, index) => sessionLine(index + 1, session, isSame(session, current), now()))
  return info([...lines, 'Use /resume <number> to resume one.'].join('\n'))
}

export async function resumeSession(
  dependencies: SessionDependencies,
  conversation: Conversation,
  wanted: string,
  caller?: LimitedCaller,
): Promise<Answer> {
  if (wanted === '') return listSessions(dependencies, conversation, caller)
  const { store, now } = dependencies
  const { id } = conversation
  const found = await findSession(dependencies, conversation, wanted, caller)
  // Conversations that use it now will start a fresh one.
  for (const holder of await store.sessions.conversationsIn(found)) await caller?.requireChangeable(holder)
  const { sessionId, usage, question } = found
  if (isSame(found, await store.sessions.get(id))) return info('This conversation already uses that session.')
  const backend = resolveBackendName(found.backend)
  const choice = await choiceOf(dependencies, conversation)
  await requireInstalled(dependencies, backend, choice.workplace)
  const directory = workplaceKey(choice.workplace)
  const others = await store.transaction(async (tables) => {
    const holders = (await tables.sessions.conversationsIn(found)).filter((holder) => holder !== id)
    for (const holder of holders) {
      // With two concurrent turns in one session, most agents lose one and some never end.
      if ((await tables.jobs.first(holder))?.state === 'active') throw sessionBusy()
      await tables.sessions.reset(holder, now())
    }
    if (choice.backend !== backend) await tables.conversations.configure(id, { backend, model: null })
    const session = { conversationId: id, backend, sessionId, directory, ...(usage && { usage }) }
    await tables.sessions.choose(session, now())
    return holders.length
  })
  return changed(
    `The next message resumes this ${backend} session: ${oneLine(question, QUESTION_CHARACTERS)}` +
      (others > 0 ? '\nThe conversation that used it will start a fresh one.' : '') +
      (await runningText(dependencies, id)),
  )
}

/** Contract: throws `not_found` or `request_invalid`, saying what to do. */
async function findSession(
  dependencies: SessionDependencies,
  conversation: Conversation,
  wanted: string,
  caller: LimitedCaller | undefined,
): Promise<UsedSession> {
  const filter = filterFor(caller)
  if (/^\d{1,2}$/.test(wanted)) {
    const session = (await recentSessions(dependencies, conversation, filter))[Number(wanted) - 1]
    if (session) return session
  } else if (wanted.length >= 4) {
    const [session, another] = await recentSessions(dependencies, conversation, { prefix: wanted, ...filter })
    if (another) {
      const advice = 'Type more of its id, or its number in /sessions.'
      throw new GatewayError('request_invalid', `More than one session begins with ${oneLine(wanted, 40)}. ${advice}`)
    }
    if (session) return session
  }
  const advice = '/sessions lists them.'
  throw new GatewayError('not_found', `There is no session ${oneLine(wanted, 40)} here. ${advice}`)
}

function filterFor(caller: LimitedCaller | undefined): Pick<SessionFilter, 'visibility'> {
  return caller ? { visibility: caller.visibility } : {}
}

/** Contract: throws `backend_missing`, saying what to do. What a pod has installed is unknown until it is used. */
export async function requireInstalled(
  { isInstalled }: Pick<SessionDependencies, 'isInstalled'>,
  backend: BackendName,
  { pod }: Workplace,
): Promise<void> {
  if (pod || (await isInstalled(backend))) return
  const advice = `"aetheel doctor --agent ${backend}" shows how to install it.`
  throw new GatewayError('backend_missing', `${backend} is not installed where the gateway runs. ${advice}`)
}

/** Added to answers about a choice that takes effect with the next message. */
export async function runningText(
  { store }: Pick<ChoiceDependencies, 'store'>,
  conversationId: string,
): Promise<string> {
  const first = await store.jobs.first(conversationId)
  return first?.state === 'active' ? '\nThe running turn is not affected.' : ''
}

function isSame(session: UsedSession, current: Session | undefined): boolean {
  return session.sessionId === current?.sessionId && session.backend === current.backend
}

function sessionBusy(): GatewayError {
  const advice = 'Wait for it to finish, or stop it there.'
  return new GatewayError('request_invalid', `Another conversation is using that session. ${advice}`)
}
