import { wait } from '../../core/async.js'
import { DiscordAPIError } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'

const RETRY_MS = 2_000

/**
 * Retries until Discord answers. Contract: undefined if Discord refuses, which is logged, or if the gateway stops;
 * network failures and outages of Discord are waited out.
 */
export async function untilAnswered<T>(
  ask: () => Promise<T>,
  { signal, log }: { signal: AbortSignal; log: Log },
): Promise<T | undefined> {
  while (!signal.aborted) {
    try {
      return await ask()
    } catch (error) {
      if (isRefusal(error)) {
        log.info('discord.refused', { error: messageOf(error), code: error.code })
        return undefined
      }
      log.warn('discord.not-reached', { error: messageOf(error) })
      await wait(RETRY_MS, { signal }).catch(() => {})
    }
  }
  return undefined
}

/** A 401 may be temporary, and says nothing about the request itself. */
function isRefusal(error: unknown): error is DiscordAPIError {
  return error instanceof DiscordAPIError && error.status !== 401
}
