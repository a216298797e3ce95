// The gateway of a cell, in a separate process that can be killed. Its channel is the process that started it, which
// outlives it.

import type { Channel, ChannelHost, ChannelMessage, LiveEvent, OutgoingReply, Place } from '../src/channels/types.js'
import { findConfigFile, loadConfig } from '../src/config.js'
import { makeHome, startGateway } from '../src/gateway.js'
import { createLog } from '../src/log.js'

export type ToGateway = { message: ChannelMessage } | { command: string; place: Place }
export type FromGateway = { isStarted: true } | { reply: OutgoingReply } | { live: LiveEvent } | { answer: string }

class ParentChannel implements Channel {
  readonly name = 'parent'

  async start(host: ChannelHost): Promise<void> {
    process.on('message', (line: ToGateway) => void this.#hear(host, line))
  }

  async send(reply: OutgoingReply): Promise<void> {
    await tell({ reply })
  }

  show(live: LiveEvent): void {
    void tell({ live })
  }

  async stop(): Promise<void> {
    process.removeAllListeners('message')
  }

  async close(): Promise<void> {
    if (process.connected) process.disconnect()
  }

  async #hear(host: ChannelHost, line: ToGateway): Promise<void> {
    if ('message' in line) await host.onMessage(line.message)
    else await tell({ answer: await host.onCommand(line.place, 'somebody', line.command) })
  }
}

async function tell(line: FromGateway): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    process.send?.(line, undefined, {}, (error) => (error ? reject(error) : resolve()))
  })
}

const config = loadConfig(process.env, findConfigFile(process.env, process.cwd()))
makeHome(config)
const gateway = await startGateway(config, {
  environment: process.env,
  log: createLog({ level: 'info' }),
  channels: [new ParentChannel()],
})
process.once('SIGTERM', () => void gateway.stop())
// Also if the process that should stop it is gone.
process.once('disconnect', () => void gateway.stop())
await tell({ isStarted: true })
