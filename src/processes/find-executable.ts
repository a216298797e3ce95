import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join, resolve, sep } from 'node:path'

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
