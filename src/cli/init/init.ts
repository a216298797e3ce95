import { constants, copyFileSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { BackendName } from '../../backends/types.js'
import { CONFIG_FILE_NAME, expandHome, type GatewayConfig, loadConfig, loadConfigWithSources } from '../../config.js'
import { fileExists, readConfigFile } from '../../config/file.js'
import { problemOf } from '../../config/problems.js'
import { projectIdSchema } from '../../config/schema.js'
import { VARIABLES } from '../../config/variables.js'
import { configText } from '../../config/text.js'
import { GatewayError, messageOf } from '../../errors.js'
import { makePrivateDirectory } from '../../core/paths.js'
import type { ConfigLocation } from '../command-context.js'
import { describeAbsence, type ProbedAgent } from '../probed-agents.js'
import { askForDiscord, type DiscordAnswers } from './ask-for-discord.js'
import { Prompts } from '../prompts.js'

interface InitOptions extends ConfigLocation {
  /** Every agent, and whether it is installed. */
  probe: (config: GatewayConfig) => Promise<ProbedAgent[]>
  input: Readable & { isTTY?: boolean }
  output: Writable
  /** How often to check whether the bot has been added to a server. */
  pollMs?: number
}

interface Project {
  id: string
  directory: string
}

const SCHEMA_URL = new URL('../../../aetheel.schema.json', import.meta.url).href

/**
 * Asks for what a gateway needs, writes the configuration file and says what to do next. Returns the exit code.
 *
 * Contract: writes nothing until everything is answered.
 */
export async function init(options: InitOptions): Promise<number> {
  const config = loadConfig(options.environment)
  if (!options.input.isTTY) throw new GatewayError('request_invalid', withoutTerminal(config))
  const prompts = new Prompts(options.input, options.output)
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
  const agentBackend = await askForAgent(prompts, config, await options.probe(config))
  const project = await askForProject(prompts, options)
  const discord = (await prompts.confirm('Shall people reach it on Discord?', true))
    ? await askForDiscord(prompts, config, options.pollMs)
    : undefined
  const text = configText({
    schemaUrl: SCHEMA_URL,
    agentBackend,
    project: { ...project, discordChannel: discord?.channel },
    discord,
  })
  makeDirectory(project.directory)
  const backup = write(file, text, options.environment)
  prompts.success(`Written: ${file}${backup === undefined ? '' : `\nThe one before is kept: ${backup}`}`)
  for (const warning of warningsOf(file, options)) prompts.warn(warning)
  prompts.say(['Next:', ...nextSteps(options, discord)].join('\n'))
  prompts.end('Done.')
}

function withoutTerminal({ home }: GatewayConfig): string {
  return [
    '"aetheel init" asks questions, and there is no terminal to answer at.',
    `Write ${join(home, CONFIG_FILE_NAME)} yourself, or set variables such as DISCORD_BOT_TOKEN: docs/configuration.md`,
    'explains every setting, and "aetheel config check" says what is wrong.',
  ].join('\n')
}

async function askForFile(prompts: Prompts, { home }: GatewayConfig, options: InitOptions): Promise<string> {
  const { cwd, explicit } = options
  const file = explicit === undefined ? await askForPlace(prompts, home, resolve(cwd)) : resolve(cwd, explicit)
  if (!fileExists(file)) return file
  const question = `${file} is there already. Begin anew, and keep it as ${basename(freeBackupName(file))}?`
  if (await prompts.confirm(question, false)) return file
  throw new GatewayError('request_invalid', `Nothing was written. Change ${file} by hand; docs/configuration.md helps.`)
}

async function askForPlace(prompts: Prompts, home: string, here: string): Promise<string> {
  if (here === home) return join(home, CONFIG_FILE_NAME)
  const directory = await prompts.select('Where shall the settings be kept?', [
    { value: home, label: home, hint: 'read wherever you start it' },
    { value: here, label: here, hint: 'read when you start it here' },
  ])
  return join(directory, CONFIG_FILE_NAME)
}

async function askForAgent(prompts: Prompts, config: GatewayConfig, agents: ProbedAgent[]): Promise<BackendName> {
  const isFound = ({ probe }: ProbedAgent): boolean => probe.isFound
  const sorted = agents.toSorted((a, b) => Number(isFound(b)) - Number(isFound(a)))
  if (!agents.some(isFound)) {
    prompts.warn('No agent is installed here yet. Choose one and install it later; docs/backends says how.')
  }
  const choices = sorted.map(({ backend, probe }) => ({
    value: backend.name(),
    label: `${backend.name()} (${probe.isFound ? (probe.version ?? 'version unknown') : describeAbsence(probe)})`,
  }))
  const preferred = sorted.find(({ backend }) => backend.name() === config.agentBackend)
  const initial = preferred?.probe.isFound ? config.agentBackend : choices[0]?.value
  const name = await prompts.select('Which agent shall answer?', choices, initial)
  const problems = agents.find(({ backend }) => backend.name() === name)?.probe.problems ?? []
  for (const problem of problems) prompts.warn(problem)
  return name
}

async function askForProject(prompts: Prompts, { cwd, environment }: InitOptions): Promise<Project> {
  const directory = await askForDirectory(prompts, cwd, environment)
  const id = await prompts.text({
    message: 'What shall this project be called?',
    initialValue: suggestedId(directory),
    problemOf: (value) => problemOf(projectIdSchema, value),
  })
  return { id, directory }
}

async function askForDirectory(prompts: Prompts, cwd: string, environment: NodeJS.ProcessEnv): Promise<string> {
  for (;;) {
    const answer = await prompts.text({
      message: 'In which directory shall it work?',
      initialValue: cwd,
      problemOf: (value) => {
        if (value === '') return 'Name a directory.'
        const found = statSync(resolve(cwd, expandHome(value, environment)), { throwIfNoEntry: false })
        return found && !found.isDirectory() ? 'That is no directory.' : undefined
      },
    })
    const directory = resolve(cwd, expandHome(answer, environment))
    if (fileExists(directory) || (await prompts.confirm(`${directory} is not there. Make it?`, true))) return directory
  }
}

/** The directory's name, reduced to what an id allows. */
function suggestedId(directory: string): string {
  const id = basename(directory)
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64)
  return id === '' ? 'main' : id
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
  } catch (error) {
    const message = `${path} cannot be made (${messageOf(error)}). Nothing was written.`
    throw new GatewayError('config_invalid', message, { cause: error })
  }
}

/** Contract: atomic, and accessible to us alone. Returns the path of the previous file's backup. */
function write(file: string, text: string, environment: NodeJS.ProcessEnv): string | undefined {
  try {
    makePrivateDirectory(dirname(file))
    return replace(file, text, (draft) => loadConfig(environment, draft))
  } catch (error) {
    throw new GatewayError('config_invalid', `${file} cannot be written: ${messageOf(error)}`, { cause: error })
  }
}

function replace(file: string, text: string, check: (draft: string) => void): string | undefined {
  const draft = `${file}.${process.pid}.new`
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
  try {
    check(draft)
    const backup = fileExists(file) ? freeBackupName(file) : undefined
    if (backup !== undefined) copyFileSync(file, backup, constants.COPYFILE_EXCL)
    renameSync(draft, file)
    return backup
  } finally {
    rmSync(draft, { force: true })
  }
}

/** An unused name, so that earlier backups stay. */
function freeBackupName(file: string): string {
  for (let count = 1; ; count += 1) {
    const backup = `${file}.bak${count === 1 ? '' : count}`
    if (!fileExists(backup)) return backup
  }
}

/** Where the effective settings differ from the answers just given. */
function warningsOf(file: string, { environment, cwd, explicit }: InitOptions): string[] {
  const { config, sourceOf } = loadConfigWithSources(environment, file)
  const written = readConfigFile(file)
  const overridden = Object.entries(VARIABLES)
    .filter(([key]) => key in written && sourceOf(key as keyof typeof VARIABLES) === 'environment')
    .map(([, { name }]) => name)
  const near = resolve(cwd, CONFIG_FILE_NAME)
  return [
    ...config.warnings,
    ...(overridden.length > 0 ? [`Set in the environment, which wins over the file: ${overridden.join(', ')}`] : []),
    ...(explicit === undefined && near !== file && fileExists(near)
      ? [`In this directory ${near} is read instead: start elsewhere, or name the file with --config ${file}`]
      : []),
  ]
}

function nextSteps({ explicit }: InitOptions, discord: DiscordAnswers | undefined): string[] {
  const command = explicit === undefined ? 'aetheel' : `aetheel --config ${shellWord(explicit)}`
  return [
    `${command} doctor   checks everything`,
    `${command} start    runs the gateway`,
    discord ? `Then say hello: ${hello(discord)}` : `${command} chat     talks to it here`,
  ]
}

function hello({ botName = 'the bot', channel }: DiscordAnswers): string {
  const place = channel === undefined ? 'in a channel that it sees, or in a direct message' : `in ${channel.name}`
  return `write "@${botName} hello" ${place}`
}

/** Quoted for a shell if necessary. */
function shellWord(text: string): string {
  return /^[\w./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
