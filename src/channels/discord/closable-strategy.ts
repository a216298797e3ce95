import type { EventEmitter } from 'node:events'
import { CloseCodes, SimpleShardingStrategy } from 'discord.js'

/**
 * Lets a client leave at any time: abort the signal, then call `destroy`.
 *
 * As of discord.js 14.27, a client that is destroyed while it waits for HELLO or READY takes that for a time-out: it
 * connects anew, and `destroy` never settles. One that is destroyed while it asks where the gateway is connects later.
 */
export class ClosableStrategy extends SimpleShardingStrategy {
  constructor(
    manager: ConstructorParameters<typeof SimpleShardingStrategy>[0],
    private readonly left: AbortSignal,
  ) {
    super(manager)
    const { retrieveSessionInfo, updateSessionInfo } = manager.options
    const ended = new Set<number>()
    // When a session ends right after it was resumed, discord.js still looks into it, and would throw where nobody catches.
    manager.options.retrieveSessionInfo = (shardId) => (ended.has(shardId) ? null : retrieveSessionInfo(shardId))
    manager.options.updateSessionInfo = (shardId, session) => {
      if (!session) return void ended.add(shardId)
      ended.delete(shardId)
      return updateSessionInfo(shardId, session)
    }
  }

  override async connect(): Promise<void> {
    this.left.throwIfAborted()
    await super.connect()
  }

  override async destroy(options?: Parameters<SimpleShardingStrategy['destroy']>[0]): Promise<void> {
    const { shards } = this as unknown as { shards: Map<number, EventEmitter> }
    // Whoever waits for an event of a shard that has closed gives up quietly.
    for (const shard of shards.values()) shard.emit('closed', { code: CloseCodes.Normal })
    await super.destroy(options)
  }
}
