import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { inject, type TestContext } from 'vitest'
import { AgentScript, type Step } from '../contract/agent-script.js'
import { EmulatedTerminal } from './emulated-terminal.js'
import { livingProcesses } from './living-processes.js'
import { atTerminal, type Child, RunningCommand } from './running-command.js'
import { processDirectory } from './temporary-directory.js'
import { until } from './waiting.js'

const MAIN = join(inject('buildDirectory'), 'src/main.js')

interface Ended {
  exitCode: number | null
  stdout: string
  stderr: string
}

/** As a user sees it: what is on the screen, rather than what was written. */
export class CommandAtTerminal extends RunningCommand {
  constructor(
    child: Child,
    readonly terminal: EmulatedTerminal,
    /** Contains the name of the device. */
    private readonly ttyFile: string,
  ) {
    super(child)
    child.stdout.on('data', (chunk: string) => this.terminal.write(chunk))
  }

  /** Settles when the screen, or what scrolled away from it, shows this. */
  async shows(expected: string | RegExp): Promise<void> {
    await until(
      () => (typeof expected === 'string' ? this.terminal.text.includes(expected) : expected.test(this.terminal.text)),
      () => `${String(expected)} on this screen: ${this.terminal.text}`,
    )
  }

  /** The kernel notifies the command. */
  resize(columns: number, rows: number): void {
    const device = readFileSync(this.ttyFile, 'utf8').trim()
    execFileSync('stty', ['-F', device, 'cols', String(columns), 'rows', String(rows)])
    this.terminal.resize(columns, rows)
  }
}

/** A user's machine: a home, a project, programs and a temporary directory. */
export class Terminal {
  readonly directory: string
  readonly project: string
  readonly home: string
  readonly #programs: string
  readonly #temporary: string

  constructor({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
    this.directory = processDirectory(onTestFinished)
    this.project = this.#makeDirectory('project')
    this.home = this.#makeDirectory('home')
    this.#programs = this.#makeDirectory('bin')
    this.#temporary = this.#makeDirectory('tmp')
    // Agents are written in it, and run it.
    this.install('node', process.execPath)
    for (const name of ['sh', 'ls', 'cat', 'sleep', 'setsid']) this.install(name, join('/usr/bin', name))
  }

  /** Runs `aetheel …` to its end. */
  async run(args: string[], options: { env?: NodeJS.ProcessEnv; stdin?: string } = {}): Promise<Ended> {
    const child = this.start(args, options.env)
    child.stdin.end(options.stdin ?? '')
    return this.ended(child)
  }

  /** Runs `aetheel …` beside the test. */
  open(args: string[], env: NodeJS.ProcessEnv = {}): RunningCommand {
    return new RunningCommand(this.start(args, env))
  }

  /** Starts a gateway, and settles when it is running. */
  async startGateway(env: NodeJS.ProcessEnv): Promise<RunningCommand> {
    const gateway = this.open(['start'], env)
    await gateway.printed('Aetheel is running.')
    return gateway
  }

  start(args: string[], env: NodeJS.ProcessEnv = {}): Child {
    return this.#spawn(process.execPath, [MAIN, ...args], env)
  }

  /** As `open`, in its own terminal. */
  openAtTerminal(args: string[], env: NodeJS.ProcessEnv = {}, columns = 80, rows = 24): CommandAtTerminal {
    const command = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(' ')
    const line = `/usr/bin/stty cols ${columns} rows ${rows}; /usr/bin/tty > '${this.directory}/tty'; exec ${command}`
    const variables = { TERM: 'xterm-256color', ...env, SHELL: '/bin/sh' }
    const child = this.#spawn(...atTerminal(line), variables)
    return new CommandAtTerminal(child, new EmulatedTerminal(columns, rows), join(this.directory, 'tty'))
  }

  #spawn(executable: string, args: string[], env: NodeJS.ProcessEnv): Child {
    return spawn(executable, args, {
      cwd: this.project,
      env: {
        PATH: this.#programs,
        HOME: this.home,
        TMPDIR: this.#temporary,
        IS_SANDBOX: '1',
        TZ: 'UTC',
        // Many gateways at once: each would want the same port.
        HTTP_PORT: '0',
        AGENT_MODE: 'oneshot',
        ...env,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
  }

  async ended(child: Child): Promise<Ended> {
    const exited = new Promise<number | null>((resolve) => {
      child.once('exit', resolve)
    })
    const [exitCode, stdout, stderr] = await Promise.all([exited, text(child.stdout), text(child.stderr)])
    return { exitCode, stdout, stderr }
  }

  /** The prompt that makes the fake agent, called as Claude Code, do this. */
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

  /** The argument after this flag, as the mirror agent recorded it. */
  givenTo(flag: string): string | undefined {
    const args = this.read('call-arguments').split('\0')
    return args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined
  }

  write(name: string, content: string): string {
    const path = join(this.project, name)
    writeFileSync(path, content)
    return path
  }

  processes(): string[] {
    return livingProcesses(this.directory).map(({ command }) => command)
  }

  /** Files in the temporary directory and processes that should be gone. */
  leftovers(): string[] {
    return [...readdirSync(this.#temporary), ...this.processes()]
  }

  #makeDirectory(name: string): string {
    const path = join(this.directory, name)
    mkdirSync(path)
    return path
  }
}
