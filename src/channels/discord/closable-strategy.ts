import type { EventEmitter } from 'node:events'
import { CloseCodes, SimpleShardingStrategy } from 'discord.js'

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
