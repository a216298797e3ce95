// Whether the Node.js that would run a CLI is new enough for it. A CLI from npm often is a script that begins with
// `#!/usr/bin/env node`, and its package says which Node.js it needs.

import { open, readFile, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { findExecutable } from '../../processes/find-executable.js'
import { compareVersions } from '../../core/versions.js'
import { readVersion } from './version.js'

/** A sentence with what to do, or undefined where nothing is wrong or the CLI does not run on Node.js. */
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
  if (version === undefined || compareVersions(version, oldest) >= 0) return undefined
  return `${label} needs Node.js ${oldest} or newer, and would run on ${version} (${node}). Install a newer one and put it first on the PATH of Aetheel.`
}

/** Of a range such as `>=22.19`; others are not judged. */
export function lowestVersion(range: unknown): string | undefined {
  const [, major, minor = '0', patch = '0'] = /^\s*>=\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?\s*$/.exec(String(range)) ?? []
  return major === undefined ? undefined : `${major}.${minor}.${patch}`
}

const NODE_SCRIPT = /^#!\s*\/usr\/bin\/env\s+(?:-S\s+)?node\b/

/** As the package of the script says; undefined for what is no script, or says nothing that can be read. */
async function oldestNode(executable: string): Promise<string | undefined> {
  try {
    const script = await realpath(executable)
    if (!NODE_SCRIPT.test(await beginningOf(script))) return undefined
    const manifest = JSON.parse(await manifestAbove(dirname(script))) as { engines?: { node?: unknown } }
    return lowestVersion(manifest.engines?.node)
  } catch {
    return undefined // It may belong to no package, and need not be readable to be run.
  }
}

/** Some CLIs are binaries of hundreds of megabytes. */
async function beginningOf(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(100) })
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Contract: rejects where there is none. */
async function manifestAbove(directory: string): Promise<string> {
  try {
    return await readFile(join(directory, 'package.json'), 'utf8')
  } catch (error) {
    if (dirname(directory) === directory) throw error
    return manifestAbove(dirname(directory))
  }
}
