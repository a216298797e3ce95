// Looks at paths on this machine.

import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join, resolve, sep } from 'node:path'

export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false // Missing, below a file, or a link cycle.
  }
}

/**
 * Creates a directory and its missing parents, accessible only to us.
 *
 * Not with `recursive`: Node.js 20 then loops forever on file systems that answer ENOENT to every mkdir, such as /proc.
 */
export function makePrivateDirectory(path: string): void {
  if (isDirectory(path)) return
  makePrivateDirectory(dirname(path))
  try {
    mkdirSync(path, 0o700)
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!isDirectory(path)) throw error
  }
}

/** The command's absolute path; a name without a slash is looked up in `searchPath` as in a shell. */
export function findExecutable(command: string, searchPath: string): string | undefined {
  if (command === '') return undefined
  if (command.includes(sep)) return isExecutable(resolve(command)) ? resolve(command) : undefined
  return searchPath
    .split(delimiter)
    .filter((directory) => isAbsolute(directory))
    .map((directory) => join(directory, command))
    .find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false // Not permitted, even to stat: as good as missing.
  }
}
