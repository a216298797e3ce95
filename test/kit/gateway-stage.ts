// A gateway in this process, with its own directories, programs and log.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished, type TestContext } from 'vitest'
import { type GatewayConfig, loadConfig } from '../../src/config.js'
import { databaseFile, type Gateway, type GatewayDependencies, makeHome, startGateway } from '../../src/gateway.js'
import { livingProcesses } from './living-processes.js'
import { lineLog } from './log.js'
import { putDatabase } from './put-database.js'
import { type Journaled, journalIn, release } from './steps-agent.js'
import { processDirectory } from './temporary-directory.js'

export class GatewayStage {
  readonly directory: string
  readonly workingDir: string
  /** First in the search path of its programs. */
  readonly bin: string
  readonly environment: { PATH: string; HOME: string }
  readonly #lines = lineLog()
  readonly log = this.#lines.log
  /** The lines of the log. */
  readonly logged = this.#lines.logged
  readonly #running = new Set<Gateway>()

  /** Everything is stopped and removed when the test ends. A concurrent test passes its own hook. */
  constructor(onFinished: TestContext['onTestFinished'] = onTestFinished) {
    this.directory = processDirectory(onFinished)
    this.workingDir = this.makeDirectory('work')
    this.bin = this.makeDirectory('bin')
    this.environment = { PATH: `${this.bin}:${process.env['PATH']}`, HOME: this.makeDirectory('home') }
    onFinished(async ({ task }) => {
      for (const gateway of this.#running) await this.stop(gateway)
      if (task.result?.state === 'fail') console.error(this.logged.join(''))
    })
  }

  /** `settings` is the whole configuration file. */
  load(settings: object, variables: NodeJS.ProcessEnv = {}): GatewayConfig {
    const file = join(this.directory, 'aetheel.json5')
    writeFileSync(file, JSON.stringify(settings))
    return loadConfig({ ...this.environment, AETHEEL_HOME: join(this.directory, 'data'), ...variables }, file)
  }

  async launch(
    config: GatewayConfig,
    dependencies: Pick<GatewayDependencies, 'channels' | 'onStep'>,
  ): Promise<Gateway> {
    makeHome(config)
    putDatabase({ file: databaseFile(config), databaseUrl: config.databaseUrl })
    const { environment, log } = this
    const gateway = await startGateway(config, { environment, log, ...dependencies })
    this.#running.add(gateway)
    return gateway
  }

  async stop(gateway: Gateway): Promise<void> {
    if (this.#running.delete(gateway)) await gateway.stop()
  }

  executable(name: string, content: string): string {
    const path = join(this.bin, name)
    writeFileSync(path, content, { mode: 0o755 })
    return path
  }

  makeDirectory(name: string): string {
    const path = join(this.directory, name)
    mkdirSync(path, { recursive: true })
    return path
  }

  /** The running processes of agents and hooks. */
  alive(): string[] {
    return livingProcesses(this.directory).map(({ command }) => command)
  }

  /** The log entries with this message. */
  logsOf(message: string): Record<string, unknown>[] {
    return this.logged.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => msg === message)
  }

  /** Releases an agent that waits at `{"hold": name}`. */
  release(name: string): void {
    release(this.workingDir, name)
  }

  /** The prompts the agents got, in order. */
  journal(directory = this.workingDir): Journaled[] {
    return journalIn(directory)
  }
}
