import { GatewayError } from '../../errors.js'
import type { ConversationView } from '../../store/conversation-views.js'
import type { Store } from '../../store/store.js'
import type { Visibility } from '../../store/visibility.js'
import type { Caller } from '../dependencies.js'
import { HTTP_CHANNEL, WEB_CHANNEL } from '../http-channel.js'
import { mayUse } from './changes.js'

/** What a token may see: only admins of all projects see private conversations. */
export async function visibilityOf(caller: Caller, { projects }: Pick<Store, 'projects'>): Promise<Visibility> {
  if (caller.projects === undefined) return { seesPrivate: caller.scope === 'admin' }
  const known = await projects.list()
  return { projects: known.filter(({ id }) => mayUse(caller, id)), seesPrivate: false }
}

/** Contract: throws `not_found`, also for a conversation the token may not see. */
export async function findConversation(id: string, caller: Caller, store: Store): Promise<ConversationView> {
  const found = await store.conversationViews.get(id, await visibilityOf(caller, store))
  if (found) return found
  const advice = 'List them with GET /conversations.'
  throw new GatewayError('not_found', `There is no conversation ${id} that this token may see. ${advice}`)
}

/** Tokens with scope `run` may act in these channels; other people's conversations are for admins. */
const OWN_CHANNELS = [HTTP_CHANNEL, WEB_CHANNEL]

/** Contract: like `findConversation`; also throws `forbidden` if the token may not change it. */
export async function findChangeable(id: string, caller: Caller, store: Store): Promise<ConversationView> {
  const conversation = await findConversation(id, caller, store)
  if (OWN_CHANNELS.includes(conversation.channel) || caller.scope === 'admin') return conversation
  const message = `In conversations of the channel ${conversation.channel}, this needs a token with scope admin.`
  throw new GatewayError('forbidden', message)
}

/** The items whose conversations the token may see. */
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
