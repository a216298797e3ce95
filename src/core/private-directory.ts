import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a directory and its missing parents, accessible to us alone.
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

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
