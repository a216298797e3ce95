import type { GatewayConfig } from '../config.js'
import { databaseFile, makeHome } from '../gateway.js'
import type { Log } from '../log.js'
import { openStore, type Store } from '../store/store.js'

/** Opens the database for one change. A running gateway sees it in its next turn. */
export async function withStore<T>(config: GatewayConfig, log: Log, work: (store: Store) => Promise<T>): Promise<T> {
  makeHome(config)
  const store = await openStore({ file: databaseFile(config), databaseUrl: config.databaseUrl }, log)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
