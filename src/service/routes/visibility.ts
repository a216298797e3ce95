import { GatewayError } from '../../errors.js'
import type { ConversationView } from '../../store/conversation-views.js'
import type { Store } from '../../store/store.js'
import type { Visibility } from '../../store/visibility.js'
import type { Caller } from '../dependencies.js'
import { HTTP_CHANNEL, WEB_CHANNEL } from '../http-channel.js'
import { mayUse } from './changes.js'

/** What a token lets one see: what is said to one person is for whoever may see everything. */
export async function visibilityOf(caller: Caller, { projects }: Pick<Store, 'projects'>): Promise<Visibility> {
  if (caller.projects === undefined) return { seesPrivate: caller.scope === 'admin' }
  const known = await projects.list()
  return { projects: known.filter(({ id }) => mayUse(caller, id)), seesPrivate: false }
}

/** Contract: throws `not_found` also for one that the token must not see. */
export async function findConversation(id: string, caller: Caller, store: Store): Promise<ConversationView> {
  const found = await store.conversationViews.get(id, await visibilityOf(caller, store))
  if (found) return found
  const advice = 'GET /conversations shows those there are.'
  throw new GatewayError('not_found', `There is no conversation ${id} that this token may see. ${advice}`)
}

/** Whoever may give commands may do so in conversations of these; those of people elsewhere are for administrators. */
const OWN_CHANNELS = [HTTP_CHANNEL, WEB_CHANNEL]

/** Contract: as `findConversation`, and throws `forbidden` for one in which the token must not change anything. */
export async function findChangeable(id: string, caller: Caller, store: Store): Promise<ConversationView> {
  const conversation = await findConversation(id, caller, store)
  if (OWN_CHANNELS.includes(conversation.channel) || caller.scope === 'admin') return conversation
  const message = `In conversations of ${conversation.channel} this needs a token with the scope admin.`
  throw new GatewayError('forbidden', message)
}

/** Of these, what belongs to conversations that the token lets one see. */
export async function visibleOf<T extends { conversationId: string }>(
  items: T[],
  caller: Caller,
  store: Store,
): Promise<T[]> {
  const ids = [...new Set(items.map(({ conversationId }) => conversationId))]
  const visibility = await visibilityOf(caller, store)
  const visible = new Set((await store.conversationViews.list({ visibility, ids }, ids.length)).map(({ id }) => id))
  return items.filter(({ conversationId }) => visible.has(conversationId))
}
