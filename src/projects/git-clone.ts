// Clones a repository. The URL is untrusted: it must not become an option, a command, or a path the operator did not
// allow. The repository is untrusted too: none of its code runs.

import { isAbsolute } from 'node:path'
import { agentEnvironment } from '../core/agent-environment.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import type { ProcessOwner } from '../processes/process-owner.js'
import { type CommandOutcome, runCommand } from '../processes/run-command.js'
import { directoryInRoots } from './project-roots.js'

export interface GitSource {
  /** `https://…`, `ssh://…`, `git@host:path`, or an absolute path inside the project roots. */
  url: string
  /** A branch or a tag. Default: the repository's default branch. */
  ref?: string | undefined
}

/** Contract: as `runCommand`. */
export type RunGit = (options: {
  args: string[]
  cwd: string
  timeoutMs: number
  signal?: AbortSignal | undefined
  onStdout?: (chunk: Buffer) => void
}) => Promise<CommandOutcome>

/** Enough history for an agent; the rest can be fetched. */
const DEPTH = 100
const CLONE_TIMEOUT_MS = 600_000
const MAX_URL_CHARACTERS = 2_000

/** How the operator reaches servers. Excludes variables that point git at another repository, such as GIT_DIR. */
const GIT_VARIABLES = ['GIT_SSH', 'GIT_SSH_COMMAND', 'GIT_CONFIG_GLOBAL', 'GIT_CONFIG_SYSTEM', 'GIT_CONFIG_NOSYSTEM']

const SAFE_SETTINGS = [
  'core.hooksPath=/dev/null',
  // In particular not `ext::`, which runs a command.
  ...['protocol.allow=never', 'protocol.ext.allow=never'],
  ...['https', 'ssh', 'file'].map((protocol) => `protocol.${protocol}.allow=always`),
]

export function gitRunner(environment: NodeJS.ProcessEnv, owner?: ProcessOwner): RunGit {
  const variables = {
    ...agentEnvironment(environment, GIT_VARIABLES),
    // Nobody could answer a prompt.
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '',
    SSH_ASKPASS: '',
    SSH_ASKPASS_REQUIRE: 'never',
    LC_ALL: 'C',
  }
  return ({ args, ...options }) =>
    runCommand({ ...options, argv: ['git', ...args], environment: variables, stdin: '', owner })
}

/**
 * Contract: throws `request_invalid` for a source that is not allowed, and says which are.
 * The result is safe to pass as the last arguments of `clone`.
 */
export async function checkGitSource(
  { url, ref }: GitSource,
  roots: Pick<GatewayConfig, 'projectRoots' | 'home'>,
): Promise<GitSource> {
  if (ref !== undefined && !isRefName(ref)) {
    const problem = `${JSON.stringify(ref.slice(0, 100))} is not a branch or tag name.`
    throw new GatewayError('request_invalid', `${problem} Omit ref to use the default branch.`)
  }
  const problem = problemOfUrl(url)
  if (problem !== undefined) throw new GatewayError('request_invalid', `The repository cannot be cloned: ${problem}.`)
  return { url: isAbsolute(url) ? await directoryInRoots(url, roots) : url, ref }
}

/** Contract: rejects with a sentence; the directory's contents are then unusable. */
export async function cloneInto(
  directory: string,
  { url, ref }: GitSource,
  run: RunGit,
  signal?: AbortSignal,
): Promise<void> {
  const args = [
    ...SAFE_SETTINGS.flatMap((setting) => ['-c', setting]),
    'clone',
    '--quiet',
    // The operator's templates may contain hooks.
    '--template=',
    '--no-recurse-submodules',
    // Copy a local repository as if it were remote, instead of hard-linking its files.
    '--no-local',
    `--depth=${DEPTH}`,
    ...(ref === undefined ? [] : [`--branch=${ref}`]),
    ...['--', url, directory],
  ]
  const outcome = await run({ args, cwd: directory, timeoutMs: CLONE_TIMEOUT_MS, signal })
  if (outcome.ok) return
  // The operator's git settings may have put a password into the URL.
  const problem = outcome.problem.replaceAll(/\/\/[^/@\s]*@/g, '//')
  const message = `The repository could not be cloned: git ${problem}`
  if (signal?.aborted) throw new GatewayError('request_invalid', message)
  const advice = "Check the URL, the ref, and that the gateway's user may read the repository."
  throw new GatewayError('request_invalid', `${message.replace(/\.$/, '')}. ${advice}`)
}

function problemOfUrl(url: string): string | undefined {
  if (url.length > MAX_URL_CHARACTERS || /[\p{Cc}\s]/u.test(url)) return 'its URL is too long or contains spaces'
  if (url.startsWith('-')) return 'its URL must not start with "-"'
  if (isAbsolute(url) || /^git@[a-z0-9][a-z0-9.-]*:[^-:][^:]*$/i.test(url)) return undefined
  if (!/^(https|ssh):\/\//.test(url) || !URL.canParse(url)) {
    return 'its URL must begin with https:// or ssh://, be like git@host:path, or be a path inside the project roots'
  }
  const { protocol, username, password, hostname, search, hash } = new URL(url)
  if (password !== '' || (protocol === 'https:' && username !== '')) {
    return 'its URL contains a password or a token; remove it and use a git credential helper'
  }
  if (search !== '' || hash !== '') return 'its URL has a query or a fragment; remove it'
  if (hostname === '' || hostname.startsWith('-') || username.startsWith('-')) return 'its URL has no host'
  return undefined
}

/** A subset of what git allows. */
function isRefName(ref: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}$/.test(ref) && !/\.\.|\/\/|\.lock$|[/.]$/.test(ref)
}
