// Opens the files that an agent names in its answer.
//
// An agent reads pages and mails of strangers, which may tell it to name any file of this machine. So it is judged here,
// when the file is opened and by what was opened: it must be in a directory that the agent may send from, and no secret.

import { constants } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { basename, relative, resolve, sep } from 'node:path'
import type { OpenedFile, OutgoingFile, OutgoingPath } from '../channels/types.js'
import { GatewayError } from '../errors.js'
import { describeBytes } from './byte-size.js'
import { isOpenAt } from './opened-file.js'
import { fetchPublic } from './public-fetch.js'
import { isSecretPath } from './secret-paths.js'

/** A pipe or a device must neither make us wait nor become our terminal. */
const READ_WITHOUT_WAITING = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const LONGEST_SHOWN_PATH = 200
/** The answer waits for it, and must still be sent within the time that a channel has. */
const FETCH_TIMEOUT_MS = 10_000

/** What the operator says about files that agents send. */
export interface SendingRules {
  /** Directories, beside the one where the agent worked. */
  roots: string[]
  /** Nothing in these is sent, whichever root holds them; a root inside of one was made one on purpose. */
  denied: string[]
}

/**
 * Reads a file that is to be sent, or fetches it.
 *
 * Contract: throws `request_invalid` with a sentence for the person when it cannot or must not be sent.
 */
export function openOutgoing(
  file: OutgoingFile,
  rules: SendingRules,
  maxBytes: number,
  signal: AbortSignal,
): Promise<OpenedFile> {
  return 'url' in file ? fetchOutgoing(file.url, maxBytes, signal) : openOutgoingFile(file, rules, maxBytes)
}

/** A relative path begins where the agent worked. */
export async function openOutgoingFile(
  { path, directory }: OutgoingPath,
  rules: SendingRules,
  maxBytes: number,
): Promise<OpenedFile> {
  return orRefusal(path, async () => {
    const wanted = resolve(directory, path)
    const found = await judged(wanted, [directory, ...rules.roots], rules.denied)
    const handle = await open(found, READ_WITHOUT_WAITING)
    try {
      if (!(await isOpenAt(handle, found))) throw refusal('it was changed while it was opened. Ask for it again.')
      return { name: basename(wanted), content: await read(handle, maxBytes) }
    } finally {
      await handle.close()
    }
  })
}

/** Where a file is that could be sent, for who sits at this machine. Contract: as `openOutgoingFile`; reads nothing. */
export async function locateOutgoingFile(
  { path, directory }: OutgoingPath,
  { roots, denied }: SendingRules,
): Promise<string> {
  return orRefusal(path, async () => {
    const wanted = resolve(directory, path)
    await judged(wanted, [directory, ...roots], denied)
    return wanted
  })
}

async function fetchOutgoing(url: string, maxBytes: number, signal: AbortSignal): Promise<OpenedFile> {
  return orRefusal(url, async () => {
    try {
      const { name, content } = await fetchPublic(url, { maxBytes, signal, timeoutMs: FETCH_TIMEOUT_MS })
      return { name, content }
    } catch (error) {
      const advice = "Open it yourself, or ask for a copy in the project's directory."
      throw error instanceof GatewayError ? refusal(`${error.message}. ${advice}`) : error
    }
  })
}

async function orRefusal<T>(named: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    throw new GatewayError('request_invalid', `The file "${shown(named)}" was not sent: ${reasonOf(error)}`, {
      cause: error,
    })
  }
}

/** Contract: gives the real path of what may be sent. */
async function judged(wanted: string, roots: string[], denied: string[]): Promise<string> {
  const real = (await Promise.all(roots.map(realPath))).flat()
  const places = [...roots.map((root) => resolve(root)), ...real]
  // Before anything else: else the answer would tell which files there are elsewhere.
  if (!places.some((place) => holds(place, wanted))) throw outside()
  const found = await realpath(wanted)
  const around = real.filter((root) => holds(root, found))
  if (around.length === 0) throw outside()
  const closed = (await Promise.all(denied.map(realPath))).flat().filter((place) => holds(place, found))
  // A root inside another, or inside a place that is denied, was made one on purpose.
  const open = around.filter((root) => closed.every((place) => place !== root && holds(place, root)))
  if (open.every((root) => isSecretPath(relative(root, found)))) {
    throw refusal(
      'it is of a kind that may hold secrets, and such files are never sent. Fetch it from the machine itself.',
    )
  }
  return found
}

async function realPath(path: string): Promise<string[]> {
  try {
    return [await realpath(path)]
  } catch {
    // Nothing can be sent from a root that is not there. The others hold still.
    return []
  }
}

function holds(directory: string, file: string): boolean {
  const path = relative(directory, file)
  return path !== '..' && !path.startsWith(`..${sep}`)
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
