import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { IncomingFile } from '../channels/types.js'
import { typeOfName } from './file-types.js'

/** A file on this machine that a person attaches. Contract: never rejects; a missing one fails when it is read. */
export async function localFile(path: string): Promise<IncomingFile> {
  const name = basename(path)
  const bytes = await sizeOf(path)
  return { name, type: typeOfName(name), bytes, read: () => readUpTo(path, bytes + 1) }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch {
    return 0 // Reading it says why.
  }
}

async function readUpTo(path: string, bytes: number): Promise<Uint8Array> {
  // Opening a pipe would wait for a writer.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    // A pipe or a device might never end.
    if (!(await handle.stat()).isFile()) throw new Error('it is not a file')
    const content = Buffer.alloc(bytes)
    let length = 0
    while (length < bytes) {
      const { bytesRead } = await handle.read(content, length, bytes - length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    return content.subarray(0, length)
  } finally {
    await handle.close()
  }
}
