import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Command } from 'commander'
import { openDiscord, openWhatsApp } from '../../channels/configured-channels.js'
import { TerminalChannel } from '../../channels/terminal.js'
import { WEBHOOK_PATH } from '../../channels/whatsapp/public-paths.js'
import type { Channel, PlatformEndpoint } from '../../channels/types.js'
import { type GatewayConfig, loadConfig } from '../../config.js'
import { watchConfig } from '../../config/reload.js'
import { DEMO_AGENT_NAME } from '../../core/demo-agent.js'
import { type CommandContext, STOP_SIGNALS } from '../command-context.js'
import { gatewayHandlers } from '../control/gateway-handlers.js'
import { socketPath } from '../control/protocol.js'
import { type ControlServer, requireSocketPath, startControlServer } from '../control/server.js'
import { GatewayError } from '../../errors.js'
import { type Gateway, type GatewayParts, makeHome, startGateway } from '../../gateway.js'
import { requireBackend } from '../../runtime/required-agents.js'
import { isLoopback } from '../../service/guards.js'
import type { HttpServer } from '../../service/server.js'
import { httpChannels } from '../../service/http-channel.js'
import type { Log, LogLevel } from '../../log.js'
import type { Scrubber } from '../../credentials/scrubber.js'
import { gitRunner } from '../../projects/git-clone.js'
import { ProjectService } from '../../projects/project-service.js'
import { lockDirectory } from '../../store/sqlite.js'

export const PERMISSIONS_NOTE =
  'Agents work without asking for permission: they can change and run anything that you can.'

const ASKING_NOTE = 'Agents ask for permission where you talk to them; projects may override this.'

export const PLAIN_HTTP_NOTE =
  'Other machines can reach the HTTP API over plain HTTP, which exposes tokens. Put a TLS proxy in front of it.'

export interface StartOptions {
  /** Updated in place when its file changes. */
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  log: Log
  scrubber: Scrubber
  stdout: Pick<NodeJS.WritableStream, 'write'>
  /** Stops the gateway. */
  signal: AbortSignal
  /** Replaces the usual lines. `missing` says why the agent cannot be used. */
  announce: ((service: HttpServer | undefined, missing: string | undefined) => void) | undefined
}

export function registerStart(program: Command, context: CommandContext): void {
  program
    .command('start')
    .description('Run the gateway until it is stopped.')
    .action(async () => {
      const config = context.readConfig()
      await runGateway(context, config, 'info')
    })
}

/** Runs the gateway until this process is told to stop, then exits. */
export async function runGateway(
  context: CommandContext,
  config: GatewayConfig,
  level: LogLevel,
  announce?: StartOptions['announce'],
): Promise<never> {
  const { environment, scrubber } = context
  const stop = new AbortController()
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => {
      // The second signal exits at once, as a kill would: the guardian ends the agents, and the next start recovers.
      if (stop.signal.aborted) process.exit(1)
      stop.abort()
    })
  }
  const log = context.openLog(config, level)
  await start({ config, environment, log, scrubber, stdout: process.stdout, signal: stop.signal, announce })
  // Pending requests to a platform must not keep the process alive.
  process.exit()
}

/** Runs the gateway until the signal fires. Contract: rejects if it cannot start, and then leaves nothing behind. */
async function start(options: StartOptions): Promise<void> {
  const { config, environment, log, scrubber, stdout, signal } = options
  const print = (line: string): void => void stdout.write(`${line}\n`)
  const path = socketPath(config.home)
  requireSocketPath(path)
  const missing = await missingAgent(config, environment, log)
  makeHome(config)
  // Even on PostgreSQL: several gateways may share the work there, but not one directory's socket.
  const unlock = await lockDirectory(join(config.home, 'gateway.lock'))
  try {
    let control: ControlServer | undefined
    const terminal = new TerminalChannel(async () => control?.close())
    const discord = await openDiscord(config, log)
    const http = config.httpEnabled ? httpChannels() : []
    const whatsapp = await openWhatsApp(() => config, { environment, log })
    const channels: Channel[] = [terminal, discord, whatsapp, ...http].filter((channel) => channel !== undefined)
    const endpoints = channels.flatMap((channel) => channel.endpoints ?? [])
    let service: HttpServer | undefined
    let stopWatching = (): void => {}
    // If the service cannot listen, fail before any message is accepted.
    const beforeWork = async (parts: GatewayParts): Promise<void> => {
      if (config.httpEnabled) service = await startService(parts, config, environment, log, endpoints)
    }
    const gateway = await startGateway(config, { environment, log, channels, scrubber, beforeWork }).catch(
      async (error: unknown) => {
        await service?.close()
        throw error
      },
    )
    try {
      control = await startControlServer(path, gatewayHandlers(gateway, terminal, config, Date.now, service), log)
      if (options.announce) options.announce(service, missing)
      else for (const line of describeStart(config, gateway.store.engine, channels, service, missing)) print(line)
      stopWatching = watchConfigFile(gateway, config, environment, log, print)
      await aborted(signal)
      print('Stopping: running turns may finish. Press Ctrl-C again to stop at once.')
    } finally {
      stopWatching()
      await service?.close()
      await gateway.stop()
    }
  } finally {
    unlock()
  }
}

function describeStart(
  config: GatewayConfig,
  engine: Gateway['store']['engine'],
  channels: Channel[],
  service: HttpServer | undefined,
  missing: string | undefined,
): string[] {
  const names = channels.map(({ name }) => name)
  const agent = config.isDemoAgent ? DEMO_AGENT_NAME : config.agentBackend
  return [
    `Configuration: ${config.configFile ?? 'no file; environment and defaults'}`,
    `Data: ${config.home}${engine === 'postgres' ? ', messages in PostgreSQL' : ''}`,
    missing === undefined ? `Agent: ${agent}` : `No agent yet. ${missing}`,
    `Channels: ${names.join(', ')}${names.includes('discord') ? '' : '; "aetheel init" adds Discord'}`,
    ...(names.includes('whatsapp') ? [`WhatsApp: ${describeWhatsApp(config)}`] : []),
    ...(service
      ? [`Dashboard: ${service.url}; "aetheel dashboard" logs you in. Documentation: ${service.url}/docs`]
      : []),
    ...(service && !isLoopback(config.httpHost) ? [PLAIN_HTTP_NOTE] : []),
    ...(service?.newTokenFile === undefined ? [] : [`A token with full access is in ${service.newTokenFile}`]),
    config.agentPermissions === 'allow' ? PERMISSIONS_NOTE : ASKING_NOTE,
    `Aetheel is running. ${missing === undefined ? 'Talk to it: aetheel chat' : 'The dashboard shows the first steps.'}`,
  ]
}

/** Like `requireBackend`, but returns the problem if the agent may be installed later: the dashboard says how. */
async function missingAgent(
  config: GatewayConfig,
  environment: NodeJS.ProcessEnv,
  log: Log,
): Promise<string | undefined> {
  try {
    await requireBackend(config, environment, log)
  } catch (error) {
    const isMissing = error instanceof GatewayError && error.code === 'backend_missing'
    if (!isMissing || config.isAgentChosen || !config.httpEnabled) throw error
    return error.message
  }
  return undefined
}

/** Applies changes of the configuration file. Returns a function that stops watching. */
function watchConfigFile(
  gateway: Gateway,
  { configFile: file }: GatewayConfig,
  environment: NodeJS.ProcessEnv,
  log: Log,
  print: (line: string) => void,
): () => void {
  if (file === undefined) return () => {}
  return watchConfig({
    file,
    load: async () => {
      const next = loadConfig(environment, file)
      await missingAgent(next, environment, log)
      return next
    },
    onChange: async (next) => {
      const { changed, waiting } = await gateway.reconfigure(next)
      if (changed.length + waiting.length === 0) return
      log.info('config.reloaded', { changed, waiting })
      if (changed.length > 0) print(`Configuration reloaded: ${changed.join(', ')}`)
      if (waiting.length > 0) print(`Changed, takes effect after a restart: ${waiting.join(', ')}`)
      for (const warning of next.warnings) print(`Warning: ${warning}`)
    },
    onProblem: (problem) => {
      log.error('config.not-reloaded', { problem })
      print(`The changed configuration cannot be used, so the previous settings stay in use:\n${problem}`)
    },
  })
}

/** Contract: the HTTP library is loaded only if it is used. */
async function startService(
  gateway: GatewayParts,
  config: GatewayConfig,
  environment: NodeJS.ProcessEnv,
  log: Log,
  endpoints: PlatformEndpoint[],
): Promise<HttpServer> {
  const { startHttpServer } = await import('../../service/server.js')
  const { store, agents, credentials, metrics } = gateway
  const clock = { now: Date.now, newId: randomUUID }
  const projects = new ProjectService({ store, config, agents, run: gitRunner(environment), log, ...clock })
  return startHttpServer({ config, gateway, projects, credentials, metrics, endpoints, log, ...clock })
}

function describeWhatsApp({ twilioWhatsappFrom, publicUrl, whatsappPollSeconds }: GatewayConfig): string {
  if (publicUrl === undefined) return `${twilioWhatsappFrom}, polling Twilio every ${whatsappPollSeconds} s`
  return `${twilioWhatsappFrom}, Twilio calls ${publicUrl}${WEBHOOK_PATH}`
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
