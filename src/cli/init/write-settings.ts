import { constants, copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { loadConfig } from '../../config.js'
import { fileExists } from '../../config/file.js'
import { configText, type FirstSettings } from '../../config/text.js'
import { makePrivateDirectory } from '../../core/paths.js'
import { GatewayError, messageOf } from '../../errors.js'

const SCHEMA_URL = new URL('../../../aetheel.schema.json', import.meta.url).href

/**
 * Creates the project's directory and writes the configuration file, readable only by its owner.
 *
 * Contract: the file is written whole or not at all. Returns the path of the previous file's backup.
 */
export function writeSettings(
  file: string,
  settings: Omit<FirstSettings, 'schemaUrl'>,
  environment: NodeJS.ProcessEnv,
): string | undefined {
  makeDirectory(settings.project.directory)
  const text = configText({ schemaUrl: SCHEMA_URL, ...settings })
  try {
    makePrivateDirectory(dirname(file))
    return replace(file, text, (draft) => loadConfig(environment, draft))
  } catch (error) {
    const advice = 'Make its directory writable, or set AETHEEL_HOME to another directory.'
    throw new GatewayError('config_invalid', `Cannot write ${file}: ${messageOf(error)}. ${advice}`, {
      cause: error,
    })
  }
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
  } catch (error) {
    const advice = 'Nothing was written. Start again with another directory.'
    throw new GatewayError('config_invalid', `Cannot create ${path}: ${messageOf(error)}. ${advice}`, {
      cause: error,
    })
  }
}

function replace(file: string, text: string, check: (draft: string) => void): string | undefined {
  const draft = `${file}.${process.pid}.new`
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
  try {
    check(draft)
    const backup = fileExists(file) ? freeBackupName(file) : undefined
    if (backup !== undefined) copyFileSync(file, backup, constants.COPYFILE_EXCL)
    renameSync(draft, file)
    return backup
  } finally {
    rmSync(draft, { force: true })
  }
}

/** An unused name, so that earlier backups stay. */
export function freeBackupName(file: string): string {
  for (let count = 1; ; count += 1) {
    const backup = `${file}.bak${count === 1 ? '' : count}`
    if (!fileExists(backup)) return backup
  }
}
