// Opens the files an agent names in its answer.
//
// An agent reads web pages and mail from strangers, which may tell it to name any file on this machine. So the check
// happens here, on the file that was actually opened: it must be in a directory the agent may send from, and not hold
// secrets.

import { constants } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { basename, relative, resolve, sep } from 'node:path'
import type { OpenedFile, OutgoingFile, OutgoingPath } from '../channels/types.js'
import { GatewayError } from '../errors.js'
import { describeBytes } from './byte-size.js'
import { isOpenAt } from './opened-file.js'
import { fetchPublic } from './public-fetch.js'
import { isSecretPath } from './secret-paths.js'

/** A pipe or a device must neither block us nor become our controlling terminal. */
const READ_NON_BLOCKING = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const MAX_SHOWN_PATH = 200
/** The answer waits for the download, and must still be sent within the channel's time limit. */
const FETCH_TIMEOUT_MS = 10_000

/** The operator's rules for files that agents send. */
export interface SendingRules {
  /** Allowed directories, besides the agent's working directory. */
  roots: string[]
  /**
   * Nothing in these is sent, whichever root contains them; a root inside one of them is deliberate and stays allowed.
   */
  denied: string[]
}

/**
 * Reads or fetches a file to be sent.
 *
 * Contract: throws `request_invalid` with a sentence for the person if it cannot or must not be sent.
 */
export function openOutgoing(
  file: OutgoingFile,
  rules: SendingRules,
  maxBytes: number,
  signal: AbortSignal,
): Promise<OpenedFile> {
  return 'url' in file ? fetchOutgoing(file.url, maxBytes, signal) : openOutgoingFile(file, rules, maxBytes)
}

/** Relative paths start at the agent's working directory. */
export async function openOutgoingFile(
  { path, directory }: OutgoingPath,
  rules: SendingRules,
  maxBytes: number,
): Promise<OpenedFile> {
  return withRefusal(path, async () => {
    const wanted = resolve(directory, path)
    const found = await checkedPath(wanted, [directory, ...rules.roots], rules.denied)
    const handle = await open(found, READ_NON_BLOCKING)
    try {
      if (!(await isOpenAt(handle, found))) throw refusal('it changed while it was being opened. Ask for it again.')
      return { name: basename(wanted), content: await read(handle, maxBytes) }
    } finally {
      await handle.close()
    }
  })
}

/** The path of a file that may be sent, for someone at this machine. Contract: as `openOutgoingFile`; reads nothing. */
export async function locateOutgoingFile(
  { path, directory }: OutgoingPath,
  { roots, denied }: SendingRules,
): Promise<string> {
  return withRefusal(path, async () => {
    const wanted = resolve(directory, path)
    await checkedPath(wanted, [directory, ...roots], denied)
    return wanted
  })
}

async function fetchOutgoing(url: string, maxBytes: number, signal: AbortSignal): Promise<OpenedFile> {
  return withRefusal(url, async () => {
    try {
      const { name, content } = await fetchPublic(url, { maxBytes, signal, timeoutMs: FETCH_TIMEOUT_MS })
      return { name, content }
    } catch (error) {
      const advice = "Open it yourself, or ask for a copy in the project's directory."
      throw error instanceof GatewayError ? refusal(`${error.message}. ${advice}`) : error
    }
  })
}

async function withRefusal<T>(named: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    throw new GatewayError('request_invalid', `The file "${shown(named)}" was not sent: ${reasonOf(error)}`, {
      cause: error,
    })
  }
}

/** Contract: returns the real path of a file that may be sent. */
async function checkedPath(wanted: string, roots: string[], denied: string[]): Promise<string> {
  const real = (await Promise.all(roots.map(realPath))).flat()
  const places = [...roots.map((root) => resolve(root)), ...real]
  // Checked first: otherwise the answer would reveal which files exist elsewhere.
  if (!places.some((place) => contains(place, wanted))) throw outside()
  const found = await realpath(wanted)
  const containing = real.filter((root) => contains(root, found))
  if (containing.length === 0) throw outside()
  const denying = (await Promise.all(denied.map(realPath))).flat().filter((place) => contains(place, found))
  // A root inside another, or inside a denied directory, is deliberate.
  const open = containing.filter((root) => denying.every((place) => place !== root && contains(place, root)))
  if (open.every((root) => isSecretPath(relative(root, found)))) {
    throw refusal('files of this kind may hold secrets and are never sent. Get it from the machine itself.')
  }
  return found
}

async function realPath(path: string): Promise<string[]> {
  try {
    return [await realpath(path)]
  } catch {
    // Nothing can be sent from a missing root. The others still apply.
    return []
  }
}

function contains(directory: string, file: string): boolean {
  const path = relative(directory, file)
  return path !== '..' && !path.startsWith(`..${sep}`)
}

/** Does not rely on the size: a file may grow while it is read, and some do not report one. */
async function read(handle: FileHandle, maxBytes: number): Promise<Buffer> {
  const found = await handle.stat()
  if (found.isDirectory()) throw refusal('it is a directory. Ask for an archive of it.')
  if (!found.isFile()) throw refusal('it is not a regular file. Ask for a copy of its content.')
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
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'it does not exist. Ask where it is.'
  // The system's own message would reveal directories of the machine.
  return `it cannot be read (${code ?? 'unknown'}). Check the path, and that the gateway may read it.`
}

function outside(): GatewayError {
  return refusal("it is outside the project's directory. If it may be sent, ask for a copy inside it.")
}

function tooLarge(bytes: number, maxBytes: number): GatewayError {
  return refusal(`it has ${describeBytes(bytes)}, and the limit is ${describeBytes(maxBytes)}. Ask for a smaller part.`)
}

function refusal(reason: string): GatewayError {
  return new GatewayError('request_invalid', reason)
}

function shown(path: string): string {
  const line = path.slice(0, MAX_SHOWN_PATH).replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
  return path.length > MAX_SHOWN_PATH ? `${line}…` : line
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}
