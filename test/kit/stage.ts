// A whole gateway in this process, with directories of its own and a channel that the test speaks through.

import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'vitest'
import type { Acceptance, Channel, ChannelHost, LiveEvent, OutgoingReply, Place } from '../../src/channels/types.js'
import { type GatewayConfig, loadConfig } from '../../src/config.js'
import { databaseFile, type Gateway, makeHome, startGateway } from '../../src/gateway.js'
import { createLog, type Log } from '../../src/log.js'
import { endLivingProcesses, livingProcesses } from './living-processes.js'
import { putDatabase } from './put-database.js'

export const DEMO_AGENT = fileURLToPath(new URL('../../demo/agent.mjs', import.meta.url))

/** Answers with what it was asked, to the character. */
export const ECHO_AGENT = `#!/usr/bin/env node
import { text } from 'node:stream/consumers'
const result = await text(process.stdin)
console.log(JSON.stringify({ type: 'result', subtype: 'success', is_error: false, session_id: 's1', result }))
`

/** A platform that lives in the test. */
export class TestChannel implements Channel {
  readonly replies: OutgoingReply[] = []
  readonly shown: LiveEvent[] = []
  #host: ChannelHost | undefined

  constructor(
    readonly takesFiles = false,
    readonly name = 'test',
  ) {}

  async start(host: ChannelHost): Promise<void> {
    this.#host = host
  }

  async send(reply: OutgoingReply): Promise<void> {
    this.replies.push(reply)
  }

  show(event: LiveEvent): void {
    this.shown.push(event)
  }

  async stop(): Promise<void> {}

  async close(): Promise<void> {}

  say(place: string | Place, text: string, platformId: string = randomUUID()): Promise<Acceptance> {
    return this.host().onMessage({ ...toPlace(place), platformId, author: 'ann', text })
  }

  command(place: string | Place, line: string): Promise<string> {
    return this.host().onCommand(toPlace(place), 'ann', line)
  }

  texts(): string[] {
    return this.replies.map(({ text }) => text)
  }

  host(): ChannelHost {
    if (!this.#host) throw new Error('The channel has not been started')
    return this.#host
  }
}

function toPlace(place: string | Place): Place {
  return typeof place === 'string' ? { address: place } : place
}

export interface RunningGateway {
  gateway: Gateway
  config: GatewayConfig
  channel: TestChannel
  steps: string[]
  stop(): Promise<void>
}

export class Stage {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-gateway-')))
  readonly workingDir = this.makeDirectory('work')
  readonly bin = this.makeDirectory('bin')
  readonly environment = { PATH: `${this.bin}:${process.env['PATH']}`, HOME: this.makeDirectory('home') }
  readonly variables = {
    ...this.environment,
    AETHEEL_HOME: join(this.directory, 'data'),
    BACKEND_CLI_PATH: DEMO_AGENT,
    AGENT_MODE: 'oneshot',
    WORKING_DIR: this.workingDir,
  }
  readonly logged: string[] = []
  readonly log: Log = createLog({
    level: 'debug',
    destination: { write: (line) => this.logged.push(String(line)) > 0 },
  })
  readonly #running = new Set<RunningGateway>()

  /** Everything is stopped and removed when the test is over. */
  constructor(onTestFinished: TestContext['onTestFinished']) {
    onTestFinished(async () => {
      for (const { stop } of this.#running) await stop()
      endLivingProcesses(this.directory)
      rmSync(this.directory, { recursive: true, force: true })
    })
  }

  config(variables: NodeJS.ProcessEnv = {}, file: object = {}): GatewayConfig {
    const configFile = join(this.directory, 'aetheel.json5')
    writeFileSync(configFile, JSON.stringify(file))
    return loadConfig({ ...this.variables, ...variables }, configFile)
  }

  /** `variables` and `file` are the configuration, beside what every test needs. */
  async start(
    variables: NodeJS.ProcessEnv = {},
    file: object = {},
    channel: TestChannel = new TestChannel(),
  ): Promise<RunningGateway> {
    const config = this.config(variables, file)
    makeHome(config)
    putDatabase({ file: databaseFile(config), databaseUrl: config.databaseUrl })
    const steps: string[] = []
    const { environment, log } = this
    const onStep = (step: string) => steps.push(step)
    const gateway = await startGateway(config, { environment, log, channels: [channel], onStep })
    const stop = async (): Promise<void> => {
      if (this.#running.delete(running)) await gateway.stop()
    }
    const running: RunningGateway = { gateway, config, channel, steps, stop }
    this.#running.add(running)
    return running
  }

  executable(name: string, content: string): string {
    const path = join(this.bin, name)
    writeFileSync(path, content, { mode: 0o755 })
    return path
  }

  makeDirectory(name: string): string {
    const path = join(this.directory, name)
    mkdirSync(path)
    return path
  }

  /** What runs of the agents and hooks. */
  alive(): string[] {
    return livingProcesses(this.directory).map(({ command }) => command)
  }

  messages(): string[] {
    return this.logged.map((line) => (JSON.parse(line) as { msg: string }).msg)
  }
}

export function guardiansOf({ id }: Gateway): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(id)
    } catch {
      return false // It ended while it was looked at.
    }
  }).length
}
