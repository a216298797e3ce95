import { join } from 'node:path'
import { TerminalChannel } from '../channels/terminal.js'
import type { Channel } from '../channels/types.js'
import { type GatewayConfig, projectOfChannel } from '../config.js'
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
    const discord = await openDiscord(config, log)
    const channels = [terminal, ...(discord ? [discord] : [])]
    const gateway = await startGateway(config, { environment, log, channels })
    try {
      control = await startControlServer(path, gatewayHandlers(gateway, terminal, config, Date.now), log)
      print(`Configuration: ${config.configFile ?? 'no file, environment and defaults'}`)
      print(`Data: ${config.home}${gateway.store.engine === 'postgres' ? ', messages in PostgreSQL' : ''}`)
      print(`Agent: ${config.agentBackend}`)
      print(`Channels: ${channels.map(({ name }) => name).join(', ')}${discord ? '' : '; "aetheel init" adds Discord'}`)
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

/** Contract: its library is loaded only where it is used. */
export async function openDiscord(
  config: GatewayConfig,
  log: Log,
  now: () => number = Date.now,
): Promise<Channel | undefined> {
  const { discordBotToken: token, discordApiUrl: apiUrl, discordOwnerId: ownerId } = config
  if (token === undefined) return undefined
  const { DiscordChannel } = await import('../channels/discord/discord-channel.js')
  return new DiscordChannel({
    token,
    apiUrl,
    ...(ownerId !== undefined && { ownerId }),
    access: {
      guilds: config.discordGuilds,
      channels: config.discordChannels,
      users: config.discordUsers,
      roles: config.discordRoles,
    },
    opensThreads: config.discordThreads,
    projectOf: (channelId) => projectOfChannel(config, channelId),
    log,
    now,
  })
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
