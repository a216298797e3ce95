import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a directory and those above it, for us alone, unless they are there.
 *
 * Not by `recursive`: Node.js 20 then tries for ever where a file system says ENOENT to anything new, as /proc does.
 */
export function makePrivateDirectory(path: string): void {
  if (isDirectory(path)) return
  makePrivateDirectory(dirname(path))
  try {
    mkdirSync(path, 0o700)
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isDirectory(path)) throw error
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
