// What earlier attempts have brought to Twilio.

import { wait } from '../../core/async.js'
import { messageOf } from '../../errors.js'
import type { OutgoingReply } from '../types.js'
import type { Deliveries } from './deliveries.js'
import { isSame, KEPT_PARTS, latestOf, type SentLog } from './sent-log.js'
import type { TwilioApi, TwilioMessage } from './twilio-api.js'
import { unlessGone } from './twilio-errors.js'

export interface LookOptions {
  api: TwilioApi
  sentLog: SentLog
  deliveries: Pick<Deliveries, 'forget'>
  ownNumber: string
  to: string
  signal: AbortSignal
}

/** How far Twilio's clock and ours may be apart. */
const CLOCK_SKEW_MS = 5 * 60_000
/** Twilio may still be at work on what an earlier attempt asked for. */
const LOOK_AGAIN_MS = 2_000
const FAILED = ['failed', 'undelivered', 'canceled']

/** Gives the keys of what need not be sent again. Contract: rejects when that is not known. */
export async function sentBefore(reply: OutgoingReply, options: LookOptions): Promise<ReadonlySet<string>> {
  try {
    const { done, isSure } = await lookForSent(reply, options)
    if (isSure) return done
    await wait(LOOK_AGAIN_MS, { signal: options.signal })
    return (await lookForSent(reply, options)).done
  } catch (error) {
    const known = 'it is not known whether it was delivered'
    throw new Error(`Twilio cannot be asked what an earlier attempt has sent, so ${known}: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

async function lookForSent(
  { idempotencyKey: replyId, createdAt }: OutgoingReply,
  { api, sentLog, deliveries, ownNumber, to, signal }: LookOptions,
): Promise<{ done: Set<string>; isSure: boolean }> {
  const listed = await sentSince(createdAt - CLOCK_SKEW_MS, { api, ownNumber, to, signal })
  const logged = await sentLog.read(to)
  const own = logged.filter((part) => part.replyId === replyId)
  const done = new Set<string>()
  for (const { sid, items } of latestOf(own)) {
    const message =
      listed.find((candidate) => candidate.sid === sid) ?? (await api.message(sid, signal).catch(unlessGone))
    if (message && FAILED.includes(message.status)) deliveries.forget(sid, replyId)
    // Also what was removed from Twilio's record had been taken.
    else for (const item of items) done.add(item)
  }
  const known = new Set(logged.map(({ sid }) => sid))
  // What is older than a full log may belong to any reply.
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
  return { done, isSure: open.length === 0 }
}

/** What went to a number, the oldest first. Not by the time it was sent: what waits at Twilio has none yet. */
async function sentSince(
  since: number,
  { api, ownNumber, to, signal }: Pick<LookOptions, 'api' | 'ownNumber' | 'to' | 'signal'>,
): Promise<TwilioMessage[]> {
  const found: TwilioMessage[] = []
  for await (const page of api.pages({ to, from: ownNumber }, signal)) {
    const recent = page.filter(({ createdAt }) => createdAt >= since)
    found.push(...recent)
    if (recent.length < page.length) break
  }
  return found.toReversed()
}
