import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { GatewayConfig } from '../config.js'
import { makePrivateDirectory } from '../core/private-directory.js'
import { GatewayError, messageOf } from '../errors.js'

/** Where SQLite keeps its file. */
export function databaseFile(config: Pick<GatewayConfig, 'home'>): string {
  return join(config.home, 'aetheel.db')
}

/** Makes the data directory, readable by its owner alone. One that is there is left as it is. */
export function makeHome(config: Pick<GatewayConfig, 'home'>): void {
  try {
    makePrivateDirectory(config.home)
  } catch (error) {
    const message = `The data directory ${config.home} cannot be made: ${messageOf(error)}. Set AETHEEL_HOME to another.`
    throw new GatewayError('store_unavailable', message, { cause: error })
  }
}

/** Whoever may write there may also put a configuration file there, which names executables; whoever may read finds files
 *  whose names tell something. */
export function isOpenToOthers({ home }: Pick<GatewayConfig, 'home'>): boolean {
  return ((statSync(home, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0
}
