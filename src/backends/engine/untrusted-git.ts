// Agents run git in their directory, and a repository's settings may name programs that git then runs. Some of these
// settings can be overridden from outside. The others cannot, so a repository is accepted only if all its settings are
// known to run nothing.

import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { messageOf } from '../../errors.js'
import { findExecutable } from '../../core/paths.js'
import { runCommand } from '../../processes/run-command.js'
import { isAtLeast } from '../../core/versions.js'
import { readVersion } from './version.js'

/** For every process in an untrusted directory. Hooks are disabled too: they are files that no setting needs to name. */
export const UNTRUSTED_GIT = {
  GIT_CONFIG_COUNT: '3',
  GIT_CONFIG_KEY_0: 'core.fsmonitor',
  GIT_CONFIG_VALUE_0: 'false',
  GIT_CONFIG_KEY_1: 'core.hooksPath',
  GIT_CONFIG_VALUE_1: '/dev/null',
  // A URL of this protocol is a command.
  GIT_CONFIG_KEY_2: 'protocol.ext.allow',
  GIT_CONFIG_VALUE_2: 'never',
}

/** The first version that reads settings from the environment. */
const OLDEST_GIT = '2.31.0'

/** Settings that git and common tools write. The first line ends with the two that are overridden. */
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

/** Time to check an untrusted project. If it is not enough, nothing is started there. It is long because it only guards
 *  against a hang, such as a network drive that does not answer: on a busy machine, even starting git takes a while. */
export const UNTRUSTED_CHECK_MS = 120_000

const READ_AT_ONCE = 32

/**
 * Why nothing may be started in this untrusted directory: a sentence with advice.
 *
 * Contract: never rejects. Settings that cannot be read before the signal are an obstacle too.
 */
export async function gitObstacle(
  directory: string,
  environment: Record<string, string>,
  signal: AbortSignal,
  versionOf = (git: string): Promise<string | undefined> => readVersion(git, environment, signal),
): Promise<string | undefined> {
  try {
    const repositories = await findRepositories(directory, signal)
    if (repositories.length === 0) return undefined
    const git = findExecutable('git', environment['PATH'] ?? '')
    const version = git === undefined ? undefined : await versionOf(git)
    if (git === undefined || !isAtLeast(version, OLDEST_GIT)) {
      return `The project is untrusted, and its git settings cannot be checked. Install git ${OLDEST_GIT} or newer.`
    }
    for (const repository of repositories) {
      for (const name of ['config', 'config.worktree']) {
        const file = join(repository, name)
        if (!(await exists(file))) continue
        const settings = await readSettings(git, file, environment, signal)
        const harmful = await findHarmful(settings, repository, directory)
        if (harmful !== undefined) {
          return `The project is untrusted, and ${file} sets ${harmful}, which can make git run a program or leave the project. Remove the setting, or trust the project.`
        }
      }
    }
    return undefined
  } catch (error) {
    const problem = messageOf(error).replace(/\.$/, '')
    return `The project is untrusted, and its git settings could not be checked: ${problem}. Fix that, or trust the project.`
  }
}

interface Setting {
  key: string
  value: string
}

async function findHarmful(settings: Setting[], repository: string, directory: string): Promise<string | undefined> {
  for (const { key, value } of settings) {
    if (HARMLESS_SETTINGS.test(key)) continue
    // Every submodule has it. If it pointed elsewhere, a checkout would overwrite files outside the project.
    if (key === 'core.worktree' && (await leadsInside(resolve(repository, value), directory))) continue
    return key
  }
  return undefined
}

async function leadsInside(path: string, directory: string): Promise<boolean> {
  const [real, top] = await Promise.all([realpath(path), realpath(directory)])
  return real === top || real.startsWith(`${top}${sep}`)
}

/** Uses git itself: an attacker would exploit any difference between git's parser and another one. */
async function readSettings(
  git: string,
  file: string,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<Setting[]> {
  const chunks: Buffer[] = []
  const argv = [git, 'config', '--file', file, '--no-includes', '--null', '--list']
  const onStdout = (chunk: Buffer): void => void chunks.push(chunk)
  const { ok } = await runCommand({
    argv,
    cwd: '/',
    environment,
    stdin: '',
    onStdout,
    timeoutMs: UNTRUSTED_CHECK_MS,
    signal,
  })
  signal.throwIfAborted()
  if (!ok) throw new Error(`git cannot read ${file}`)
  const entries = Buffer.concat(chunks).toString('utf8').split('\0').slice(0, -1)
  return entries.map((entry) => {
    const [key = ''] = entry.split('\n', 1)
    return { key, value: entry.slice(key.length + 1) }
  })
}

/** The repositories whose settings git would obey in the directory or anywhere below it. */
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

/** Git searches upwards, even past a `.git` that is not a repository. */
async function repositoryAbove(directory: string): Promise<string | undefined> {
  const repository = await repositoryAt(join(directory, '.git'))
  if (repository !== undefined && (await exists(join(repository, 'HEAD')))) return repository
  const parent = dirname(directory)
  return parent === directory ? undefined : repositoryAbove(parent)
}

/** Resolves a `.git`: a directory, a link to one, or a file that names one. */
async function repositoryAt(path: string): Promise<string | undefined> {
  const about = await stat(path).catch(ignoreMissing)
  if (about?.isDirectory()) return realpath(path)
  if (!about?.isFile()) return undefined
  const [, target] = /^gitdir: (.+)/.exec(await readFile(path, 'utf8')) ?? []
  return target === undefined ? undefined : realpath(resolve(dirname(path), target)).catch(ignoreMissing)
}

/** Git accepts a directory of any name as a repository, judging by its contents. */
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
