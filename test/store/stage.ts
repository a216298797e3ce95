import type { NewMessage } from '../../src/store/inbox.js'
import type { Claim } from '../../src/store/jobs.js'
import type { NewDelivery } from '../../src/store/outbox.js'
import type { Store, Tables } from '../../src/store/store.js'
import type { TestEngine } from '../kit/engines.js'

export const CHANNEL = 'chat'
export const LEASE_MS = 1_000

export interface Stage {
  store: Store
  /** Accepts a message as the queue does. The conversation's id is its address. */
  add(conversationId: string, id: string, now?: number): Promise<void>
  /** Adds a reply with the next number of the conversation. */
  reply(conversationId: string, id: string, now?: number, expiresAt?: number): Promise<NewDelivery>
  claim(now: number, gatewayId?: string): Promise<Claim>
  /** Claims a message, and returns its id if there was one. */
  claimId(now: number): Promise<string | undefined>
  finish(claim: Claim, now: number): Promise<boolean>
}

export async function createStage(engine: TestEngine): Promise<Stage> {
  const store = await engine.createStore()
  const claim = (now: number, gatewayId = 'one') => store.jobs.claim(gatewayId, [CHANNEL], now, LEASE_MS)
  return {
    store,
    add: (conversationId, id, now = 0) =>
      store.transaction(async (tables) => {
        const { seq } = await tables.conversations.enter(
          { channel: CHANNEL, address: conversationId },
          conversationId,
          now,
        )
        await addMessage(tables, newMessage({ id, conversationId, seq }), now)
      }),
    reply: (conversationId, id, now = 0, expiresAt = 1_000_000) =>
      store.transaction(async (tables) => {
        const { seq } = await tables.conversations.enter(
          { channel: CHANNEL, address: conversationId },
          conversationId,
          now,
        )
        const reply = { text: `This is ${id}`, notes: [], isError: false }
        const delivery = { id, conversationId, channel: CHANNEL, address: conversationId, seq, reply, expiresAt }
        await tables.outbox.add(delivery, now)
        return delivery
      }),
    claim: async (now, gatewayId) => {
      const taken = await claim(now, gatewayId)
      if (!taken) throw new Error(`There is nothing to claim at ${now}`)
      return taken
    },
    claimId: async (now) => (await claim(now))?.messageId,
    finish: (taken, now) =>
      store.transaction(async (tables) => {
        await tables.conversations.nextSeq(taken.conversationId, now)
        return tables.jobs.finish(taken, 'answered', null, now)
      }),
  }
}

export function newMessage(message: Pick<NewMessage, 'id' | 'conversationId' | 'seq'>): NewMessage {
  return { channel: CHANNEL, platformId: message.id, kind: 'message', author: 'ann', text: 'Hello', ...message }
}

async function addMessage(tables: Tables, message: NewMessage, now: number): Promise<void> {
  const ahead = await tables.jobs.countOpen(message.conversationId)
  await tables.inbox.add(message, 'open', null, now)
  await tables.jobs.enqueue(message, ahead, now)
}

/** What careless storage changes: quotes, wildcards, escapes, line ends, outer spaces, characters of all sizes. */
export const TEXTS: Record<string, string> = {
  'an empty one': '',
  quotes: `It's "quoted", \`ticked\`; '' "" -- drop table messages; /* $1 ? :name */`,
  'escapes and wildcards': String.raw`100% \ _ \n \x00 \u0000 {"a": null}`,
  'line ends and spaces': '  \r\n\tone\u2028two\n\n ',
  emoji: '👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪',
  'many scripts': 'Ünïcödé e\u0301 日本語 العربية עברית \u202Eabc\u202C 𝕏 \uFFFF',
  'a megabyte': 'ä🙂x\n'.repeat(200_000),
}
