// Where projects may be. Paths are resolved first: a link inside a root that points out of it is outside.

import { lstat, mkdir, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, sep } from 'node:path'
import type { GatewayConfig } from '../config.js'
import { GatewayError, messageOf } from '../errors.js'
import { makePrivateDirectory } from '../core/paths.js'

type RootsConfig = Pick<GatewayConfig, 'projectRoots' | 'home'>

/**
 * The real path of a directory that may be a project.
 *
 * Contract: throws `request_invalid` unless it is a directory strictly inside one of the roots.
 */
export async function directoryInRoots(path: string, config: RootsConfig): Promise<string> {
  if (!isAbsolute(path) || path.includes('\0')) {
    throw new GatewayError('request_invalid', 'The directory of a project must be an absolute path.')
  }
  const real = await realPathOf(path)
  const isInRoots = real !== undefined && (await realRoots(config)).some((root) => isInside(real, root))
  // The same message whether or not it exists, so as not to reveal what is outside the roots.
  if (real === undefined || !isInRoots || !(await stat(real)).isDirectory()) {
    throw notInRoots(path, config)
  }
  await refuseDataDirectory(real, config)
  return real
}

/** Creates a new project's directory in the first root. Contract: throws `conflict` if it exists. */
export async function makeProjectDirectory(id: string, config: RootsConfig): Promise<string> {
  const [first = ''] = config.projectRoots
  let directory = join(first, id)
  try {
    makePrivateDirectory(first)
    directory = join(await realpath(first), id)
    await refuseDataDirectory(directory, config)
    await mkdir(directory, 0o700)
  } catch (error) {
    if (error instanceof GatewayError) throw error
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      const advice = 'Choose another id, or create the project from that directory.'
      throw new GatewayError('conflict', `${directory} already exists. ${advice}`, { cause: error })
    }
    const advice = 'Check PROJECT_ROOTS and its permissions.'
    throw new GatewayError('config_invalid', `${directory} cannot be created: ${messageOf(error)}. ${advice}`, {
      cause: error,
    })
  }
  return directory
}

/** Whether a directory resolved earlier still is a real directory inside a root. */
export async function isStillInRoots(directory: string, config: RootsConfig): Promise<boolean> {
  const found = await lstat(directory).catch(() => undefined)
  if (!found?.isDirectory() || (await realPathOf(directory)) !== directory) return false
  return (await realRoots(config)).some((root) => isInside(directory, root))
}

/** Contract: throws `request_invalid` if it is not, with the same message as `directoryInRoots`. */
export async function checkStillInRoots(directory: string, config: RootsConfig): Promise<void> {
  if (!(await isStillInRoots(directory, config))) throw notInRoots(directory, config)
}

export function isInside(path: string, directory: string): boolean {
  return path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`)
}

function notInRoots(path: string, { projectRoots }: RootsConfig): GatewayError {
  const message = `${JSON.stringify(path)} is not a directory inside the project roots (${projectRoots.join(', ')}).`
  return new GatewayError('request_invalid', `${message} Use a directory inside them, or add one to PROJECT_ROOTS.`)
}

/** An agent in such a project could read the gateway's data. */
async function refuseDataDirectory(directory: string, { home }: RootsConfig): Promise<void> {
  const data = (await realPathOf(home)) ?? home
  if (directory !== data && !isInside(directory, data) && !isInside(data, directory)) return
  const advice = 'Use another directory. PROJECT_ROOTS should not be inside it either.'
  throw new GatewayError('request_invalid', `The data directory of the gateway cannot be part of a project. ${advice}`)
}

/** Skips missing ones. */
async function realRoots({ projectRoots }: RootsConfig): Promise<string[]> {
  const roots = await Promise.all(projectRoots.map(realPathOf))
  return roots.filter((root) => root !== undefined)
}

async function realPathOf(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch {
    return undefined // Missing, not permitted or a link cycle: the same answer here.
  }
}
