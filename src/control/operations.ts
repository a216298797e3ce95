// What changes the queue and the sessions by hand: the same code in a running gateway, which is asked by its socket, and
// in a command that found none.

import { GatewayError } from '../errors.js'
import type { Queue } from '../queue/queue.js'
import type { SessionRecord } from '../store/sessions.js'
import type { Store } from '../store/store.js'
import type { Handlers } from './protocol.js'

export interface OperationDependencies {
  store: Store
  queue: Queue
  /** There may be work now. */
  wake(): void
  now: () => number
}

/** Whoever has more of them to look through names the whole id. */
const LOOKED_THROUGH = 1_000
const SHORTEST_PREFIX = 4

export function operations({
  store,
  queue,
  wake,
  now,
}: OperationDependencies): Pick<Handlers, 'queue.retry' | 'queue.drop' | 'sessions.reset'> {
  const note = (action: string, subject: string): Promise<void> =>
    store.audit.add({ at: now(), actor: 'terminal', action, subject })

  return {
    'queue.retry': async ({ id }) => {
      const failed = await store.inbox.listFailed(LOOKED_THROUGH)
      const undelivered = await store.outbox.list('undelivered', LOOKED_THROUGH)
      const whole = wholeId(id, [...failed, ...undelivered])
      const kind = await queue.retry(whole)
      await note('queue.retry', whole)
      wake()
      return { id: whole, kind }
    },

    'queue.drop': async ({ id }) => {
      const open = await store.inbox.listOpen(LOOKED_THROUGH)
      const failed = await store.inbox.listFailed(LOOKED_THROUGH)
      const undelivered = await store.outbox.list('undelivered', LOOKED_THROUGH)
      const whole = wholeId(id, [...open, ...failed, ...undelivered])
      const outcome = await queue.drop(whole)
      if (outcome === 'active') {
        throw new GatewayError('request_invalid', `${whole} is worked on. Stop it with /stop in its conversation.`)
      }
      if (outcome === 'finished') {
        throw new GatewayError('request_invalid', `${whole} is finished: there is nothing to drop.`)
      }
      await note('queue.drop', whole)
      wake()
      return { id: whole }
    },

    'sessions.reset': async ({ conversation }) => {
      const session = findSession(conversation, await store.sessions.list(LOOKED_THROUGH))
      await store.sessions.reset(session.conversationId, now())
      await note('sessions.reset', session.conversationId)
      return { channel: session.channel, address: session.address }
    },
  }
}

/** Contract: an id that nothing begins with is returned as it is, for who looks it up to refuse. */
function wholeId(prefix: string, among: { id: string }[]): string {
  if (prefix.length < SHORTEST_PREFIX) return prefix
  const ids = [...new Set(among.map(({ id }) => id))].filter((id) => id.startsWith(prefix.toLowerCase()))
  if (ids.length <= 1) return ids[0] ?? prefix
  throw new GatewayError('request_invalid', `More than one id begins with ${prefix}: ${ids.slice(0, 5).join(', ')}`)
}

type ListedSession = SessionRecord & { channel: string; address: string }

/** By `channel/address`, or by the address alone where only one has it. */
function findSession(conversation: string, sessions: ListedSession[]): ListedSession {
  const found = sessions.filter(({ channel, address }) => [address, `${channel}/${address}`].includes(conversation))
  const [first] = found
  if (first && found.length === 1) return first
  const names = found.map(({ channel, address }) => `${channel}/${address}`)
  if (first) throw new GatewayError('request_invalid', `Which one is meant: ${names.join(', ')}?`)
  const advice = '"aetheel sessions" shows the conversations that have one.'
  throw new GatewayError('not_found', `The conversation ${conversation} has no session. ${advice}`)
}
