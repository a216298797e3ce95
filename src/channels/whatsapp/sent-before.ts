// Finds out what earlier attempts have already sent to Twilio.

import { wait } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { OutgoingReply } from '../types.js'
import type { Deliveries } from './deliveries.js'
import { isSame, KEPT_PARTS, latestOf, type SentLog } from './sent-log.js'
import { FAILED, type TwilioApi, type TwilioMessage } from './twilio-api.js'
import { undefinedIfGone } from './twilio-errors.js'

export interface LookupOptions {
  api: TwilioApi
  sentLog: SentLog
  deliveries: Pick<Deliveries, 'forget'>
  ownNumber: string
  to: string
  signal: AbortSignal
}

/** Allowed difference between Twilio's clock and ours. */
const CLOCK_SKEW_MS = 5 * 60_000
/** Twilio may still be processing the request of an earlier attempt. */
const RECHECK_AFTER_MS = 2_000

/** Returns the keys of what need not be sent again. Contract: rejects if that cannot be determined. */
export async function sentBefore(reply: OutgoingReply, options: LookupOptions): Promise<ReadonlySet<string>> {
  try {
    const { done, isComplete } = await findSent(reply, options)
    if (isComplete) return done
    await wait(RECHECK_AFTER_MS, { signal: options.signal })
    return (await findSent(reply, options)).done
  } catch (error) {
    const unknown = 'it is not known whether it was delivered'
    throw new Error(`Twilio did not say what an earlier attempt sent, so ${unknown}: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

async function findSent(
  { idempotencyKey: replyId, createdAt }: OutgoingReply,
  { api, sentLog, deliveries, ownNumber, to, signal }: LookupOptions,
): Promise<{ done: Set<string>; isComplete: boolean }> {
  const listed = await sentSince(createdAt - CLOCK_SKEW_MS, { api, ownNumber, to, signal })
  const logged = await sentLog.read(to)
  const own = logged.filter((part) => part.replyId === replyId)
  const done = new Set<string>()
  for (const { sid, items } of latestOf(own)) {
    const message =
      listed.find((candidate) => candidate.sid === sid) ?? (await api.message(sid, signal).catch(undefinedIfGone))
    if (message && FAILED.includes(message.status)) deliveries.forget(sid, replyId)
    // A message since removed from Twilio's record was accepted all the same.
    else for (const item of items) done.add(item)
  }
  const known = new Set(logged.map(({ sid }) => sid))
  // Once the log is full, anything older may belong to any reply.
  const oldest = logged.length === KEPT_PARTS ? logged.find(({ sid }) => sid !== undefined)?.sid : undefined
  const open = own.filter(({ sid, items }) => sid === undefined && !items.every((item) => done.has(item)))
  for (const message of listed.slice(listed.findIndex(({ sid }) => sid === oldest) + 1)) {
    if (known.has(message.sid) || FAILED.includes(message.status)) continue
    const index = open.findIndex((part) => isSame(part, message))
    for (const part of index === -1 ? [] : open.splice(index, 1)) {
      for (const item of part.items) done.add(item)
      await sentLog.finish(to, part, message.sid)
    }
  }
  return { done, isComplete: open.length === 0 }
}

/**
 * What was sent to a number, oldest first. Not filtered by time sent: messages still queued at Twilio have none yet.
 */
async function sentSince(
  since: number,
  { api, ownNumber, to, signal }: Pick<LookupOptions, 'api' | 'ownNumber' | 'to' | 'signal'>,
): Promise<TwilioMessage[]> {
  const found: TwilioMessage[] = []
  for await (const page of api.pages({ to, from: ownNumber }, signal)) {
    const recent = page.filter(({ createdAt }) => createdAt >= since)
    found.push(...recent)
    if (recent.length < page.length) break
  }
  return found.toReversed()
}
