import { join } from 'node:path'
import { TerminalChannel } from '../channels/terminal.js'
import type { GatewayConfig } from '../config.js'
import { gatewayHandlers } from '../control/gateway-handlers.js'
import { socketPath } from '../control/protocol.js'
import { type ControlServer, requireSocketPath, startControlServer } from '../control/server.js'
import { makeHome, requireBackend, startGateway } from '../gateway.js'
import type { Log } from '../log.js'
import { lockDirectory } from '../store/sqlite.js'

interface StartOptions {
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  log: Log
  stdout: Pick<NodeJS.WritableStream, 'write'>
  /** Aborted when the gateway is to stop. */
  signal: AbortSignal
}

/** Runs the gateway until it is told to stop. Contract: rejects when it cannot start; then nothing of it is left. */
export async function start({ config, environment, log, stdout, signal }: StartOptions): Promise<void> {
  const print = (line: string): void => void stdout.write(`${line}\n`)
  const path = socketPath(config.home)
  requireSocketPath(path)
  await requireBackend(config, environment, log)
  makeHome(config)
  // On PostgreSQL, too: several gateways may share the work there, but not the socket of one directory.
  const unlock = await lockDirectory(join(config.home, 'gateway.lock'))
  try {
    let control: ControlServer | undefined
    const terminal = new TerminalChannel(async () => control?.close())
    const channels = [terminal]
    const gateway = await startGateway(config, { environment, log, channels })
    try {
      control = await startControlServer(path, gatewayHandlers(gateway, terminal, config, Date.now), log)
      print(`Configuration: ${config.configFile ?? 'no file, environment and defaults'}`)
      print(`Data: ${config.home}${gateway.store.engine === 'postgres' ? ', messages in PostgreSQL' : ''}`)
      print(`Agent: ${config.agentBackend}`)
      print(`Channels: ${channels.map(({ name }) => name).join(', ')}; there are no others to configure yet`)
      print('Aetheel is running. Talk to it: aetheel chat')
      await aborted(signal)
      print('Stopping: what is under way may finish. Once more, and it stops at once.')
    } finally {
      await gateway.stop()
    }
  } finally {
    unlock()
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
