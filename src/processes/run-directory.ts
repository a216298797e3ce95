import { chmodSync, existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** A private directory for the files of one run: readable by us alone, gone with `remove`. */
export interface RunDirectory {
  path: string
  /** Writes a file and returns its absolute path. */
  write(name: string, content: string | Uint8Array): string
  remove(): void
}

/** `ownerId` stands in its name, so that it is found when the owner has died. */
export function createRunDirectory(ownerId?: string): RunDirectory {
  const path = mkdtempSync(resolve(tmpdir(), prefixOf(ownerId)))
  return {
    path,
    write(name, content) {
      const file = join(path, name)
      writeFileSync(file, content, { mode: 0o600 })
      return file
    },
    remove: () => removeTree(path),
  }
}

/**
 * Removes what the runs of a dead owner left. What cannot be removed is told by `onProblem` and left.
 *
 * Everybody may put something under such a name into a shared directory. A link there must not lead us to remove what
 * it points to: only what is a directory of our own is touched.
 */
export function removeRunDirectories(ownerId: string, onProblem: (path: string, error: unknown) => void): void {
  for (const name of namesIn(tmpdir(), onProblem)) {
    if (!name.startsWith(prefixOf(ownerId))) continue
    const path = join(tmpdir(), name)
    try {
      const found = lstatSync(path)
      if (found.isDirectory() && found.uid === process.getuid?.()) removeTree(path)
    } catch (error) {
      onProblem(path, error)
    }
  }
}

function namesIn(directory: string, onProblem: (path: string, error: unknown) => void): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    onProblem(directory, error)
    return []
  }
}

function prefixOf(ownerId: string | undefined): string {
  return ownerId === undefined ? 'aetheel-run-' : `aetheel-run-${ownerId}-`
}

function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    try {
      makeWritable(path)
      rmSync(path, { recursive: true, force: true })
    } catch (error) {
      // Else somebody was faster, as the guardian of a gateway that stops.
      if (existsSync(path)) throw error
    }
  }
}

/** A tool may leave directories that nobody may change, such as a cache of modules. */
function makeWritable(directory: string): void {
  chmodSync(directory, 0o700)
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) makeWritable(join(directory, entry.name))
  }
}
