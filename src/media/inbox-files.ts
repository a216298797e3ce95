// Saves the files people send into the agent's working directory.
//
// Invariants:
// - The agent may write there, and may be tricked by what it reads. Nothing is written through a link it may have
//   planted: content goes only into a new file whose location has been verified.
// - A file exists completely or not at all.
// - A file that cannot be saved is reported to the person and never costs the message.

import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { IncomingFile } from '../channels/types.js'
import { GatewayError, messageOf } from '../errors.js'
import { describeBytes } from './byte-size.js'
import { INBOX_DIRECTORY, inboxFolder, STATE_DIRECTORY } from './inbox-folder.js'
import { isOpenAt } from './opened-file.js'
import { safeFileNames } from './safe-file-names.js'

export const MAX_FILES = 10
const ATTACHED = 'Attached file: '
const ATTACHED_LINE = new RegExp(`^${ATTACHED}${STATE_DIRECTORY}/${INBOX_DIRECTORY}/[^/]+/(.+) [(][^()]+[)]$`)
const SMALLER = 'Send a smaller one, or raise ATTACHMENT_MAX_MB.'
const UNKNOWN_TYPE = 'application/octet-stream'
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

export interface InboxOptions {
  /** The agent's working directory. */
  directory: string
  /** The platform's id of the message. */
  messageId: string
  /** Per file. */
  maxBytes: number
  /** MIME types, such as `text/plain` or `image/*`. */
  types: string[]
  signal: AbortSignal
}

export interface SavedFiles {
  /** For the agent, one line per saved file: its path relative to the working directory, its type and size. */
  lines: string[]
  /** For the person, one sentence per file that was not saved. */
  notes: string[]
  /** The first saved file, with its absolute path. */
  first?: { path: string; type: string }
}

/** Contract: never rejects. The same message and files yield the same paths, and existing files are not rewritten. */
export async function saveIncomingFiles(files: IncomingFile[], options: InboxOptions): Promise<SavedFiles> {
  const folder = inboxFolder(options.messageId)
  let made: Promise<string> | undefined
  const makeFolderOnce = (): Promise<string> => (made ??= makeFolder(options.directory, folder))
  const saved: SavedFiles = { lines: [], notes: [] }
  // Name all files, so that a failure does not change the names of later ones.
  const names = safeFileNames(files.map(({ name }) => name))
  for (const [index, file] of files.slice(0, MAX_FILES).entries()) {
    const name = names[index] ?? ''
    try {
      const { type, bytes } = await save(file, name, makeFolderOnce, options)
      const path = `${STATE_DIRECTORY}/${INBOX_DIRECTORY}/${folder}/${name}`
      saved.first ??= { path: join(options.directory, path), type }
      saved.lines.push(`${ATTACHED}${path} (${type}, ${describeBytes(bytes)})`)
    } catch (error) {
      saved.notes.push(`The file "${name}" was not saved: ${reasonOf(error)}`)
    }
  }
  const tooMany = names.slice(MAX_FILES).map((name) => `"${name}"`)
  if (tooMany.length > 0) {
    const rule = `a message may have at most ${MAX_FILES} files`
    saved.notes.push(`Not saved, since ${rule}: ${tooMany.join(', ')}. Send the rest in another message.`)
  }
  return saved
}

/** A text as it was written, and the names of the files that are listed at its end. */
export function splitAttached(text: string): { text: string; names: string[] } {
  const lines = text.split('\n')
  const isOther = (line: string): boolean => !ATTACHED_LINE.test(line)
  const end = lines.findLastIndex(isOther) + 1
  const names = lines.slice(end).map((line) => line.replace(ATTACHED_LINE, '$1'))
  return { text: lines.slice(0, end).join('\n'), names }
}

/** Removes what was saved for messages. */
export async function removeIncomingFiles(workingDirectory: string, messageIds: string[]): Promise<void> {
  const inbox = join(workingDirectory, STATE_DIRECTORY, INBOX_DIRECTORY)
  const folders = new Set(messageIds.map(inboxFolder))
  try {
    // Files behind a link are not ours.
    if ((await realpath(inbox)) !== join(await realpath(workingDirectory), STATE_DIRECTORY, INBOX_DIRECTORY)) return
    const saved = (await readdir(inbox)).filter((name) => folders.has(name))
    for (const name of saved) await rm(join(inbox, name), { recursive: true, force: true })
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error
  }
}

async function save(
  file: IncomingFile,
  name: string,
  folder: () => Promise<string>,
  { maxBytes, types, signal }: InboxOptions,
): Promise<{ type: string; bytes: number }> {
  if (file.bytes > maxBytes) throw tooLarge(file.bytes, maxBytes)
  const declared = declaredTypeOf(file.type, types)
  const path = join(await folder(), name)
  const present = await sizeOf(path)
  if (declared.type !== undefined && present === file.bytes) return { type: declared.type, bytes: present }
  const content = await contentOf(file, signal)
  const bytes = content.length
  if (bytes > maxBytes) throw tooLarge(bytes, maxBytes)
  if (bytes > file.bytes) {
    throw refusal(`it is larger than the announced ${describeBytes(file.bytes)}. Send it again.`)
  }
  const type = typeOfContent(content, declared, types)
  if (present !== bytes) await write(path, content)
  return { type, bytes }
}

async function contentOf(file: IncomingFile, signal: AbortSignal): Promise<Uint8Array> {
  try {
    return await file.read(signal)
  } catch (error) {
    const problem = messageOf(error)
      .replaceAll(/[\s\p{Cc}]+/gu, ' ')
      .slice(0, 200)
      .replace(/\.$/, '')
    if (error instanceof GatewayError && error.code === 'too_large') throw refusal(`${problem}. ${SMALLER}`, error)
    throw refusal(`it could not be fetched (${problem}). Send it again.`, error)
  }
}

/** What the sender says about a file's type. Without `type`, its content decides. */
interface DeclaredType {
  type?: string
  named?: string
}

/** Contract: throws `request_invalid` for a type that is not accepted. */
export function declaredTypeOf(given: string | undefined, types: string[]): DeclaredType {
  const named = declaredType(given)
  if (named === undefined) return {}
  // Source code has types of its own, such as application/sql: anything textual counts as text.
  if (named.startsWith('application/') && !isAllowed(named, types)) return { named }
  requireAllowed(named, types)
  return { type: named, named }
}

/** Contract: as for `declaredTypeOf`. */
export function typeOfContent(content: Uint8Array, { type, named }: DeclaredType, types: string[]): string {
  const found = type ?? (isText(content) ? 'text/plain' : (named ?? UNKNOWN_TYPE))
  requireAllowed(found, types)
  return found
}

/** Without parameters; undefined if the platform did not know it or sent something that is not a MIME type. */
function declaredType(type = ''): string | undefined {
  const [essence = ''] = type.split(';', 1)
  const plain = essence.trim().toLowerCase()
  return plain !== UNKNOWN_TYPE && /^[a-z\d][\w.+-]{0,63}\/[a-z\d][\w.+-]{0,99}$/.test(plain) ? plain : undefined
}

function isText(content: Uint8Array): boolean {
  return isUtf8(content) && !content.includes(0)
}

function requireAllowed(type: string, types: string[]): void {
  if (isAllowed(type, types)) return
  throw refusal(`files of type ${type} are not accepted here. ATTACHMENT_TYPES lists the accepted types.`)
}

function isAllowed(type: string, types: string[]): boolean {
  return types.some((pattern) => matches(type, pattern.toLowerCase()))
}

function matches(type: string, pattern: string): boolean {
  return pattern.endsWith('/*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}

/** Contract: returns the real path of the folder, with no link below the working directory. */
async function makeFolder(workingDirectory: string, name: string): Promise<string> {
  const state = join(await realpath(workingDirectory), STATE_DIRECTORY)
  await makeDirectory(state)
  await hideFromGit(state)
  const inbox = join(state, INBOX_DIRECTORY)
  await makeDirectory(inbox)
  const folder = join(inbox, name)
  await makeDirectory(folder)
  if ((await realpath(folder)) !== folder) throw obstructed()
  return folder
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, 0o700)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    if (!(await lstat(path)).isDirectory()) throw obstructed()
  }
}

async function hideFromGit(state: string): Promise<void> {
  try {
    await writeNew(join(state, '.gitignore'), Buffer.from('*\n'))
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    const found = await lstat(path)
    if (!found.isFile()) throw obstructed()
    return found.size
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

async function write(path: string, content: Uint8Array): Promise<void> {
  const temporary = join(dirname(path), `.${randomUUID()}.part`)
  try {
    await writeNew(temporary, content)
    // Replaces a link planted there in the meantime instead of following it.
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
}

async function writeNew(path: string, content: Uint8Array): Promise<void> {
  const handle = await open(path, NEW_FILE, 0o600)
  try {
    if (!(await isOpenAt(handle, path))) throw obstructed()
    await handle.writeFile(content)
    // Otherwise a power cut could leave an empty file of the right size.
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof GatewayError) return error.message
  const code = codeOf(error)
  const isFull = code === 'ENOSPC' || code === 'EDQUOT'
  if (isFull) return "the gateway's disk is full. Free some space, and send it again."
  // The system's own message would reveal directories of the machine.
  const problem = code ?? messageOf(error)
  return `the gateway cannot write into the project's directory (${problem}). Check that it exists and is writable.`
}

function tooLarge(bytes: number, maxBytes: number): GatewayError {
  return refusal(`it has ${describeBytes(bytes)}, and the limit is ${describeBytes(maxBytes)}. ${SMALLER}`)
}

function obstructed(): GatewayError {
  const place = `${STATE_DIRECTORY}/${INBOX_DIRECTORY} of the project's directory`
  return refusal(`a link or something else is in the way in ${place}. Remove it, and send the file again.`)
}

function refusal(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('request_invalid', reason, { cause })
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}
