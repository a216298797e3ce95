// What a channel shows of an answer beside its text.

import type { OutgoingReply } from '../channels/types.js'
import { formatMoney } from '../core/money.js'
import { duration } from '../runtime/time-words.js'
import type { Message } from '../store/inbox.js'
import type { Delivery } from '../store/outbox.js'
import type { Store } from '../store/store.js'

/** Nothing for a reply that does not end its message, such as a question. */
export async function outcomeOf(
  { messageId, runId, reply }: Delivery,
  answered: Pick<Message, 'retriedAfter'> | undefined,
  store: Pick<Store, 'inbox' | 'runs' | 'events'>,
): Promise<Pick<OutgoingReply, 'alsoAnswers' | 'wasRetried' | 'footer'>> {
  if (messageId === undefined || reply.question || reply.waitsUntil !== undefined) return {}
  const alsoAnswers = await store.inbox.mergedInto(messageId)
  const footer = runId === undefined || reply.isError ? undefined : await footerOf(runId, store)
  return {
    ...(alsoAnswers.length > 0 && { alsoAnswers }),
    ...(answered?.retriedAfter !== undefined && { wasRetried: true }),
    ...(footer !== undefined && { footer }),
  }
}

/** As `claude-opus-4-8 · 12 s · $0.03`; undefined unless an agent answered. */
async function footerOf(runId: string, { runs, events }: Pick<Store, 'runs' | 'events'>): Promise<string | undefined> {
  const run = await runs.get(runId)
  if (!run?.result) return undefined
  const { durationMs, costUsd, usage } = run.result
  const model = (await events.modelOf(runId)) ?? run.model
  // A fixed text, or a command without an agent.
  if (model === undefined && usage === undefined) return undefined
  return [model ?? run.backend, duration(durationMs), ...(costUsd ? [formatMoney(costUsd)] : [])].join(' · ')
}
