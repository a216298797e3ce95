// A gateway in this process, with a channel that the test speaks through.

import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Acceptance, Channel, ChannelHost, LiveEvent, OutgoingReply, Place } from '../../src/channels/types.js'
import type { GatewayConfig } from '../../src/config.js'
import type { Gateway } from '../../src/gateway.js'
import { DEMO_AGENT } from './agents.js'
import { GatewayStage } from './gateway-stage.js'

/** A platform in the test itself. */
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

export class Stage extends GatewayStage {
  readonly variables = {
    ...this.environment,
    BACKEND_CLI_PATH: DEMO_AGENT,
    AGENT_MODE: 'oneshot',
    WORKING_DIR: this.workingDir,
  }

  config(variables: NodeJS.ProcessEnv = {}, file: object = {}): GatewayConfig {
    return this.load(file, { ...this.variables, ...variables })
  }

  /** `variables` and `file` are the configuration, in addition to what all tests need. */
  async start(
    variables: NodeJS.ProcessEnv = {},
    file: object = {},
    channel: TestChannel = new TestChannel(),
  ): Promise<RunningGateway> {
    const config = this.config(variables, file)
    const steps: string[] = []
    const gateway = await this.launch(config, { channels: [channel], onStep: (step) => steps.push(step) })
    return { gateway, config, channel, steps, stop: () => this.stop(gateway) }
  }

  /** The messages of the log. */
  messages(): string[] {
    return this.logged.map((line) => (JSON.parse(line) as { msg: string }).msg)
  }
}

export function guardiansOf({ id }: Gateway): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(id)
    } catch {
      return false // It has ended since it was listed.
    }
  }).length
}
