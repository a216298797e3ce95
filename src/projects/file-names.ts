// The names of files in a project, for completion. Nothing is opened, and links are not followed.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunGit } from './git-clone.js'

/** Larger projects are searched only in part. */
const MAX_WALKED = 5_000
const MAX_LISTED_BYTES = 10_000_000
const GIT_TIMEOUT_MS = 5_000
const SKIPPED = new Set(['node_modules', '.git', 'dist', 'target', '.venv', '__pycache__', '.aetheel'])

/** The repository's git settings must not run anything: an agent may have written them. */
const LIST_FILES = [
  ...['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null'],
  ...['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'],
]

/** The files of a checkout, except ignored ones; undefined if the directory is not one, or has no files. */
export async function filesInCheckout(directory: string, run: RunGit): Promise<string[] | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  const onStdout = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes <= MAX_LISTED_BYTES) chunks.push(chunk)
  }
  const outcome = await run({ args: LIST_FILES, cwd: directory, timeoutMs: GIT_TIMEOUT_MS, onStdout })
  // Without the last, which may be cut off.
  const files = Buffer.concat(chunks).toString().split('\0').slice(0, -1)
  return outcome.ok && files.length > 0 ? withDirectories(files.filter((file) => !isOurs(file))) : undefined
}

/** Breadth first; directories end with a slash. */
export async function filesBelow(directory: string, showsHidden = false): Promise<string[]> {
  const found: string[] = []
  let level = ['']
  while (level.length > 0 && found.length < MAX_WALKED) {
    const next: string[] = []
    for (const folder of level) {
      for (const entry of await entriesOf(join(directory, folder))) {
        if ((!showsHidden && entry.name.startsWith('.')) || SKIPPED.has(entry.name)) continue
        const path = `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`
        found.push(path)
        if (entry.isDirectory()) next.push(path)
        if (found.length >= MAX_WALKED) return found
      }
    }
    level = next
  }
  return found
}

/** First paths that start with the typed text, then names that do, then paths that contain it. */
export function matchingFiles(paths: string[], typed: string): string[] {
  const wanted = typed.toLowerCase()
  return paths
    .map((path) => ({ path, rank: rankOf(path.toLowerCase(), wanted), depth: depthOf(path) }))
    .filter(({ path, rank }) => rank < 3 && path !== typed)
    .toSorted((one, other) => one.rank - other.rank || one.depth - other.depth || compare(one.path, other.path))
    .map(({ path }) => path)
}

function rankOf(path: string, wanted: string): number {
  const name = path.slice(path.lastIndexOf('/', path.length - 2) + 1)
  if (path.startsWith(wanted)) return 0
  if (name.startsWith(wanted)) return 1
  return path.includes(wanted) ? 2 : 3
}

function depthOf(path: string): number {
  return path.split('/').length - (path.endsWith('/') ? 1 : 0)
}

function compare(one: string, other: string): number {
  return one < other ? -1 : 1
}

/** What the gateway keeps in the project. */
function isOurs(path: string): boolean {
  return path.startsWith('.aetheel/')
}

function withDirectories(files: string[]): string[] {
  const directories = new Set<string>()
  for (const file of files) {
    for (let end = file.lastIndexOf('/'); end > 0; end = file.lastIndexOf('/', end - 1)) {
      const directory = file.slice(0, end + 1)
      if (directories.has(directory)) break
      directories.add(directory)
    }
  }
  return [...directories, ...files]
}

async function entriesOf(directory: string) {
  try {
    return await readdir(directory, { withFileTypes: true })
  } catch {
    return [] // Not readable, or gone meanwhile: nothing to offer.
  }
}
