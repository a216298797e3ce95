import { join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { CONFIG_FILE_NAME, type GatewayConfig, loadConfigWithSources } from '../../config.js'
import { GatewayError } from '../../errors.js'
import type { ConfigLocation } from '../command-context.js'
import { askForAgent, type Probe } from '../init/ask-for-agent.js'
import { askForDirectory, suggestedId } from '../init/ask-for-directory.js'
import { askForDiscord } from '../init/ask-for-discord.js'
import { warningsOf } from '../init/init.js'
import { writeSettings } from '../init/write-settings.js'
import { ownName } from '../own-name.js'
import { Prompts } from '../prompts.js'
import { freePort } from './free-port.js'

export interface OnboardingOptions extends ConfigLocation {
  probe: Probe
  input: Readable
  output: Writable
}

/**
 * Asks the few questions that a first start needs, each with a suggestion that Enter accepts, and writes the
 * configuration file. Returns its path, or undefined if the person left.
 *
 * Contract: writes nothing until everything is answered.
 */
export async function onboard(options: OnboardingOptions): Promise<string | undefined> {
  const { environment, input, output } = options
  const { config, sourceOf } = loadConfigWithSources(environment)
  const prompts = new Prompts(input, output, `Start again with "${ownName(options)}".`)
  try {
    prompts.begin('Welcome to Aetheel. Answer a few questions to set it up; Enter accepts the suggestion.')
    const file = await setUp(prompts, config, options, sourceOf('httpPort') === 'environment')
    prompts.end(`Wrote the settings to ${file}. Starting …`)
    return file
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    prompts.cancel(error.message)
    return undefined
  } finally {
    prompts.close()
  }
}

async function setUp(
  prompts: Prompts,
  config: GatewayConfig,
  options: OnboardingOptions,
  isPortGiven: boolean,
): Promise<string> {
  const { environment, cwd, explicit } = options
  const agent = await askForAgent(prompts, config, options.probe)
  const directory = await askForDirectory(prompts, config, options)
  const discord = (await prompts.confirm('Connect it to Discord?', false))
    ? await askForDiscord(prompts, config)
    : undefined
  const httpPort = isPortGiven ? undefined : await askForPort(prompts, config)
  const file = explicit === undefined ? join(config.home, CONFIG_FILE_NAME) : resolve(cwd, explicit)
  const settings = {
    ...agent,
    project: { id: suggestedId(directory), directory, discordChannel: discord?.channel },
    httpPort,
    discord,
  }
  writeSettings(file, settings, environment)
  for (const warning of warningsOf(file, options)) prompts.warn(warning)
  return file
}

/** Another port for the dashboard, if the usual one is taken. */
async function askForPort(
  prompts: Prompts,
  { httpEnabled, httpHost, httpPort }: GatewayConfig,
): Promise<number | undefined> {
  if (!httpEnabled || httpPort === 0) return undefined
  const free = await freePort(httpHost, httpPort)
  if (free === httpPort) return undefined
  const taken = `Port ${httpPort} is already in use.`
  if (free !== undefined && (await prompts.confirm(`${taken} Use ${free} for the dashboard?`, true))) return free
  const advice = 'Set HTTP_PORT to a free port, or HTTP_ENABLED=false, and start again.'
  throw new GatewayError('http_unavailable', `${taken} Nothing was written. ${advice}`)
}
