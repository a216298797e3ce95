import { wait } from '../../core/async.js'
import { DiscordAPIError } from 'discord.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'

const AGAIN_MS = 2_000

/**
 * Asks Discord until there is an answer. Contract: undefined when Discord says no, which is logged, and when the gateway
 * stops; a network that fails and Discord's own trouble are waited for.
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
      await wait(AGAIN_MS, { signal }).catch(() => {})
    }
  }
  return undefined
}

/** A token that Discord refuses in passing is no answer to the question. */
function isRefusal(error: unknown): error is DiscordAPIError {
  return error instanceof DiscordAPIError && error.status !== 401
}
