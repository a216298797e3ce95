// Whoever works in a directory asks git about it, and the settings of a repository may name programs that git then runs.
// Two of them can be switched off from outside. For all others there is no switch, so a repository is let in only with
// settings that are known to run nothing.

import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { messageOf } from '../../errors.js'
import { findExecutable } from '../../processes/find-executable.js'
import { startProcess } from '../../processes/local-process.js'
import { compareVersions } from '../../core/versions.js'
import { readVersion } from './version.js'

/** For every process in an untrusted directory. Hooks are files, and no setting has to name them. */
export const UNTRUSTED_GIT = {
  GIT_CONFIG_COUNT: '3',
  GIT_CONFIG_KEY_0: 'core.fsmonitor',
  GIT_CONFIG_VALUE_0: 'false',
  GIT_CONFIG_KEY_1: 'core.hooksPath',
  GIT_CONFIG_VALUE_1: '/dev/null',
  // A URL with it is a command.
  GIT_CONFIG_KEY_2: 'protocol.ext.allow',
  GIT_CONFIG_VALUE_2: 'never',
}

/** The first that takes settings from the environment. */
const OLDEST_GIT = '2.31.0'

/** Those that git itself and its usual users write. The first line ends with the two that are switched off. */
const HARMLESS_SETTINGS = new RegExp(
  `^(?:${[
    'core\\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|hookspath|fsmonitor)',
    'core\\.(?:autocrlf|eol|safecrlf|longpaths|quotepath|untrackedcache|sparsecheckout|sparsecheckoutcone)',
    'extensions\\.(?:objectformat|refstorage|worktreeconfig|relativeworktrees)',
    'remote\\..+\\.(?:url|pushurl|fetch|tagopt|prune)',
    'branch\\..+\\.(?:remote|pushremote|merge|rebase|description|vscode-merge-base|gh-merge-base)',
    'submodule\\.(?:active|.+\\.(?:url|active|branch))',
    'user\\.(?:name|email)',
    '(?:init\\.defaultbranch|pull\\.rebase|pull\\.ff|push\\.default|push\\.autosetupremote|fetch\\.prune|gc\\.auto)',
    'lfs\\.repositoryformatversion',
  ].join('|')})$`,
)

const READ_AT_ONCE = 32

/**
 * Why nothing may be started in an untrusted directory: a sentence with what to do.
 *
 * Contract: never rejects. What cannot be read, or not before the signal, is an obstacle, too.
 */
export async function gitObstacle(
  directory: string,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const repositories = await findRepositories(directory, signal)
    if (repositories.length === 0) return undefined
    const git = findExecutable('git', environment['PATH'] ?? '')
    const version = git === undefined ? undefined : await readVersion(git, environment, signal)
    if (git === undefined || version === undefined || compareVersions(version, OLDEST_GIT) < 0) {
      return `The project is untrusted, and its git settings cannot be looked at. Install git ${OLDEST_GIT} or newer.`
    }
    for (const repository of repositories) {
      for (const name of ['config', 'config.worktree']) {
        const file = join(repository, name)
        if (!(await exists(file))) continue
        const settings = await readSettings(git, file, environment, signal)
        const harmful = await findHarmful(settings, repository, directory)
        if (harmful !== undefined) {
          return `The project is untrusted, and ${file} sets ${harmful}, by which git may run a program or leave the project. Remove that setting, or trust the project.`
        }
      }
    }
    return undefined
  } catch (error) {
    return `The project is untrusted, and its git settings could not be looked at: ${messageOf(error)}. Put that right, or trust the project.`
  }
}

interface Setting {
  key: string
  value: string
}

async function findHarmful(settings: Setting[], repository: string, directory: string): Promise<string | undefined> {
  for (const { key, value } of settings) {
    if (HARMLESS_SETTINGS.test(key)) continue
    // Every submodule has it. Elsewhere a checkout would overwrite files that are not of the project.
    if (key === 'core.worktree' && (await leadsInside(resolve(repository, value), directory))) continue
    return key
  }
  return undefined
}

async function leadsInside(path: string, directory: string): Promise<boolean> {
  const [real, top] = await Promise.all([realpath(path), realpath(directory)])
  return real === top || real.startsWith(`${top}${sep}`)
}

/** Git reads its own files: another reader would differ from it just where somebody looks for the difference. */
async function readSettings(
  git: string,
  file: string,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<Setting[]> {
  const chunks: Buffer[] = []
  const child = startProcess({
    executable: git,
    args: ['config', '--file', file, '--no-includes', '--null', '--list'],
    cwd: '/',
    environment,
    stdin: '',
    runId: `git-config-${process.pid}-${process.hrtime.bigint()}`,
    stopSignal: 'SIGTERM',
    onStdout: (chunk) => chunks.push(chunk),
    onStderr: () => {},
  })
  if (signal.aborted) child.stop()
  signal.addEventListener('abort', child.stop)
  const exit = await child.ended
  signal.removeEventListener('abort', child.stop)
  signal.throwIfAborted()
  if ('spawnError' in exit) throw exit.spawnError
  if (exit.exitCode !== 0) throw new Error(`git cannot read ${file}`)
  const entries = Buffer.concat(chunks).toString('utf8').split('\0').slice(0, -1)
  return entries.map((entry) => {
    const [key = ''] = entry.split('\n', 1)
    return { key, value: entry.slice(key.length + 1) }
  })
}

/** The directories with settings that git would follow in the directory or anywhere below it. */
async function findRepositories(directory: string, signal: AbortSignal): Promise<string[]> {
  const found = new Set<string>()
  const add = async (repository: string | undefined): Promise<void> => {
    if (repository === undefined || found.has(repository)) return
    found.add(repository)
    const shared = await readFile(join(repository, 'commondir'), 'utf8').catch(ignoreMissing)
    if (shared !== undefined) await add(await realpath(resolve(repository, shared.trimEnd())))
    await walk(join(repository, 'modules'))
  }
  const look = async (path: string): Promise<string[]> => {
    const entries = (await readdir(path, { withFileTypes: true }).catch(ignoreMissing)) ?? []
    const names = new Set(entries.map(({ name }) => name.toLowerCase()))
    if (isRepository(names)) await add(await realpath(path))
    if (names.has('.git')) await add(await repositoryAt(join(path, '.git')))
    return entries
      .filter((entry) => entry.isDirectory() && entry.name.toLowerCase() !== '.git')
      .map(({ name }) => join(path, name))
  }
  const walk = async (top: string): Promise<void> => {
    const waiting = [top]
    while (waiting.length > 0) {
      signal.throwIfAborted()
      const below = await Promise.all(waiting.splice(-READ_AT_ONCE).map(look))
      for (const paths of below) waiting.push(...paths)
    }
  }
  await walk(directory)
  await add(await repositoryAbove(directory))
  return [...found]
}

/** Git goes up until it finds one, also past a `.git` that is none. */
async function repositoryAbove(directory: string): Promise<string | undefined> {
  const repository = await repositoryAt(join(directory, '.git'))
  if (repository !== undefined && (await exists(join(repository, 'HEAD')))) return repository
  const parent = dirname(directory)
  return parent === directory ? undefined : repositoryAbove(parent)
}

/** Where a `.git` leads: a directory, a link to one, or a file that names one. */
async function repositoryAt(path: string): Promise<string | undefined> {
  const about = await stat(path).catch(ignoreMissing)
  if (about?.isDirectory()) return realpath(path)
  if (!about?.isFile()) return undefined
  const [, target] = /^gitdir: (.+)/.exec(await readFile(path, 'utf8')) ?? []
  return target === undefined ? undefined : realpath(resolve(dirname(path), target)).catch(ignoreMissing)
}

/** Git takes also a directory of any name for a repository, by what is in it. */
function isRepository(names: ReadonlySet<string>): boolean {
  return names.has('head') && (names.has('commondir') || (names.has('objects') && names.has('refs')))
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(ignoreMissing)) !== undefined
}

function ignoreMissing(error: unknown): undefined {
  const { code = '' } = error as NodeJS.ErrnoException
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
}
