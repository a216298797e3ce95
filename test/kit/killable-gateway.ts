import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject, type TestContext } from 'vitest'

export interface KillableGateway {
  child: ChildProcess
  /** Its id, once it has started. */
  started: Promise<string>
  /** The signal or exit code it ended with. */
  ended: Promise<NodeJS.Signals | number | null>
  /** Sends SIGKILL, and waits for its end. */
  kill(): Promise<void>
}

/** Starts gateways in their own processes, from `test/<folder>/gateway-process.ts`. Their log is shown if the test fails. */
export class GatewayStarter {
  readonly #logFile: string

  constructor(
    private readonly directory: string,
    private readonly folder: string,
    private readonly environment: NodeJS.ProcessEnv,
    private readonly onTestFinished: TestContext['onTestFinished'],
  ) {
    this.#logFile = join(directory, 'log')
    closeSync(openSync(this.#logFile, 'a'))
    onTestFinished(({ task }) => {
      if (task.result?.state === 'fail') console.error(this.log())
    })
  }

  start(args: string[], environment: NodeJS.ProcessEnv = {}): KillableGateway {
    const entry = join(inject('buildDirectory'), 'test', this.folder, 'gateway-process.js')
    const log = openSync(this.#logFile, 'a')
    const child = spawn(process.execPath, [entry, ...args], {
      cwd: '/',
      env: { PATH: process.env['PATH'], HOME: this.directory, ...this.environment, ...environment },
      stdio: ['ignore', 'pipe', log],
    })
    closeSync(log)
    const started = new Promise<string>((resolve) => {
      child.stdout?.once('data', (line) => resolve(String(line).trim()))
    })
    const ended = new Promise<NodeJS.Signals | number | null>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? code))
    })
    const kill = async (): Promise<void> => {
      child.kill('SIGKILL')
      await ended
    }
    this.onTestFinished(kill)
    return { child, started, ended, kill }
  }

  /** What all of them have logged. */
  log(): string {
    return readFileSync(this.#logFile, 'utf8')
  }
}
