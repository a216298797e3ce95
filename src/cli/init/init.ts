import { basename, join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { CONFIG_FILE_NAME, type GatewayConfig, loadConfig, loadConfigWithSources } from '../../config.js'
import { fileExists, readConfigFile } from '../../config/file.js'
import { problemOf } from '../../config/problems.js'
import { projectIdSchema } from '../../config/schema.js'
import { VARIABLES } from '../../config/variables.js'
import { GatewayError } from '../../errors.js'
import type { ConfigLocation } from '../command-context.js'
import { askForAgent, type Probe } from './ask-for-agent.js'
import { askForDirectory, suggestedId } from './ask-for-directory.js'
import { askForDiscord, type DiscordAnswers } from './ask-for-discord.js'
import { ownName } from '../own-name.js'
import { Prompts } from '../prompts.js'
import { freeBackupName, writeSettings } from './write-settings.js'

interface InitOptions extends ConfigLocation {
  probe: Probe
  input: Readable & { isTTY?: boolean }
  output: Writable
  /** How often to check whether the bot has been added to a server. */
  pollMs?: number
}

interface Project {
  id: string
  directory: string
}

/**
 * Asks for the settings of a gateway, writes the configuration file and says what to do next. Returns the exit code.
 *
 * Contract: writes nothing until everything is answered.
 */
export async function init(options: InitOptions): Promise<number> {
  const config = loadConfig(options.environment)
  if (!options.input.isTTY) throw new GatewayError('request_invalid', withoutTerminal(config))
  const prompts = new Prompts(options.input, options.output, 'Start again with "aetheel init".')
  try {
    prompts.begin('Setting up Aetheel')
    await setUp(prompts, config, options)
    return 0
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    prompts.cancel(error.message)
    return 1
  } finally {
    prompts.close()
  }
}

async function setUp(prompts: Prompts, config: GatewayConfig, options: InitOptions): Promise<void> {
  const file = await askForFile(prompts, config, options)
  const agent = await askForAgent(prompts, config, options.probe)
  const project = await askForProject(prompts, config, options)
  const discord = (await prompts.confirm('Connect it to Discord?', false))
    ? await askForDiscord(prompts, config, options.pollMs)
    : undefined
  const settings = { ...agent, project: { ...project, discordChannel: discord?.channel }, discord }
  const backup = writeSettings(file, settings, options.environment)
  prompts.success(`Wrote ${file}${backup === undefined ? '' : `\nThe previous file is kept as ${backup}`}`)
  for (const warning of warningsOf(file, options)) prompts.warn(warning)
  prompts.say(['Next:', ...nextSteps(options, discord)].join('\n'))
  prompts.end('Done.')
}

function withoutTerminal({ home }: GatewayConfig): string {
  return [
    '"aetheel init" asks questions, so it needs a terminal.',
    `Write ${join(home, CONFIG_FILE_NAME)} yourself, or set variables such as DISCORD_BOT_TOKEN: docs/configuration.md`,
    'explains every setting, and "aetheel config check" reports problems.',
  ].join('\n')
}

async function askForFile(prompts: Prompts, { home }: GatewayConfig, options: InitOptions): Promise<string> {
  const { cwd, explicit } = options
  const file = explicit === undefined ? await askForPlace(prompts, home, resolve(cwd)) : resolve(cwd, explicit)
  if (!fileExists(file)) return file
  const question = `${file} already exists. Start over, and keep it as ${basename(freeBackupName(file))}?`
  if (await prompts.confirm(question, false)) return file
  throw new GatewayError('request_invalid', `Nothing was written. Edit ${file} yourself; see docs/configuration.md.`)
}

async function askForPlace(prompts: Prompts, home: string, here: string): Promise<string> {
  if (here === home) return join(home, CONFIG_FILE_NAME)
  const directory = await prompts.select('Where should the settings be kept?', [
    { value: home, label: home, hint: 'used wherever you start Aetheel' },
    { value: here, label: here, hint: 'used when you start Aetheel here' },
  ])
  return join(directory, CONFIG_FILE_NAME)
}

async function askForProject(prompts: Prompts, config: GatewayConfig, options: InitOptions): Promise<Project> {
  const directory = await askForDirectory(prompts, config, options)
  const id = await prompts.text({
    message: 'What should this project be called?',
    initialValue: suggestedId(directory),
    problemOf: (value) => problemOf(projectIdSchema, value),
  })
  return { id, directory }
}

/** Where the effective settings differ from the answers just given. */
export function warningsOf(file: string, { environment, cwd, explicit }: ConfigLocation): string[] {
  const { config, sourceOf } = loadConfigWithSources(environment, file)
  const { settings: written } = readConfigFile(file)
  const overridden = Object.entries(VARIABLES)
    .filter(([key]) => key in written && sourceOf(key as keyof typeof VARIABLES) === 'environment')
    .map(([, { name }]) => name)
  const near = resolve(cwd, CONFIG_FILE_NAME)
  return [
    ...config.warnings,
    ...(overridden.length > 0 ? [`Set in the environment, which overrides the file: ${overridden.join(', ')}`] : []),
    ...(explicit === undefined && near !== file && fileExists(near)
      ? [`In this directory, ${near} is used instead: start elsewhere, or pass --config ${file}`]
      : []),
  ]
}

function nextSteps(options: InitOptions, discord: DiscordAnswers | undefined): string[] {
  const command = ownName(options)
  return [
    `${command} doctor   checks everything`,
    `${command} start    runs the gateway`,
    discord ? `Then say hello: ${hello(discord)}` : `${command} chat     talks to it in another terminal`,
  ]
}

function hello({ botName = 'the bot', channel }: DiscordAnswers): string {
  const place = channel === undefined ? 'in a channel it can see, or in a direct message' : `in ${channel.name}`
  return `write "@${botName} hello" ${place}`
}
