import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { GatewayConfig } from '../config.js'
import { makePrivateDirectory } from '../core/paths.js'
import { GatewayError, messageOf } from '../errors.js'

/** The SQLite database. */
export function databaseFile(config: Pick<GatewayConfig, 'home'>): string {
  return join(config.home, 'aetheel.db')
}

/** Creates the data directory, accessible only to its owner. An existing one is left unchanged. */
export function makeHome(config: Pick<GatewayConfig, 'home'>): void {
  try {
    makePrivateDirectory(config.home)
  } catch (error) {
    const problem = `The data directory ${config.home} cannot be created: ${messageOf(error)}.`
    throw new GatewayError('store_unavailable', `${problem} Set AETHEEL_HOME to another directory.`, { cause: error })
  }
}

/** Write access lets others plant a configuration file, which names executables; read access reveals file names. */
export function isOpenToOthers({ home }: Pick<GatewayConfig, 'home'>): boolean {
  return ((statSync(home, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0
}
