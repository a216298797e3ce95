// Opens the files that an agent names in its answer.
//
// An agent reads pages and mails of strangers, which may tell it to name any file of this machine. So it is judged here,
// when the file is opened and by what was opened: it must be in a directory that the agent may send from, and no secret.

import { constants } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { basename, relative, resolve, sep } from 'node:path'
import { GatewayError } from '../errors.js'
import { describeBytes } from './byte-size.js'
import { isOpenAt } from './opened-file.js'
import { isSecretPath } from './secret-paths.js'

/** A pipe or a device must neither make us wait nor become our terminal. */
const READ_WITHOUT_WAITING = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const LONGEST_SHOWN_PATH = 200

export interface OpenedFile {
  name: string
  content: Buffer
}

/**
 * Reads a file that is to be sent. A relative path begins at the first of the roots.
 *
 * Contract: throws `request_invalid` with a sentence for the person when it cannot or must not be sent.
 */
export async function openOutgoingFile(path: string, roots: string[], maxBytes: number): Promise<OpenedFile> {
  try {
    const wanted = resolve(roots[0] ?? '/', path)
    const found = await judged(wanted, roots)
    const handle = await open(found, READ_WITHOUT_WAITING)
    try {
      if (!(await isOpenAt(handle, found))) throw refusal('it was changed while it was opened. Ask for it again.')
      return { name: basename(wanted), content: await read(handle, maxBytes) }
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw new GatewayError('request_invalid', `The file "${shown(path)}" was not sent: ${reasonOf(error)}`, {
      cause: error,
    })
  }
}

/** Contract: gives the real path of what may be sent. */
async function judged(wanted: string, roots: string[]): Promise<string> {
  const real = (await Promise.all(roots.map(realRoot))).flat()
  const places = [...roots.map((root) => resolve(root)), ...real]
  // Before anything else: else the answer would tell which files there are elsewhere.
  if (pathsFrom(places, wanted).length === 0) throw outside()
  const found = await realpath(wanted)
  const paths = pathsFrom(real, found)
  if (paths.length === 0) throw outside()
  // A root inside another was made one on purpose.
  if (paths.every(isSecretPath)) {
    throw refusal(
      'it is of a kind that may hold secrets, and such files are never sent. Fetch it from the machine itself.',
    )
  }
  return found
}

async function realRoot(root: string): Promise<string[]> {
  try {
    return [await realpath(root)]
  } catch {
    // Nothing can be sent from a root that is not there. The others hold still.
    return []
  }
}

/** The paths to a file from those of the directories that hold it. */
function pathsFrom(directories: string[], file: string): string[] {
  return directories
    .map((directory) => relative(directory, file))
    .filter((path) => path !== '..' && !path.startsWith(`..${sep}`))
}

/** Does not go by the size alone: a file may grow while it is read, and some do not tell it. */
async function read(handle: FileHandle, maxBytes: number): Promise<Buffer> {
  const found = await handle.stat()
  if (found.isDirectory()) throw refusal('it is a directory. Ask for an archive of it.')
  if (!found.isFile()) throw refusal('it is not a regular file. Ask for a copy of what it holds.')
  if (found.size > maxBytes) throw tooLarge(found.size, maxBytes)
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of handle.createReadStream({ autoClose: false, end: maxBytes })) {
    parts.push(part as Buffer)
    bytes += (part as Buffer).length
  }
  if (bytes > maxBytes) throw tooLarge(bytes, maxBytes)
  return Buffer.concat(parts, bytes)
}

function reasonOf(error: unknown): string {
  if (error instanceof GatewayError) return error.message
  const code = codeOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file. Ask where it is.'
  // The words of the system would name directories of the machine.
  return `it cannot be read (${code ?? 'unknown'}). Check the path, and that the gateway may read it.`
}

function outside(): GatewayError {
  return refusal("it is outside the project's directory. Ask for a copy inside it if it may be sent.")
}

function tooLarge(bytes: number, maxBytes: number): GatewayError {
  return refusal(`it has ${describeBytes(bytes)}, and ${describeBytes(maxBytes)} can be sent. Ask for less of it.`)
}

function refusal(reason: string): GatewayError {
  return new GatewayError('request_invalid', reason)
}

function shown(path: string): string {
  const line = path.slice(0, LONGEST_SHOWN_PATH).replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
  return path.length > LONGEST_SHOWN_PATH ? `${line}…` : line
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}
