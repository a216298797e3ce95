import type { GatewayConfig } from '../config.js'
import { databaseFile, makeHome } from '../gateway.js'
import type { Log } from '../log.js'
import { openStore, openStoreReadOnly, type Store } from '../store/store.js'

/** For changes, which a running gateway sees in its next turn. */
export function openForChanges(config: GatewayConfig, log: Log): Promise<Store> {
  makeHome(config)
  return openStore({ file: databaseFile(config), databaseUrl: config.databaseUrl }, log)
}

export function openForReading(config: GatewayConfig, log: Log): Promise<Store> {
  return openStoreReadOnly({ file: databaseFile(config), databaseUrl: config.databaseUrl }, log)
}

/** Uses a store or a connection, then closes it. */
export async function closing<Resource extends { close(): Promise<void> }, T>(
  resource: Resource,
  use: (resource: Resource) => Promise<T>,
): Promise<T> {
  try {
    return await use(resource)
  } finally {
    await resource.close()
  }
}
