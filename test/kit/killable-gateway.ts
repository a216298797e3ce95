import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject, type TestContext } from 'vitest'
import type { GatewayConfig } from '../../src/config.js'

export interface KillableGateway {
  /** With SIGKILL, and waits for its end. */
  kill(): Promise<void>
  /** How it ended. */
  ended: Promise<NodeJS.Signals | number | null>
}

/** Starts gateways in processes of their own. What they log is shown when the test fails. */
export class GatewayStarter {
  readonly #logFile: string

  constructor(
    private readonly directory: string,
    private readonly config: Pick<GatewayConfig, 'configFile' | 'home'>,
    private readonly onTestFinished: TestContext['onTestFinished'],
  ) {
    this.#logFile = join(directory, 'log')
    closeSync(openSync(this.#logFile, 'a'))
    onTestFinished(({ task }) => {
      if (task.result?.state === 'fail') console.error(this.log())
    })
  }

  /** `folder` holds its entry, below `test`. */
  start(folder: string, args: string[]): KillableGateway {
    const { configFile = '', home } = this.config
    const entry = join(inject('buildDirectory'), 'test', folder, 'gateway-process.js')
    const log = openSync(this.#logFile, 'a')
    const child = spawn(process.execPath, [entry, configFile, ...args], {
      cwd: '/',
      env: { PATH: process.env['PATH'], HOME: this.directory, AETHEEL_HOME: home },
      stdio: ['ignore', 'ignore', log],
    })
    closeSync(log)
    const ended = new Promise<NodeJS.Signals | number | null>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? code))
    })
    const kill = async (): Promise<void> => {
      child.kill('SIGKILL')
      await ended
    }
    this.onTestFinished(kill)
    return { kill, ended }
  }

  /** What all of them have logged. */
  log(): string {
    return readFileSync(this.#logFile, 'utf8')
  }
}
