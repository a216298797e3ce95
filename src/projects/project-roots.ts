// Where projects may be. A path counts by where it really leads: a link inside a root that points out of it is outside.

import { lstat, mkdir, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, sep } from 'node:path'
import type { GatewayConfig } from '../config.js'
import { GatewayError, messageOf } from '../errors.js'
import { makePrivateDirectory } from '../core/private-directory.js'

type Places = Pick<GatewayConfig, 'projectRoots' | 'home'>

/**
 * The real path of a directory that may be a project.
 *
 * Contract: throws `request_invalid` for anything that is no directory strictly inside one of the roots.
 */
export async function directoryInRoots(path: string, places: Places): Promise<string> {
  if (!isAbsolute(path) || path.includes('\0')) {
    throw new GatewayError('request_invalid', 'The directory of a project must be an absolute path.')
  }
  const real = await realPathOf(path)
  const isInRoots = real !== undefined && (await realRoots(places)).some((root) => isInside(real, root))
  // The same words whether it is there or not: who may not go there shall not learn what is there.
  if (real === undefined || !isInRoots || !(await stat(real)).isDirectory()) {
    throw notInRoots(path, places)
  }
  await refuseDataDirectory(real, places)
  return real
}

/** Makes the directory of a new project, inside the first root. Contract: throws `conflict` when it is there already. */
export async function makeProjectDirectory(id: string, places: Places): Promise<string> {
  const [first = ''] = places.projectRoots
  let directory = join(first, id)
  try {
    makePrivateDirectory(first)
    directory = join(await realpath(first), id)
    await refuseDataDirectory(directory, places)
    await mkdir(directory, 0o700)
  } catch (error) {
    if (error instanceof GatewayError) throw error
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      const advice = 'Choose another id, or make a project of that directory.'
      throw new GatewayError('conflict', `There is already something at ${directory}. ${advice}`, { cause: error })
    }
    const advice = 'Check PROJECT_ROOTS and its permissions.'
    throw new GatewayError('config_invalid', `${directory} cannot be made: ${messageOf(error)}. ${advice}`, {
      cause: error,
    })
  }
  return directory
}

/** Whether a directory that was found real before still is what its path says, inside a root. */
export async function isStillInRoots(directory: string, places: Places): Promise<boolean> {
  const found = await lstat(directory).catch(() => undefined)
  if (!found?.isDirectory() || (await realPathOf(directory)) !== directory) return false
  return (await realRoots(places)).some((root) => isInside(directory, root))
}

/** Contract: throws `request_invalid`, in the words of `directoryInRoots`, when it is not. */
export async function checkStillInRoots(directory: string, places: Places): Promise<void> {
  if (!(await isStillInRoots(directory, places))) throw notInRoots(directory, places)
}

export function isInside(path: string, directory: string): boolean {
  return path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`)
}

function notInRoots(path: string, { projectRoots }: Places): GatewayError {
  const message = `There is no directory ${JSON.stringify(path)} inside the project roots (${projectRoots.join(', ')}).`
  return new GatewayError('request_invalid', `${message} Use one inside of them, or add to PROJECT_ROOTS.`)
}

/** The gateway's own data would be open to whoever works in such a project. */
async function refuseDataDirectory(directory: string, { home }: Places): Promise<void> {
  const data = (await realPathOf(home)) ?? home
  if (directory !== data && !isInside(directory, data) && !isInside(data, directory)) return
  const advice = 'Use another directory; PROJECT_ROOTS should not lie in it either.'
  throw new GatewayError('request_invalid', `The data directory of the gateway cannot be part of a project. ${advice}`)
}

/** Those that are there. */
async function realRoots({ projectRoots }: Places): Promise<string[]> {
  const roots = await Promise.all(projectRoots.map(realPathOf))
  return roots.filter((root) => root !== undefined)
}

async function realPathOf(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch {
    return undefined // Missing, not permitted and in a circle are the same answer here.
  }
}
