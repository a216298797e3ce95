import { type ChildProcessByStdio, spawn } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'vitest'
import { AgentScript, type Step } from '../contract/agent-script.js'
import { endLivingProcesses, livingProcesses } from '../processes/living-processes.js'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
export const DEMO_AGENT = fileURLToPath(new URL('../../demo/agent.mjs', import.meta.url))

interface Ended {
  exitCode: number | null
  stdout: string
  stderr: string
}

/** A person's machine: a home, a project, programs and a temporary directory of its own. */
export class Terminal {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-terminal-')))
  readonly project = this.#makeDirectory('project')
  readonly #programs = this.#makeDirectory('bin')
  readonly #temporary = this.#makeDirectory('tmp')
  readonly #home = this.#makeDirectory('home')

  constructor({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
    // What agents are written in, and what they call.
    this.install('node', process.execPath)
    for (const name of ['sh', 'ls', 'cat', 'sleep', 'setsid']) this.install(name, join('/usr/bin', name))
    onTestFinished(() => {
      endLivingProcesses(this.directory)
      rmSync(this.directory, { recursive: true })
    })
  }

  /** Runs `aetheel …` to its end. */
  async run(args: string[], options: { env?: NodeJS.ProcessEnv; stdin?: string } = {}): Promise<Ended> {
    const child = this.start(args, options.env)
    child.stdin.end(options.stdin ?? '')
    return this.ended(child)
  }

  start(args: string[], env: NodeJS.ProcessEnv = {}): ChildProcessByStdio<Writable, Readable, Readable> {
    return spawn(process.execPath, ['--import', import.meta.resolve('tsx'), MAIN, ...args], {
      cwd: this.project,
      env: {
        PATH: this.#programs,
        HOME: this.#home,
        TMPDIR: this.#temporary,
        TSX_DISABLE_CACHE: '1',
        IS_SANDBOX: '1',
        ...env,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
  }

  async ended(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<Ended> {
    const exited = new Promise<number | null>((resolve) => {
      child.once('exit', resolve)
    })
    const [exitCode, stdout, stderr] = await Promise.all([exited, text(child.stdout), text(child.stderr)])
    return { exitCode, stdout, stderr }
  }

  /** What makes the fake agent, called as Claude Code, do this. */
  prompt(...steps: Step[]): string {
    return new AgentScript('claude', this.directory).prompt(steps)
  }

  install(name: string, executable: string): string {
    const path = join(this.#programs, name)
    symlinkSync(executable, path)
    return path
  }

  read(name: string): string {
    return readFileSync(join(this.project, name), 'utf8')
  }

  /** The argument after this flag, as the mirror agent noted it. */
  givenTo(flag: string): string | undefined {
    const args = this.read('call-arguments').split('\0')
    return args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined
  }

  write(name: string, content: string): string {
    const path = join(this.project, name)
    writeFileSync(path, content)
    return path
  }

  /** Files in the temporary directory and processes that should not be there any more. */
  leftovers(): string[] {
    return [...readdirSync(this.#temporary), ...livingProcesses(this.directory).map(({ command }) => command)]
  }

  #makeDirectory(name: string): string {
    const path = join(this.directory, name)
    mkdirSync(path)
    return path
  }
}
