import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createBackend, resolveBackendName } from '../../src/backends/registry.js'
import type { AgentBackend, BackendName } from '../../src/backends/types.js'
import { GatewayError } from '../../src/errors.js'
import { gitRunner, type RunGit } from '../../src/projects/git-clone.js'
import { ProjectService } from '../../src/projects/project-service.js'
import type { Store } from '../../src/store/store.js'
import { openTestStore } from '../kit/engines.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { SILENT_LOG } from '../kit/log.js'
import { adapterConfig } from '../kit/adapter-config.js'

export const NOW = Date.UTC(2026, 0, 2, 3, 4, 5)

export interface StageOptions {
  store?: Store
  available?: BackendName[]
  templateDir?: string
  run?: RunGit
}

/** A service on its own store, with two roots beside the data directory. */
export async function setup({ store: given, available = ['claude', 'codex'], templateDir, run }: StageOptions = {}) {
  const directory = temporaryDirectory()
  const [home, root, second] = ['data', 'root', 'second'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  for (const path of [home, root, second]) mkdirSync(path)
  const store = given ?? (await openTestStore({ file: join(home, 'aetheel.db') }))
  let time = NOW
  const projects = new ProjectService({
    store,
    config: {
      projectRoots: [root, second],
      home,
      agentBackend: 'claude',
      codeAgentDefault: 'claude',
      configFile: '/etc/aetheel.json5',
      kubernetesNamespace: 'agents',
      ...(templateDir !== undefined && { templateDir }),
    },
    agents: {
      availableAgents: async () => available.map((name) => ({ name: () => name }) as AgentBackend),
      defaultProvider: () => 'codex',
      resolve: (name) => ({ agent: createBackend(resolveBackendName(name), adapterConfig()) }),
    },
    run: run ?? gitRunner(gitEnvironment(directory)),
    now: () => time,
    newId: () => '01234567-89ab-cdef-0123-456789abcdef',
    log: SILENT_LOG,
  })
  const after = (ms: number): void => {
    time += ms
  }
  return { directory, home, root, second, store, projects, after }
}

/** Git settings of the test only. */
export function gitEnvironment(directory: string): NodeJS.ProcessEnv {
  const global = join(directory, 'gitconfig')
  writeFileSync(global, '[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n')
  return { PATH: process.env['PATH'], HOME: directory, GIT_CONFIG_GLOBAL: global, GIT_CONFIG_NOSYSTEM: '1' }
}

/** A repository with one commit for each of these sets of files, and a tag `v1` on the first. */
export function createRepository(path: string, ...commits: Record<string, string>[]): void {
  mkdirSync(path, { recursive: true })
  const git = (...args: string[]): void => {
    execFileSync('git', args, { cwd: path, env: gitEnvironment(dirname(path)), stdio: 'ignore' })
  }
  git('init')
  for (const [index, files] of commits.entries()) {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(path, name)), { recursive: true })
      writeFileSync(join(path, name), content)
    }
    git('add', '--all')
    git('commit', '--message', `Commit ${index + 1}`)
    if (index === 0) git('tag', 'v1')
  }
}

/** The refusal, as `code: message`. */
export async function problemOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof GatewayError) return `${error.code}: ${error.message}`
    throw error
  }
  return 'none'
}
