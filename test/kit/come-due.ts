import type { GatewayConfig } from '../../src/config.js'
import { databaseFile, type Gateway } from '../../src/gateway.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { storeOn } from '../../src/store/store.js'
import { until } from './waiting.js'

/** Makes the message waiting for a retry due now; with `failures`, as if it had failed this often. */
export async function comeDue(config: GatewayConfig, gateway: Pick<Gateway, 'wake'>, failures?: number): Promise<void> {
  const { db, close } = storeOn(await openSqlite(databaseFile(config)))
  // The previous attempt may not be settled yet, and the next one may have started already.
  await until(async () => {
    const values = { due_at: 0, ...(failures !== undefined && { failures }) }
    const update = db.updateTable('jobs').set(values).where('state', '=', 'ready').where('due_at', '>', Date.now())
    return (await update.executeTakeFirst()).numUpdatedRows > 0n
  }, 'a message that waits')
  await close()
  gateway.wake()
}
