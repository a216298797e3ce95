import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { Queue } from './queue.js'
import type { TurnEnding } from './settle.js'
import type { Work } from './types.js'

interface LeaseOptions {
  queue: Pick<Queue, 'renew'>
  leaseMs: number
  log: Log
  now: () => number
}

/**
 * Renews the claim on a message until the returned function is called. `onEnd` gets the reason why the turn must end.
 */
export function keepLease(
  work: Work,
  { queue, leaseMs, log, now }: LeaseOptions,
  onEnd: (why: TurnEnding) => void,
): () => void {
  let heldUntil = work.claimedAt + leaseMs
  let isRenewing = false
  const renew = async (): Promise<void> => {
    const askedAt = now()
    // The database is not answering.
    if (isRenewing && askedAt >= heldUntil) onEnd('unsure')
    if (isRenewing) return
    isRenewing = true
    try {
      const state = await queue.renew(work)
      if (state === 'held') heldUntil = askedAt + leaseMs
      else onEnd(state)
    } catch (error) {
      log.warn('lease.not-renewed', { messageId: work.message.id, error: messageOf(error) })
      // On a full disk nobody else can claim it either, so the agent may continue.
      const isFull = error instanceof GatewayError && error.code === 'store_full'
      if (now() >= heldUntil && !isFull) onEnd('unsure')
    } finally {
      isRenewing = false
    }
  }
  const timer = setInterval(() => void renew(), leaseMs / 3)
  return () => clearInterval(timer)
}
