import { accessSync, constants, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expandHome, type GatewayConfig } from '../../config.js'
import { fileExists } from '../../config/file.js'
import type { ConfigLocation } from '../command-context.js'
import type { Prompts } from '../prompts.js'

/** The directory of the running package or checkout. */
const OWN_DIRECTORY = resolve(fileURLToPath(new URL('../../..', import.meta.url)))

export async function askForDirectory(
  prompts: Prompts,
  config: GatewayConfig,
  { cwd, environment }: ConfigLocation,
): Promise<string> {
  const pathOf = (value: string): string => resolve(cwd, expandHome(value, environment))
  for (;;) {
    const answer = await prompts.text({
      message: 'Which directory should it work in?',
      initialValue: suggestedDirectory(config, cwd, environment),
      problemOf: (value) => (value === '' ? 'Enter a directory.' : problemOf(pathOf(value))),
    })
    const directory = pathOf(answer)
    if (fileExists(directory) || isBelow(directory, config.projectRoots)) return directory
    if (await prompts.confirm(`${directory} does not exist. Create it?`, true)) return directory
  }
}

/** The current directory, unless it cannot be anybody's project. */
function suggestedDirectory({ projectRoots, home }: GatewayConfig, cwd: string, env: NodeJS.ProcessEnv): string {
  const current = resolve(cwd)
  const isUnfit =
    [resolve(expandHome('~', env)), resolve('/'), dirname(home)].includes(current) ||
    isBelow(current, [OWN_DIRECTORY, home]) ||
    problemOf(current) !== undefined
  return isUnfit ? join(projectRoots[0] ?? current, 'first') : current
}

/** Why nobody could work there, or why a missing directory cannot be created. */
function problemOf(directory: string): string | undefined {
  try {
    const found = statSync(directory, { throwIfNoEntry: false })
    if (!found) return problemOf(dirname(directory))
    if (!found.isDirectory()) return 'That is not a directory.'
    accessSync(directory, constants.W_OK | constants.X_OK)
    return undefined
  } catch {
    return 'You cannot write there. Choose another directory, or change its permissions.'
  }
}

function isBelow(path: string, roots: string[]): boolean {
  return roots.some((root) => {
    const way = relative(root, path)
    return way !== '..' && !way.startsWith(`..${sep}`)
  })
}

/** The directory's name, reduced to what a project id allows. */
export function suggestedId(directory: string): string {
  const id = basename(directory)
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64)
  return id === '' ? 'main' : id
}
