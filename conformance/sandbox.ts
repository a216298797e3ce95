/**
 * An isolated home directory, workspace, temporary directory and environment for one cell. Agents see nothing of the
 * tester's, and everything an agent starts can be recognised by its home directory.
 */
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { endNow } from '../test/kit/living-processes.js'
import type { Agent, McpServer } from './agents.js'

export interface Sandbox {
  workspace: string
  /** The directory for temporary files. */
  temporary: string
  environment: Record<string, string>
  /** Processes that were started in this sandbox and are alive. */
  processes(): Promise<SandboxProcess[]>
  /** Run directories among the temporary files. */
  runFiles(): Promise<string[]>
  /** Also ends all processes left in it: a failing cell must not affect the next ones. */
  remove(): Promise<void>
}

export interface SandboxProcess {
  pid: number
  command: string
}

/** `path` is the value of PATH inside. */
export async function createSandbox(
  agent: Agent,
  modelUrl: string,
  path: string,
  mcpServer?: McpServer,
): Promise<Sandbox> {
  const root = await realpath(await mkdtemp(join(tmpdir(), `aetheel-conformance-${agent.name}-`)))
  const [home, workspace, temporary] = [join(root, 'home'), join(root, 'workspace'), join(root, 'tmp')]
  for (const directory of [home, workspace, temporary]) await mkdir(directory)
  for (const [name, content] of Object.entries(agent.homeFiles(modelUrl, mcpServer))) {
    await mkdir(dirname(join(home, name)), { recursive: true })
    await writeFile(join(home, name), content)
  }
  return {
    workspace,
    temporary,
    environment: {
      PATH: path,
      HOME: home,
      TMPDIR: temporary,
      LANG: 'C.UTF-8',
      ...agent.environment(modelUrl, home),
    },
    processes: () => findProcesses(`HOME=${home}`),
    runFiles: async () => (await readdir(temporary)).filter((name) => name.startsWith('aetheel-run-')),
    async remove() {
      for (const { pid } of await findProcesses(`HOME=${home}`)) endNow(pid)
      // Retried, because a process that was just ended may have been writing.
      await rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
    },
  }
}

/** How many processes with exactly these arguments are alive. */
export async function countProcesses(command: string[]): Promise<number> {
  const commands = await Promise.all((await pids()).map((pid) => readProcFile(pid, 'cmdline')))
  return commands.filter((found) => command.every((argument, index) => found[index] === argument)).length
}

async function findProcesses(assignment: string): Promise<SandboxProcess[]> {
  const found = await Promise.all(
    (await pids()).map(async (pid): Promise<SandboxProcess[]> => {
      const environment = await readProcFile(pid, 'environ')
      if (!environment.includes(assignment)) return []
      const command = (await readProcFile(pid, 'cmdline')).join(' ')
      return command === '' ? [] : [{ pid: Number(pid), command }]
    }),
  )
  return found.flat()
}

async function pids(): Promise<string[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
}

async function readProcFile(pid: string, name: 'cmdline' | 'environ'): Promise<string[]> {
  try {
    return (await readFile(`/proc/${pid}/${name}`, 'utf8')).split('\0')
  } catch {
    return [] // It has ended, or belongs to another user.
  }
}
