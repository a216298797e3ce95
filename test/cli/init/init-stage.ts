// A person who answers what `aetheel init` asks.

import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { createBackend } from '../../../src/backends/registry.js'
import { BACKEND_NAMES } from '../../../src/backends/types.js'
import { probeAll } from '../../../src/cli/probed-agents.js'
import { init } from '../../../src/cli/init/init.js'
import { onboard } from '../../../src/cli/onboarding/onboard.js'
import { backendConfig, type GatewayConfig, loadConfig } from '../../../src/config.js'
import { agentPath } from '../../kit/agents.js'
import { FakeTerminal } from '../fake-terminal.js'
import { SILENT_LOG } from '../../kit/log.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

export const ENTER = '\r'
export const DOWN = '\u001B[B'
export const CTRL_C = '\u0003'
export const CTRL_U = '\u0015'

export const WHERE = 'Where should the settings be kept?'
export const AGENT = 'Which agent should answer?'
export const PERMISSIONS = 'What may the agent do?'
export const DIRECTORY = 'Which directory should it work in?'
export const ID = 'What should this project be called?'
export const DISCORD = 'Connect it to Discord?'

/** A person's machine: a home, a directory to work in, and Codex. */
export class Machine {
  readonly directory: string
  readonly home: string
  readonly project: string
  readonly file: string
  readonly environment: { HOME: string; PATH: string }

  constructor({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
    this.directory = temporaryDirectory(onTestFinished)
    this.home = join(this.directory, 'home')
    this.project = join(this.directory, 'My project')
    this.file = join(this.home, '.aetheel/aetheel.json5')
    this.environment = { HOME: this.home, PATH: `${this.directory}/bin:/usr/bin:/bin` }
    for (const path of [this.home, this.project, join(this.directory, 'bin')]) mkdirSync(path)
    symlinkSync(agentPath('fake-agent.sh'), join(this.directory, 'bin/codex'))
  }

  /** Answers the questions of the first start, which ends there. */
  meet(options: { variables?: NodeJS.ProcessEnv; cwd?: string } = {}): Person {
    const environment = { ...this.environment, ...options.variables }
    const probe = probeIn(environment)
    return new Person(true, async ({ input, output }) => {
      const file = await onboard({ environment, cwd: options.cwd ?? this.project, probe, input, output })
      return file === undefined ? 1 : 0
    })
  }

  begin(options: { variables?: NodeJS.ProcessEnv; explicit?: string; isTerminal?: boolean } = {}): Person {
    const environment = { ...this.environment, ...options.variables }
    const probe = probeIn(environment)
    return new Person(options.isTerminal ?? true, ({ input, output }) =>
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
  return (config: GatewayConfig) =>
    probeAll(
      BACKEND_NAMES.map((name) =>
        createBackend(name, backendConfig(config, name), { environment, passVariables: [], log: SILENT_LOG }),
      ),
    )
}

/** Reads a screen and presses keys. */
export class Person {
  readonly exitCode: Promise<number>
  readonly #terminal: FakeTerminal
  #seen = 0

  constructor(isTerminal: boolean, begin: (terminal: FakeTerminal) => Promise<number>) {
    this.#terminal = new FakeTerminal(isTerminal)
    this.exitCode = begin(this.#terminal)
    // A test may look at it later.
    this.exitCode.catch(() => {})
  }

  screen(): string {
    return this.#terminal.screen
  }

  /** Waits for a question that was not answered yet, and presses these keys. */
  async answer(question: string, keys: string): Promise<void> {
    this.#seen = await this.#terminal.shows(question, this.#seen)
    if (keys !== '') this.#terminal.input.write(keys)
  }

  leave(): void {
    this.#terminal.input.end()
  }
}
