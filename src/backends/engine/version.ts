// Versions: of a CLI, and of the Node.js that would run it. CLIs from npm are often scripts that begin with
// `#!/usr/bin/env node`, and their package states the Node.js they need.

import { open, readFile, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isAtLeast, parseVersion } from '../../core/versions.js'
import { findExecutable } from '../../core/paths.js'
import { askCli } from './ask-cli.js'

export interface VersionKnowledge {
  /** The oldest version that has passed the conformance suite. */
  oldestKnown: string
  /** Published security holes; `below` is the first version without the hole. */
  holes: ReadonlyArray<{ below: string; what: string }>
}

/** The version printed by `<cli> --version`, or undefined if it prints none before the signal. */
export async function readVersion(
  executable: string,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  return parseVersion(await askCli(executable, ['--version'], environment, signal))
}

export function problemsOfVersion(version: string | undefined, knowledge: VersionKnowledge): string[] {
  if (version === undefined) return ['Its version could not be read: `--version` printed none.']
  const holes = knowledge.holes
    .filter(({ below }) => !isAtLeast(version, below))
    .map(({ below, what }) => `Version ${version} has a known security hole (${what}): update to ${below} or newer.`)
  if (isAtLeast(version, knowledge.oldestKnown)) return holes
  return [...holes, `Version ${version} is older than ${knowledge.oldestKnown}, the oldest version known to work.`]
}

/** A sentence with advice if Node.js is too old for the CLI; undefined if not, or if the CLI does not run on Node.js. */
export async function problemOfNode(
  label: string,
  executable: string,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const oldest = await oldestNode(executable)
  if (oldest === undefined) return undefined
  const node = findExecutable('node', environment['PATH'] ?? '')
  const version = node === undefined ? undefined : await readVersion(node, environment, signal)
  if (version === undefined || isAtLeast(version, oldest)) return undefined
  return `${label} needs Node.js ${oldest} or newer, but would run on ${version} (${node}). Install a newer version and put it first on Aetheel's PATH.`
}

/** The lower bound of a range such as `>=22.19`; undefined for any other kind of range. */
export function lowestVersion(range: unknown): string | undefined {
  const [, major, minor = '0', patch = '0'] = /^\s*>=\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?\s*$/.exec(String(range)) ?? []
  return major === undefined ? undefined : `${major}.${minor}.${patch}`
}

const NODE_SCRIPT = /^#!\s*\/usr\/bin\/env\s+(?:-S\s+)?node\b/

/** According to the script's package; undefined if it is not a script, or its package does not say. */
async function oldestNode(executable: string): Promise<string | undefined> {
  try {
    const script = await realpath(executable)
    if (!NODE_SCRIPT.test(await beginningOf(script))) return undefined
    const manifest = JSON.parse(await manifestAbove(dirname(script))) as { engines?: { node?: unknown } }
    return lowestVersion(manifest.engines?.node)
  } catch {
    return undefined // It may not belong to a package, and an executable need not be readable.
  }
}

/** Not the whole file: some CLIs are binaries of hundreds of megabytes. */
async function beginningOf(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(100) })
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Contract: rejects if there is none. */
async function manifestAbove(directory: string): Promise<string> {
  try {
    return await readFile(join(directory, 'package.json'), 'utf8')
  } catch (error) {
    if (dirname(directory) === directory) throw error
    return manifestAbove(dirname(directory))
  }
}
