// A person who answers what `aetheel init` asks.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import type { TestContext } from 'vitest'
import { createBackend } from '../../../src/backends/registry.js'
import { BACKEND_NAMES } from '../../../src/backends/types.js'
import { probeAll } from '../../../src/cli/probed-agents.js'
import { init } from '../../../src/cli/init/init.js'
import { onboard } from '../../../src/cli/onboarding/onboard.js'
import { backendConfig, type GatewayConfig, loadConfig } from '../../../src/config.js'
import { createLog } from '../../../src/log.js'
import { agentPath } from '../../contract/stage.js'

export const ENTER = '\r'
export const DOWN = '\u001B[B'
export const CTRL_C = '\u0003'
export const CTRL_U = '\u0015'

export const WHERE = 'Where shall the settings be kept?'
export const AGENT = 'Which agent shall answer?'
export const PERMISSIONS = 'What may the agent do?'
export const DIRECTORY = 'In which directory shall it work?'
export const ID = 'What shall this project be called?'
export const DISCORD = 'Shall people reach it on Discord?'

/** A person's machine: a home, a directory to work in, and Codex. */
export class Machine {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-init-')))
  readonly home = join(this.directory, 'home')
  readonly project = join(this.directory, 'My project')
  readonly file = join(this.home, '.aetheel/aetheel.json5')
  readonly environment = { HOME: this.home, PATH: `${this.directory}/bin:/usr/bin:/bin` }

  constructor(test?: TestContext) {
    for (const path of [this.home, this.project, join(this.directory, 'bin')]) mkdirSync(path)
    symlinkSync(agentPath('fake-agent.sh'), join(this.directory, 'bin/codex'))
    test?.onTestFinished(() => this.remove())
  }

  remove(): void {
    rmSync(this.directory, { recursive: true })
  }

  /** Answers the questions of the first start, which ends there. */
  meet(options: { variables?: NodeJS.ProcessEnv; cwd?: string } = {}): Person {
    const environment = { ...this.environment, ...options.variables }
    const probe = probeIn(environment)
    return new Person(true, async (input, output) => {
      const file = await onboard({ environment, cwd: options.cwd ?? this.project, probe, input, output })
      return file === undefined ? 1 : 0
    })
  }

  begin(options: { variables?: NodeJS.ProcessEnv; explicit?: string; isTerminal?: boolean } = {}): Person {
    const environment = { ...this.environment, ...options.variables }
    const probe = probeIn(environment)
    return new Person(options.isTerminal ?? true, (input, output) =>
      init({
        environment,
        cwd: this.project,
        probe,
        input,
        output,
        pollMs: 20,
        ...(options.explicit !== undefined && { explicit: options.explicit }),
      }),
    )
  }

  /** What was written into the data directory. */
  config(): GatewayConfig {
    return loadConfig(this.environment, this.file)
  }
}

function probeIn(environment: NodeJS.ProcessEnv) {
  const log = createLog({ level: 'silent' })
  return (config: GatewayConfig) =>
    probeAll(
      BACKEND_NAMES.map((name) =>
        createBackend(name, backendConfig(config, name), { environment, passVariables: [], log }),
      ),
    )
}

/** Reads a screen and presses keys. */
export class Person {
  readonly exitCode: Promise<number>
  readonly #input: PassThrough & { isTTY?: boolean; setRawMode?: () => void } = new PassThrough()
  #screen = ''
  #seen = 0

  constructor(isTerminal: boolean, begin: (input: PassThrough, output: Writable) => Promise<number>) {
    if (isTerminal) Object.assign(this.#input, { isTTY: true, setRawMode: () => {} })
    const output = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.#screen += stripVTControlCharacters(String(chunk))
        done()
      },
    })
    this.exitCode = begin(this.#input, Object.assign(output, { columns: 200, rows: 50 }))
    // A test may look at it later.
    this.exitCode.catch(() => {})
  }

  screen(): string {
    return this.#screen
  }

  /** Waits for a question that was not answered yet, and presses these keys. */
  async answer(question: string, keys: string): Promise<void> {
    const deadline = Date.now() + 10_000
    while (!this.#screen.includes(question, this.#seen)) {
      if (Date.now() > deadline) throw new Error(`"${question}" was not asked, but: ${this.#screen}`)
      await new Promise((resolve) => {
        setTimeout(resolve, 5)
      })
    }
    this.#seen = this.#screen.indexOf(question, this.#seen) + question.length
    if (keys !== '') this.#input.write(keys)
  }

  leave(): void {
    this.#input.end()
  }
}
