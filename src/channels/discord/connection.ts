// Keeps one connection to Discord's gateway. discord.js resumes and reconnects by itself; when it gives up, a new
// client takes over. Dispatches are passed on raw: the client's own events omit messages of channels it has not cached.

import type { EventEmitter } from 'node:events'
import { abortable, backoffMs, wait } from '../../core/async.js'
import {
  Client,
  CloseCodes,
  Events,
  type GatewayDispatchPayload,
  GatewayIntentBits,
  Options,
  SimpleShardingStrategy,
} from 'discord.js'
import { GatewayError, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { DiscordApi } from './api.js'
import { describeProblem, DEVELOPER_PORTAL, identify, type Identity, isRefusal, readsMessages } from './identity.js'

interface ConnectionOptions {
  api: DiscordApi
  apiUrl: string
  token: string
  onDispatch(payload: GatewayDispatchPayload): void
  log: Log
}

const BACKOFF = { firstMs: 1_000, longestMs: 60_000 }

export class DiscordConnection {
  readonly #closed = new AbortController()
  #client: Client | undefined

  constructor(private readonly options: ConnectionOptions) {}

  /** Contract: rejects if the token or the intents need fixing; otherwise it waits until Discord answers. */
  async identify(signal: AbortSignal): Promise<Identity> {
    const { api, apiUrl, log } = this.options
    for (let failures = 1; ; failures += 1) {
      const pauseMs = backoffMs(failures, BACKOFF)
      try {
        const identity = await abortable(signal, (own) => identify(api.rest, own))
        if (readsMessages(identity.application)) return identity
        const where = `Turn on "Message Content Intent" on the Bot page at ${DEVELOPER_PORTAL}`
        throw new GatewayError('config_invalid', `The Discord bot may not read messages. ${where}, then start again.`)
      } catch (error) {
        if (error instanceof GatewayError || signal.aborted) throw error
        if (isRefusal(error)) {
          const problem = `DISCORD_BOT_TOKEN: ${describeProblem(error, apiUrl)}.`
          throw new GatewayError('config_invalid', problem, { cause: error })
        }
        log.warn('discord.not-reached', { error: messageOf(error), triedAgainInMs: pauseMs })
      }
      await wait(pauseMs, { signal })
    }
  }

  /** Contract: resolves after the first attempt, successful or not; the connection is then kept up until `close`. */
  async open(): Promise<void> {
    await new Promise<void>((resolve) => {
      void this.#keepOpen(resolve)
    })
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#client?.destroy()
  }

  async #keepOpen(onAttempt: () => void): Promise<void> {
    const { log } = this.options
    const { signal } = this.#closed
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        const { ended } = await this.#connect()
        onAttempt()
        log.info('discord.connected', {})
        const code = await ended
        await this.#client?.destroy()
        failures = 1
        if (!signal.aborted) log.error('discord.disconnected', { code })
      } catch (error) {
        const triedAgainInMs = backoffMs(failures, BACKOFF)
        if (!signal.aborted) log.error('discord.not-connected', { error: messageOf(error), triedAgainInMs })
        onAttempt()
      }
      await wait(backoffMs(failures, BACKOFF), { signal }).catch(() => {})
    }
  }

  /** Resolves once there is a session; `ended` resolves when that is over and will not resume by itself. */
  async #connect(): Promise<{ ended: Promise<number | undefined> }> {
    const { apiUrl, token, onDispatch, log } = this.options
    const client: Client = new Client({
      intents: [
        GatewayIntentBits.Guilds,
        GatewayIntentBits.GuildMessages,
        GatewayIntentBits.DirectMessages,
        GatewayIntentBits.MessageContent,
      ],
      rest: { api: apiUrl },
      ws: { buildStrategy: (manager) => new ClosableStrategy(manager, this.#closed.signal) },
      // The caches are never read.
      makeCache: Options.cacheWithLimits({
        ...Options.DefaultMakeCacheSettings,
        MessageManager: 0,
        ReactionManager: 0,
        PresenceManager: 0,
        ThreadMemberManager: 0,
        GuildMemberManager: { maxSize: 0, keepOverLimit: ({ id }) => id === client.user?.id },
        UserManager: { maxSize: 0, keepOverLimit: ({ id }) => id === client.user?.id },
      }),
    })
    this.#client = client
    const ended = new Promise<number | undefined>((resolve) => {
      client.on(Events.ShardDisconnect, ({ code }) => resolve(code))
      client.on(Events.Invalidated, () => resolve(undefined))
      this.#closed.signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    client.on(Events.Raw, onDispatch)
    client.on(Events.Error, (error) => log.warn('discord.error', { error: error.message }))
    client.on(Events.ShardError, (error) => log.warn('discord.socket-failed', { error: error.message }))
    client.on(Events.ShardReconnecting, () => log.info('discord.reconnecting', {}))
    client.on(Events.ShardResume, (_, replayedEvents) => log.info('discord.resumed', { replayedEvents }))
    await client.login(token)
    return { ended }
  }
}

/**
 * Lets a client disconnect at any time: abort the signal, then call `destroy`.
 *
 * As of discord.js 14.27, a client destroyed while waiting for HELLO or READY treats that as a time-out: it reconnects,
 * and `destroy` never settles. One destroyed while asking for the gateway's address connects later.
 */
export class ClosableStrategy extends SimpleShardingStrategy {
  constructor(
    manager: ConstructorParameters<typeof SimpleShardingStrategy>[0],
    private readonly closed: AbortSignal,
  ) {
    super(manager)
    const { retrieveSessionInfo, updateSessionInfo } = manager.options
    const ended = new Set<number>()
    // If a session ends right after it was resumed, discord.js still reads it, and would throw where nobody catches.
    manager.options.retrieveSessionInfo = (shardId) => (ended.has(shardId) ? null : retrieveSessionInfo(shardId))
    manager.options.updateSessionInfo = (shardId, session) => {
      if (!session) return void ended.add(shardId)
      ended.delete(shardId)
      return updateSessionInfo(shardId, session)
    }
  }

  override async connect(): Promise<void> {
    this.closed.throwIfAborted()
    await super.connect()
  }

  override async destroy(options?: Parameters<SimpleShardingStrategy['destroy']>[0]): Promise<void> {
    const { shards } = this as unknown as { shards: Map<number, EventEmitter> }
    // Code waiting for an event of a closed shard gives up quietly.
    for (const shard of shards.values()) shard.emit('closed', { code: CloseCodes.Normal })
    await super.destroy(options)
  }
}
