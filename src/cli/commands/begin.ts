// What `aetheel` does without a command.

import { readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { findConfigFile, type GatewayConfig, loadConfig } from '../../config.js'
import { fileExists } from '../../config/file.js'
import { DEMO_AGENT_NAME } from '../../core/demo-agent.js'
import { openBrowser } from '../../processes/open-browser.js'
import type { HttpServer } from '../../service/server.js'
import type { CommandContext, ConfigLocation } from '../command-context.js'
import { runGateway } from './start.js'
import { ownName } from '../own-name.js'
import { probeAll } from '../probed-agents.js'

/** Sets up and starts the gateway the first time; later shows its status. Without a terminal it prints the help. */
export async function begin(program: Command, context: CommandContext): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) program.help({ error: true })
  const location = context.configLocation()
  if (isSetUp(location)) {
    const { overview } = await import('../onboarding/overview.js')
    console.log(await overview(context))
    return
  }
  const { onboard } = await import('../onboarding/onboard.js')
  const probe = (config: GatewayConfig) => context.withAgents(config, (agents) => probeAll(agents.all()))
  const file = await onboard({ ...location, probe, input: process.stdin, output: process.stdout })
  if (file === undefined) return context.endWith(1)
  const config = loadConfig(context.environment, file)
  await runGateway(context, config, 'warn', (service, missing) => {
    console.log(firstWords(config, location, service, missing))
  })
}

/** Whether there is a configuration file, or a gateway has run here. */
function isSetUp({ environment, cwd, explicit }: ConfigLocation): boolean {
  if (explicit !== undefined) return fileExists(resolve(cwd, explicit))
  return findConfigFile(environment, cwd) !== undefined || isInUse(loadConfig(environment).home)
}

function isInUse(directory: string): boolean {
  try {
    return readdirSync(directory).length > 0
  } catch (error) {
    // A directory that cannot be read is in use by somebody.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

function firstWords(
  config: GatewayConfig,
  location: ConfigLocation,
  service: HttpServer | undefined,
  missing: string | undefined,
): string {
  const name = ownName(location)
  const link = service?.loginLink().url
  const isOpened = link !== undefined && openBrowser(link, location.environment)
  const agent = config.isDemoAgent ? DEMO_AGENT_NAME : config.agentBackend
  return [
    missing === undefined ? `Aetheel is running, with ${agent}.` : `Aetheel is running. No agent yet: ${missing}`,
    ...(link === undefined
      ? []
      : [
          '',
          isOpened
            ? 'Opening the dashboard in your browser. If it does not open, use this link:'
            : 'Open the dashboard. This link logs you in:',
          `  ${link}`,
        ]),
    '',
    `${link === undefined ? 'Chat' : 'Chat there, or'} in another terminal: ${name} chat`,
    `Ctrl-C stops it. To start it again: ${name} start`,
  ].join('\n')
}
