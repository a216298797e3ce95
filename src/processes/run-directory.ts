import { chmodSync, existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** A directory for the files of one run, accessible only to us. */
export interface RunDirectory {
  path: string
  /** Returns the file's absolute path. */
  write(name: string, content: string | Uint8Array): string
  remove(): void
}

/** `ownerId` is part of its name, so that it can be found after the owner has died. */
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
 * Removes the run directories of a dead owner. Those that cannot be removed are reported to `onProblem`.
 *
 * Anyone may create such a name in a shared directory. Only real directories of our own user are touched, so that a
 * link cannot make us remove its target.
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
      // Someone else may have removed it first, such as the guardian of a stopping gateway.
      if (existsSync(path)) throw error
    }
  }
}

/** Tools may leave read-only directories, such as a module cache. */
function makeWritable(directory: string): void {
  chmodSync(directory, 0o700)
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) makeWritable(join(directory, entry.name))
  }
}
