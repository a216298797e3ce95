import { type FileHandle, lstat, readlink, realpath } from 'node:fs/promises'

/**
 * Whether the open file is the one at this path, with no link anywhere on the way.
 *
 * Check after opening: an agent that may write there can change a path after any earlier check.
 */
export async function isOpenAt(handle: FileHandle, path: string): Promise<boolean> {
  const opened = await handle.stat({ bigint: true })
  const there = await lstat(path, { bigint: true })
  if (opened.dev !== there.dev || opened.ino !== there.ino || (await realpath(path)) !== path) return false
  // A directory swapped for a link and back between two checks would fool them. The kernel's own view of the open file
  // cannot be fooled; only Linux offers it.
  return process.platform !== 'linux' || (await readlink(`/proc/self/fd/${handle.fd}`)) === path
}
