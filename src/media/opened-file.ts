import { type FileHandle, lstat, readlink, realpath } from 'node:fs/promises'

/**
 * Whether what was opened is the file at this path, with no link anywhere on the way.
 *
 * To be asked after opening: what was found out about a path before may have been changed since, by an agent that may
 * write there.
 */
export async function isOpenAt(handle: FileHandle, path: string): Promise<boolean> {
  const opened = await handle.stat({ bigint: true })
  const there = await lstat(path, { bigint: true })
  if (opened.dev !== there.dev || opened.ino !== there.ino || (await realpath(path)) !== path) return false
  // A directory that is swapped for a link and back between two questions deceives them. The system's own word on what is
  // open cannot be deceived; only Linux gives it.
  return process.platform !== 'linux' || (await readlink(`/proc/self/fd/${handle.fd}`)) === path
}
